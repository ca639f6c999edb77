import type { SluiceError } from '../../core/errors.ts'
import type { ResumePoint } from './input.ts'
import { type InputBytes, idle } from './input-bytes.ts'
import { inputChanged } from './input-changed.ts'
import { PrefixHash } from './prefix-hash.ts'
import { countLines } from './record-parser.ts'

/** The start of an input that has been read and is what the lake says it is. */
export type VerifiedPrefix = {
  readonly position: bigint
  /** Newlines in it. */
  readonly lines: bigint
  /** Over it, to go on with. */
  readonly hash: PrefixHash
  /** Bytes behind `position` that were read with it. */
  readonly rest: Uint8Array
}

/**
 * Reads `[0, position)` and compares its digest with the recorded one.
 * @throws SluiceError INPUT_CHANGED when it is another, or the input has become shorter.
 */
export async function verifyPrefix(
  bytes: InputBytes,
  point: Omit<ResumePoint, 'records' | 'endedWithoutNewline'>,
): Promise<VerifiedPrefix> {
  const hash = new PrefixHash()
  let position = 0n
  let lines = 0
  let rest: Uint8Array = new Uint8Array(0)
  const changed = (): SluiceError =>
    inputChanged(bytes.name, point, { size: position, blocks: hash.here().blocks })
  while (position < point.position) {
    const chunk = await bytes.read()
    if (chunk === undefined || chunk === idle) throw changed()
    const left = point.position - position
    const size = left < BigInt(chunk.length) ? Number(left) : chunk.length
    const part = chunk.subarray(0, size)
    hash.update(part)
    lines += countLines(Buffer.from(part.buffer, part.byteOffset, size), 0, size)
    position += BigInt(size)
    rest = chunk.subarray(size)
  }
  if (hash.here().digest() !== point.digest) throw changed()
  return { position, lines: BigInt(lines), hash, rest }
}

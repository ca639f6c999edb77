import { createHash, type Hash } from 'node:crypto'
import { SluiceError } from '../../core/errors.ts'
import type { ResumePoint } from './input.ts'
import { type InputBytes, idle } from './input-bytes.ts'
import { countLines } from './record-parser.ts'

/** The start of an input that has been read and is what the lake says it is. */
export type VerifiedPrefix = {
  readonly position: bigint
  /** Newlines in it. */
  readonly lines: bigint
  /** SHA-256 over it, to go on with. */
  readonly hash: Hash
  /** Bytes behind `position` that were read with it. */
  readonly rest: Uint8Array
}

/** Digests of the blocks of a known prefix, to tell where a change begins. */
export type BlockDigests = { readonly blockBytes: number; readonly digests: readonly string[] }

/**
 * Reads `[0, position)` and compares its digest with the recorded one.
 * @throws SluiceError INPUT_CHANGED when it is another, or the input has become shorter.
 */
export async function verifyPrefix(
  bytes: InputBytes,
  point: Pick<ResumePoint, 'position' | 'digest'>,
  blocks?: BlockDigests,
): Promise<VerifiedPrefix> {
  const hash = createHash('sha256')
  const watch = blocks === undefined ? undefined : new BlockWatch(blocks)
  let position = 0n
  let lines = 0
  let rest: Uint8Array = new Uint8Array(0)
  while (position < point.position) {
    const chunk = await bytes.read()
    if (chunk === undefined || chunk === idle) {
      const have = position.toLocaleString('en-US')
      const want = point.position.toLocaleString('en-US')
      throw changed(bytes.name, `${bytes.name}: has ${have} bytes, ${want} were tiered`, position)
    }
    const left = point.position - position
    const size = left < BigInt(chunk.length) ? Number(left) : chunk.length
    const part = chunk.subarray(0, size)
    hash.update(part)
    watch?.update(part)
    lines += countLines(Buffer.from(part.buffer, part.byteOffset, size), 0, size)
    position += BigInt(size)
    rest = chunk.subarray(size)
  }
  if (hash.copy().digest('hex') !== point.digest) {
    const different = watch?.firstDifference()
    const where =
      different === undefined
        ? ''
        : ` (first difference in the block at byte ${different.toLocaleString('en-US')})`
    const size = point.position.toLocaleString('en-US')
    const message = `${bytes.name}: its first ${size} bytes are not the ones tiered${where}`
    throw changed(bytes.name, message, different === undefined ? undefined : BigInt(different))
  }
  return { position, lines: BigInt(lines), hash, rest }
}

function changed(name: string, message: string, byte: bigint | undefined): SluiceError {
  const stem = /([^/]*?)(\.[^/]*)?$/.exec(name)?.[1] ?? 'input'
  return new SluiceError('INPUT_CHANGED', message, {
    fix: `restore the file, or tier it as another input: --input-id ${stem}-2`,
    details: { input: name, ...(byte === undefined ? {} : { byte }) },
  })
}

/** Compares block after block; a last block that is not full is not compared. */
class BlockWatch {
  readonly #blocks: BlockDigests
  #hash = createHash('sha256')
  #filled = 0
  #index = 0
  #different: number | undefined

  constructor(blocks: BlockDigests) {
    this.#blocks = blocks
  }

  update(part: Uint8Array): void {
    const { blockBytes, digests } = this.#blocks
    for (let at = 0; at < part.length; ) {
      const size = Math.min(blockBytes - this.#filled, part.length - at)
      this.#hash.update(part.subarray(at, at + size))
      this.#filled += size
      at += size
      if (this.#filled < blockBytes) continue
      const same = this.#hash.digest('hex') === (digests[this.#index] ?? '')
      if (!same && this.#index < digests.length) this.#different ??= this.#index * blockBytes
      this.#hash = createHash('sha256')
      this.#filled = 0
      this.#index += 1
    }
  }

  firstDifference(): number | undefined {
    return this.#different
  }
}

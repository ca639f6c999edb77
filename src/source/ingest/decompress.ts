import { SluiceError } from '../../core/errors.ts'
import { decoderOf, type Problem } from './decoders.ts'

export type Compression = 'none' | 'gzip' | 'zstd'

/** Told by the first four bytes, never by the name. */
export function compressionOf(head: Uint8Array): Compression {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
  if (head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd) return 'zstd'
  return 'none'
}

/**
 * Stored bytes given to a decoder at once, since all that they unfold to is held: 1,032 times as much
 * of gzip, and 128 KiB for four bytes of zstd.
 */
const pieceBytes = { gzip: 32_768, zstd: 1_024 }

/**
 * The decompressed bytes of all members or frames, in bounded chunks. Of a stream that is cut or
 * damaged it gives everything before that: to the byte, where the stored bytes can be read again.
 * @param again The bytes that were read so far, once more; absent where they come only once
 * @throws SluiceError DATA_CORRUPT then, naming the stored byte up to which it went well
 */
export async function* decompressed(
  stored: AsyncIterable<Uint8Array>,
  compression: 'gzip' | 'zstd',
  name: string,
  again?: () => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const mend =
    again === undefined
      ? `send all of ${name} again`
      : `get a whole copy of ${name} and run the same command again`
  const damaged = (byte: number, problem: Problem): SluiceError =>
    damagedStream(name, compression, { byte, mend }, problem)
  // What is lost at damage can be had again of a file only.
  const decoder = decoderOf(compression, again === undefined ? 16_384 : undefined)
  let fed = 0
  let given = 0
  try {
    for await (const piece of pieces(stored, pieceBytes[compression])) {
      const problem = await decoder.feed(piece)
      for (const chunk of decoder.taken()) {
        given += chunk.length
        yield chunk
      }
      if (problem !== undefined) {
        if (again === undefined) throw damaged(fed + piece.length, problem)
        const last = await lastSteps(again, compression, { fed, given })
        if (last.tail.length > 0) yield last.tail
        throw damaged(last.fed + 1, problem)
      }
      fed += piece.length
    }
    const problem = await decoder.feed(undefined)
    yield* decoder.taken()
    if (problem !== undefined) throw damaged(fed, problem)
  } finally {
    decoder.close()
  }
}

/** True for the error of a stream that only ends too early; what it gave is right. */
export function isCut(error: SluiceError): boolean {
  return error.details['cut'] === true
}

function damagedStream(
  name: string,
  compression: 'gzip' | 'zstd',
  at: { readonly byte: number; readonly mend: string },
  problem: Problem,
): SluiceError {
  const byte = at.byte.toLocaleString('en-US')
  return new SluiceError(
    'DATA_CORRUPT',
    problem.cut
      ? `${name}: the ${compression} stream is cut at byte ${byte}`
      : `${name}: the ${compression} stream is damaged before byte ${byte} (${problem.reason})`,
    {
      details: { input: name, bytesIn: at.byte, cut: problem.cut },
      fix: problem.cut ? at.mend : `${at.mend}; if that is refused as changed, roll the table back`,
    },
  )
}

/** How much of the failing piece other decoders take at once, one after the other. */
const smallSteps = [256, 1]

/**
 * A decoder that fails keeps what its last step gave to itself, so that step is made smaller.
 * @param before Stored bytes that went well, and how much of what they gave was handed out.
 * @returns what was not handed out, and how many stored bytes went well
 */
async function lastSteps(
  again: () => AsyncIterable<Uint8Array>,
  compression: 'gzip' | 'zstd',
  before: { readonly fed: number; readonly given: number },
): Promise<{ readonly tail: Buffer; readonly fed: number }> {
  let tail: Uint8Array[] = []
  let { fed } = before
  for (const step of smallSteps) {
    tail = []
    let given = 0
    fed = await feedAgain(again(), compression, { fed, step }, (chunk) => {
      if (given + chunk.length > before.given) {
        tail.push(chunk.subarray(Math.max(0, before.given - given)))
      }
      given += chunk.length
    })
  }
  return { tail: Buffer.concat(tail), fed }
}

/** Feeds at once what went well, then in steps. @returns how many bytes went well */
async function feedAgain(
  stored: AsyncIterable<Uint8Array>,
  compression: 'gzip' | 'zstd',
  { fed: well, step }: { readonly fed: number; readonly step: number },
  take: (chunk: Uint8Array) => void,
): Promise<number> {
  const decoder = decoderOf(compression)
  let fed = 0
  try {
    for await (const chunk of stored) {
      for (let at = 0; at < chunk.length; ) {
        const most = fed < well ? Math.min(well - fed, pieceBytes[compression]) : step
        const size = Math.min(chunk.length - at, most)
        const problem = await decoder.feed(chunk.subarray(at, at + size))
        for (const each of decoder.taken()) take(each)
        if (problem !== undefined) return fed
        fed += size
        at += size
      }
    }
    return fed
  } finally {
    decoder.close()
  }
}

async function* pieces(
  stored: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of stored) {
    for (let at = 0; at < chunk.length; at += size) yield chunk.subarray(at, at + size)
  }
}

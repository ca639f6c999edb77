import { Readable } from 'node:stream'
import * as zlib from 'node:zlib'
import { Decompress } from 'fzstd'
import { SluiceError } from '../../core/errors.ts'

export type Compression = 'none' | 'gzip' | 'zstd'

/** Told by the first four bytes, never by the name. */
export function compressionOf(head: Uint8Array): Compression {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
  if (head[0] === 0x28 && head[1] === 0xb5 && head[2] === 0x2f && head[3] === 0xfd) return 'zstd'
  return 'none'
}

/**
 * The decompressed bytes of all members or frames, in bounded chunks.
 * @throws SluiceError INPUT_UNREADABLE naming the stored byte up to which it went well, when the
 * stream is cut or damaged.
 */
export async function* decompressed(
  stored: AsyncIterable<Uint8Array>,
  compression: 'gzip' | 'zstd',
  name: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytesIn = 0
  const count = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of stored) {
      bytesIn += chunk.length
      yield chunk
    }
  }
  const native = compression === 'gzip' ? zlib.createGunzip({ chunkSize: 262_144 }) : nativeZstd()
  try {
    if (native === undefined) yield* unzstd(count())
    else yield* through(count(), native)
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const message = error instanceof Error ? error.message : String(error)
    const cut = /unexpected end|unexpected eof|truncated/i.test(message)
    throw new SluiceError(
      'INPUT_UNREADABLE',
      cut
        ? `${name}: the ${compression} stream is cut at byte ${bytesIn.toLocaleString('en-US')}`
        : `${name}: the ${compression} stream is damaged before byte ${bytesIn.toLocaleString('en-US')} (${message})`,
      { details: { bytesIn }, cause: error, fix: `get a whole copy of ${name}` },
    )
  }
}

async function* through(
  stored: AsyncIterable<Uint8Array>,
  transform: NodeJS.ReadWriteStream,
): AsyncGenerator<Uint8Array, void, undefined> {
  const source = Readable.from(stored, { objectMode: false })
  let problem: unknown
  source.on('error', (error) => {
    problem = error
    transform.emit('error', error)
  })
  source.pipe(transform)
  try {
    for await (const chunk of transform) {
      if (typeof chunk !== 'string') yield chunk
    }
  } catch (error) {
    throw problem ?? error
  } finally {
    source.destroy()
  }
}

/** Node 22.15 and later have zstd; it checks the content's checksum as well. */
function nativeZstd(): NodeJS.ReadWriteStream | undefined {
  return hasZstd(zlib) ? zlib.createZstdDecompress() : undefined
}

function hasZstd(
  library: object,
): library is { readonly createZstdDecompress: () => NodeJS.ReadWriteStream } {
  return 'createZstdDecompress' in library
}

async function* unzstd(
  stored: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let ready: Uint8Array[] = []
  const decompress = new Decompress((chunk) => {
    ready.push(chunk)
  })
  // Small pieces, since what one piece unfolds to is held at once: up to 128 KiB for four bytes.
  const piece = 1_024
  for await (const chunk of stored) {
    for (let at = 0; at < chunk.length; at += piece) {
      decompress.push(chunk.subarray(at, at + piece))
      const chunks = ready
      ready = []
      for (const each of chunks) if (each.length > 0) yield each
    }
  }
  decompress.push(new Uint8Array(0), true)
  for (const each of ready) if (each.length > 0) yield each
}

import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { Decompress, ZstdErrorCode } from 'fzstd'

/** What is wrong with a compressed stream: it is cut off, or not what was written. */
export type Problem = { readonly cut: boolean; readonly reason: string }

/** Unfolds one stream, step by step. After a problem it takes nothing more. */
export type Decoder = {
  /** Takes the next bytes, or their end. @returns what is wrong with them, if anything is */
  feed(piece: Uint8Array | undefined): Promise<Problem | undefined>
  /** What the bytes so far unfold to; each chunk once. */
  taken(): readonly Uint8Array[]
  close(): void
}

/** @param chunkSize As much of what it gave is lost at most when it fails. */
export function decoderOf(compression: 'gzip' | 'zstd', chunkSize = 262_144): Decoder {
  // Zeros behind a gzip stream are padding, as tapes and some uploads have it.
  if (compression === 'gzip') {
    return new NativeDecoder(zlib.createGunzip({ chunkSize }), (byte) => byte === 0)
  }
  // Node 22.15 and later have zstd; it checks the content's checksum as well.
  return hasZstd(zlib)
    ? new NativeDecoder(zlib.createZstdDecompress({ chunkSize }), () => false)
    : new PlainZstd()
}

type Native = Transform & { readonly bytesWritten: number }

function hasZstd(library: object): library is {
  readonly createZstdDecompress: (options: { readonly chunkSize: number }) => Native
} {
  return 'createZstdDecompress' in library
}

class NativeDecoder implements Decoder {
  readonly #transform: Native
  /** Which bytes may follow the end of the stream. */
  readonly #isPadding: (byte: number) => boolean
  #ready: Uint8Array[] = []
  #problem: Problem | undefined
  #fed = 0
  #hasEnded = false
  #done: () => void = () => undefined

  constructor(transform: Native, isPadding: (byte: number) => boolean) {
    this.#transform = transform
    this.#isPadding = isPadding
    transform.on('data', (chunk: Uint8Array) => this.#ready.push(chunk))
    transform.on('end', () => {
      this.#hasEnded = true
    })
    transform.on('error', (error) => {
      const cut = 'code' in error && error.code === 'Z_BUF_ERROR'
      this.#problem = { cut, reason: error.message }
    })
    transform.on('close', () => {
      this.#done()
    })
  }

  async feed(piece: Uint8Array | undefined): Promise<Problem | undefined> {
    if (this.#hasEnded) return this.#unlessPadding(piece ?? new Uint8Array(0))
    await new Promise<void>((resolve) => {
      this.#done = resolve
      if (piece === undefined) this.#transform.end()
      else
        this.#transform.write(piece, () => {
          resolve()
        })
    })
    if (piece === undefined) return this.#problem
    this.#fed += piece.length
    const left = this.#fed - this.#transform.bytesWritten
    return this.#problem ?? this.#unlessPadding(piece.subarray(piece.length - left))
  }

  taken(): readonly Uint8Array[] {
    const chunks = this.#ready
    this.#ready = []
    return chunks
  }

  close(): void {
    this.#transform.destroy()
  }

  /** The decoder stops quietly where something begins that is none of its streams. */
  #unlessPadding(rest: Uint8Array): Problem | undefined {
    if (rest.every(this.#isPadding)) return undefined
    return { cut: false, reason: 'other bytes follow its end' }
  }
}

class PlainZstd implements Decoder {
  readonly #decompress: Decompress
  #ready: Uint8Array[] = []

  constructor() {
    this.#decompress = new Decompress((chunk) => {
      if (chunk.length > 0) this.#ready.push(chunk)
    })
  }

  feed(piece: Uint8Array | undefined): Promise<Problem | undefined> {
    return Promise.resolve(this.#push(piece))
  }

  taken(): readonly Uint8Array[] {
    const chunks = this.#ready
    this.#ready = []
    return chunks
  }

  close(): void {
    this.#ready = []
  }

  #push(piece: Uint8Array | undefined): Problem | undefined {
    try {
      this.#decompress.push(piece ?? new Uint8Array(0), piece === undefined)
      return undefined
    } catch (error) {
      // Damage that it does not look for shows itself as any error of the language.
      if (!(error instanceof Error) || !('code' in error)) {
        return { cut: false, reason: 'it cannot be decoded' }
      }
      return { cut: error.code === ZstdErrorCode.UnexpectedEOF, reason: error.message }
    }
  }
}

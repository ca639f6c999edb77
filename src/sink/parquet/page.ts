import { crc32 } from 'node:zlib'
import { ByteBuffer } from './byte-buffer.ts'
import { plainCodec } from './codec.ts'
import type { Leaf } from './file-schema.ts'
import { appendHybrid, appendRun, bitWidth } from './hybrid.ts'
import type { Run } from './shred.ts'
import { ThriftWriter } from './thrift.ts'

/** Numbers of `Encoding` in parquet.thrift. */
export const encodings = { plain: 0, rle: 3, rleDictionary: 8 } as const

const pageTypes = { data: 0, dictionary: 2 } as const

/** Memory of one page that is kept for the next; a page of one huge value frees its own. */
const keptBytesMax = 8 << 20

/** The levels of one data page, a byte each until the page ends. */
export class PageLevels {
  readonly #leaf: Leaf
  readonly #definition = new ByteBuffer()
  readonly #repetition = new ByteBuffer()
  #hasEnded = false
  entries = 0

  constructor(leaf: Leaf) {
    this.#leaf = leaf
  }

  append(run: Run, from: number, to: number): void {
    const { definitionMax, repetitionMax } = this.#leaf
    if (definitionMax > 0) {
      if (run.definition === undefined) this.#definition.fill(definitionMax, to - from)
      else {
        this.#definition.append(run.definition.subarray(from, to))
        this.#hasEnded = true
      }
    }
    if (repetitionMax > 0) {
      if (run.repetition === undefined) this.#repetition.fill(0, to - from)
      else this.#repetition.append(run.repetition.subarray(from, to))
    }
    this.entries += to - from
  }

  /** Moves the levels into a data page (format v1): repetition first, each with its length. */
  drainTo(out: ByteBuffer): void {
    const { definitionMax, repetitionMax } = this.#leaf
    if (repetitionMax > 0) {
      appendLevels(out, this.#repetition.written(), repetitionMax)
    }
    if (definitionMax > 0) {
      if (this.#hasEnded) appendLevels(out, this.#definition.written(), definitionMax)
      else {
        prefixed(out, () => {
          appendRun(out, definitionMax, this.entries, bitWidth(definitionMax))
        })
      }
    }
    this.#definition.clear()
    this.#repetition.clear()
    this.#hasEnded = false
    this.entries = 0
  }
}

function appendLevels(out: ByteBuffer, levels: Uint8Array, max: number): void {
  prefixed(out, () => {
    appendHybrid(out, levels, 0, levels.length, bitWidth(max))
  })
}

/** Writes the four-byte length of what `write` appends in front of it. */
function prefixed(out: ByteBuffer, write: () => void): void {
  const at = out.length
  out.fill(0, 4)
  write()
  out.view.setUint32(at, out.length - at - 4, true)
}

/** The pages of one column chunk. */
export class PageWriter {
  codec = plainCodec
  readonly #thrift = new ThriftWriter()
  #parts: Uint8Array[] = []
  #bytes = 0
  /** Bytes of the pages and their headers as if nothing were compressed. */
  uncompressedBytes = 0

  get bytes(): number {
    return this.#bytes
  }

  data(body: Uint8Array, entries: number, encoding: number): void {
    this.#page(body, pageTypes.data, () => {
      this.#thrift.struct(5, () => {
        this.#thrift.int32(1, entries)
        this.#thrift.int32(2, encoding)
        this.#thrift.int32(3, encodings.rle)
        this.#thrift.int32(4, encodings.rle)
      })
    })
  }

  dictionary(body: Uint8Array, size: number): void {
    this.#page(body, pageTypes.dictionary, () => {
      this.#thrift.struct(7, () => {
        this.#thrift.int32(1, size)
        this.#thrift.int32(2, encodings.plain)
      })
    })
  }

  /** The chunk in one piece; the writer is then ready for the next chunk. */
  take(): Uint8Array {
    const chunk = new Uint8Array(this.#bytes)
    let at = 0
    for (const part of this.#parts) {
      chunk.set(part, at)
      at += part.length
    }
    this.#parts = []
    this.#bytes = 0
    this.uncompressedBytes = 0
    return chunk
  }

  #page(body: Uint8Array, type: number, writeTypeHeader: () => void): void {
    const compressed = this.codec.compress(body)
    this.#thrift.int32(1, type)
    this.#thrift.int32(2, body.length)
    this.#thrift.int32(3, compressed.length)
    // Over the bytes as stored, so that a reader finds damage before it decompresses.
    this.#thrift.int32(4, crc32(compressed) | 0)
    writeTypeHeader()
    const header = this.#thrift.finish()
    // What is not compressed lies in a buffer that the next page overwrites.
    this.#parts.push(header, compressed === body ? body.slice() : compressed)
    this.#bytes += header.length + compressed.length
    this.uncompressedBytes += header.length + body.length
  }
}

/** Empties a page's buffer; a large one is given back instead of being kept. */
export function recycle(buffer: ByteBuffer): ByteBuffer {
  if (buffer.bytes.length > keptBytesMax) return new ByteBuffer()
  buffer.clear()
  return buffer
}

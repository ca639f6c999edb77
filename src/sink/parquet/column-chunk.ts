import { ByteBuffer } from './byte-buffer.ts'
import type { PageCodec } from './codec.ts'
import { buildDictionary, type Dictionary, sampleSize } from './dictionary.ts'
import type { Leaf } from './file-schema.ts'
import { appendHybrid, bitWidth } from './hybrid.ts'
import { encodings, PageLevels, PageWriter, recycle } from './page.ts'
import { nextPlace, runStart } from './pieces.ts'
import { appendPlain, packBooleans, type Part, plainBytes } from './plain.ts'
import type { Range } from './range.ts'
import { rangeFor } from './ranges.ts'
import type { Run } from './shred.ts'

/** Rows of a page, as Iceberg writers have it: a reader that skips by page skips finely enough. */
const pageRowsMax = 20_000

/** Rows handled at once, so that the passes over them find them in the processor's cache. */
const pieceRowsMax = 4096

export type ColumnChunk = {
  readonly bytes: Uint8Array
  readonly uncompressedBytes: number
  /** Place of the first data page behind that of a dictionary page; absent without dictionary. */
  readonly dictionaryBytes: number | undefined
  readonly encodings: readonly number[]
  /** Levels, which is values and nulls and empty lists. */
  readonly entries: number
  readonly nulls: number
  readonly range: Range
}

/** Encodes the chunks of one leaf, one for each row group, and keeps its memory between them. */
export class ColumnChunkEncoder {
  readonly #leaf: Leaf
  readonly #pageBytes: number
  readonly #levels: PageLevels
  readonly #pages: PageWriter
  #values = new ByteBuffer()
  #body = new ByteBuffer()
  /** False once a dictionary did not pay: the next row group will be alike. */
  #triesDictionary = true

  constructor(leaf: Leaf, pageBytes: number) {
    this.#leaf = leaf
    this.#pageBytes = pageBytes
    this.#levels = new PageLevels(leaf)
    this.#pages = new PageWriter()
  }

  encode(runs: readonly Run[], codec: PageCodec): ColumnChunk {
    this.#pages.codec = codec
    const range = rangeFor(this.#leaf)
    const present = runs.reduce((sum, run) => sum + run.values.count, 0)
    const dictionary = this.#triesDictionary ? buildDictionary(this.#leaf, runs) : undefined
    let dictionaryBytes: number | undefined
    if (dictionary === undefined) {
      if (present >= sampleSize) this.#triesDictionary = false
      this.#plainPages(runs, range)
    } else {
      dictionaryBytes = this.#dictionaryPage(dictionary, range)
      this.#codePages(runs, dictionary)
    }
    const entries = runs.reduce((sum, run) => sum + run.entries, 0)
    return {
      uncompressedBytes: this.#pages.uncompressedBytes,
      bytes: this.#pages.take(),
      dictionaryBytes,
      encodings:
        dictionary === undefined
          ? [encodings.plain, encodings.rle]
          : [encodings.plain, encodings.rle, encodings.rleDictionary],
      entries,
      nulls: entries - present,
      range,
    }
  }

  #plainPages(runs: readonly Run[], range: Range): void {
    const leaf = this.#leaf
    this.#eachPiece(
      runs,
      plainBytes(leaf),
      (run, part) => {
        appendPlain(this.#values, leaf, run.column, part)
        range.add(run.column, part)
        return this.#values.length
      },
      () => {
        if (leaf.physical === 'boolean') packBooleans(this.#values)
        this.#endPage(encodings.plain)
      },
    )
  }

  #dictionaryPage(dictionary: Dictionary, range: Range): number {
    const { column, size } = dictionary
    const part = { values: { indices: undefined, first: 0, count: size }, from: 0, to: size }
    appendPlain(this.#values, this.#leaf, column, part)
    range.add(column, part)
    this.#pages.dictionary(this.#values.written(), size)
    this.#values = recycle(this.#values)
    return this.#pages.bytes
  }

  #codePages(runs: readonly Run[], dictionary: Dictionary): void {
    const width = bitWidth(dictionary.size - 1)
    let pageFrom = 0
    let done = 0
    this.#eachPiece(
      runs,
      (width + 7) >> 3,
      (_, part) => {
        done += part.to - part.from
        return ((done - pageFrom) * width) >> 3
      },
      () => {
        this.#values.byte(width)
        appendHybrid(this.#values, dictionary.codes, pageFrom, done, width)
        pageFrom = done
        this.#endPage(encodings.rleDictionary)
      },
    )
  }

  /** Walks the runs in pieces of whole rows and says where a page ends. */
  #eachPiece(
    runs: readonly Run[],
    fixedBytes: number,
    take: (run: Run, part: Part) => number,
    endPage: () => void,
  ): void {
    let pageRows = 0
    let pageBytes = 0
    for (const run of runs) {
      let place = runStart
      while (place.entries < run.entries) {
        const rowsMax = Math.min(pieceRowsMax, pageRowsMax - pageRows)
        const room = this.#pageBytes - pageBytes
        const next = nextPlace(run, place, this.#leaf, { fixedBytes, rowsMax, bytesMax: room })
        this.#levels.append(run, place.entries, next.entries)
        pageBytes = take(run, { values: run.values, from: place.values, to: next.values })
        pageRows += next.rows - place.rows
        place = next
        if (pageRows >= pageRowsMax || pageBytes >= this.#pageBytes) {
          endPage()
          pageRows = 0
          pageBytes = 0
        }
      }
    }
    if (pageRows > 0) endPage()
  }

  #endPage(encoding: number): void {
    const { entries } = this.#levels
    this.#levels.drainTo(this.#body)
    if (this.#body.length === 0) {
      this.#pages.data(this.#values.written(), entries, encoding)
    } else {
      this.#body.append(this.#values.written())
      this.#pages.data(this.#body.written(), entries, encoding)
    }
    this.#values = recycle(this.#values)
    this.#body = recycle(this.#body)
  }
}

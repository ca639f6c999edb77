import { isUtf8 } from 'node:buffer'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { JsonCursor } from './json-cursor.ts'
import { RecordFault } from './record-fault.ts'
import type { ParseBounds, ParsedChanges, ParseStop, RecordParser } from './record-parser.ts'

/** What becomes of each record: columns of a table, or what its types are. */
export interface JsonSink {
  /** Takes the object at the cursor. @throws RecordFault; `truncate` then undoes what was taken */
  read(cursor: JsonCursor, line: number): void
  /** Forgets everything behind the first `records` records since the last `take`. */
  truncate(records: number): void
  take(records: number): ColumnBatch
  /** What the records taken last do, where they are changes; lines as `read` was told them. */
  takeChanges?(): ParsedChanges
  /** See `RecordParser`. */
  readonly isOpen?: boolean
}

/** One JSON object a line. Lines of nothing but spaces are passed over. */
export class NdjsonParser implements RecordParser {
  readonly #sink: JsonSink
  readonly #cursor = new JsonCursor()
  #records = 0

  constructor(sink: JsonSink) {
    this.#sink = sink
  }

  get isOpen(): boolean {
    return this.#sink.isOpen === true
  }

  parse(data: Buffer, bounds: ParseBounds): ParseStop {
    const end = lineEnd(data, bounds)
    const cursor = this.#cursor
    let at = bounds.from
    let records = 0
    let lines = 0
    while (at < end) {
      cursor.start(data, at)
      const { losses } = cursor
      if (cursor.skipSpace() !== 10) {
        try {
          if (bounds.doubtful) checkText(data, at)
          this.#sink.read(cursor, bounds.line + lines)
          if (cursor.skipSpace() !== 10) throw cursor.unexpected('the end of the line')
          records += 1
          this.#records += 1
        } catch (error) {
          if (!(error instanceof RecordFault)) throw error
          this.#sink.truncate(this.#records)
          cursor.losses = losses
          const to = data.indexOf(10, at)
          const ended = to < bounds.to
          const bad = { fault: error, from: at, to }
          if (ended) lines += 1
          return { at: ended ? to + 1 : to, records, lines, why: 'bad', bad }
        }
      }
      const newline = cursor.at < bounds.to
      at = newline ? cursor.at + 1 : cursor.at
      if (newline) lines += 1
      else break
      if (records >= bounds.recordsMax || at >= bounds.stopAt) {
        return { at, records, lines, why: 'full' }
      }
    }
    return { at, records, lines, why: 'more' }
  }

  take(): { records: ColumnBatch; precisionLosses: number; changes?: ParsedChanges } {
    const records = this.#sink.take(this.#records)
    const precisionLosses = this.#cursor.losses
    this.#records = 0
    this.#cursor.losses = 0
    const changes = this.#sink.takeChanges?.()
    return { records, precisionLosses, ...(changes === undefined ? {} : { changes }) }
  }
}

/** End of the last whole line. An unended last line gets its newline behind the text. */
function lineEnd(data: Buffer, { from, to, final }: ParseBounds): number {
  if (final && to > from && data[to - 1] !== 10) {
    data[to] = 10
    return to + 1
  }
  const last = to > from ? data.lastIndexOf(10, to - 1) : -1
  return last >= from ? last + 1 : from
}

function checkText(data: Buffer, from: number): void {
  const to = data.indexOf(10, from)
  if (isUtf8(data.subarray(from, to))) return
  throw new RecordFault(firstBadByte(data, from, to), 'not UTF-8')
}

/** Index of the first byte that cannot be part of UTF-8 text. */
export function firstBadByte(data: Buffer, from: number, to: number): number {
  let good = from
  let bad = to
  // Cutting inside a character makes a valid prefix invalid, so only whole characters are compared.
  while (bad - good > 1) {
    let middle = (good + bad) >> 1
    while (middle > good && ((data[middle] ?? 0) & 0xc0) === 0x80) middle -= 1
    if (middle === good) break
    if (isUtf8(data.subarray(good, middle))) good = middle
    else bad = middle
  }
  return good
}

import { isUtf8 } from 'node:buffer'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { CsvScanner } from './csv-scanner.ts'
import { firstBadByte } from './ndjson-parser.ts'
import { RecordFault } from './record-fault.ts'
import { countLines, type ParseBounds, type ParseStop, type RecordParser } from './record-parser.ts'

/** What becomes of each record: columns of a table, or what its types are. */
export interface CsvSink {
  /** Takes the record just scanned. @throws RecordFault; `truncate` then undoes what was taken */
  read(data: Buffer, scanner: CsvScanner, line: number): void
  /** Forgets everything behind the first `records` records since the last `take`. */
  truncate(records: number): void
  take(records: number): ColumnBatch
  /** Values cut to micros since the last `take`. */
  losses: number
}

/** RFC 4180 records. Lines without any byte are passed over. */
export class CsvParser implements RecordParser {
  readonly #sink: CsvSink
  readonly #scanner: CsvScanner
  #skipHeader: boolean
  #records = 0

  /** @param options.skipHeader The text begins with the header. */
  constructor(
    sink: CsvSink,
    options: { readonly delimiter: string; readonly skipHeader: boolean },
  ) {
    this.#sink = sink
    this.#scanner = new CsvScanner(options.delimiter)
    this.#skipHeader = options.skipHeader
  }

  parse(data: Buffer, bounds: ParseBounds): ParseStop {
    const { to, final } = bounds
    const scanner = this.#scanner
    const sink = this.#sink
    // Ends the digits of an unended last field, as a delimiter ends all others.
    if (final) data[to] = 10
    let at = bounds.from
    let records = 0
    let lines = 0
    while (at < to) {
      const blank = blankLine(data, at, to)
      if (blank > 0) {
        at += blank
        lines += 1
        if (at < bounds.stopAt) continue
        return { at, records, lines, why: 'full' }
      }
      const { losses } = sink
      try {
        if (!scanner.scan(data, at, to, final)) break
        if (this.#skipHeader) this.#skipHeader = false
        else {
          if (bounds.doubtful) checkText(data, at, scanner.end)
          sink.read(data, scanner, bounds.line + lines)
          records += 1
          this.#records += 1
        }
      } catch (error) {
        if (!(error instanceof RecordFault)) throw error
        sink.truncate(this.#records)
        sink.losses = losses
        const { end, next } = scanner
        const bad = { fault: error, from: at, to: end }
        lines += countLines(data, at, next)
        return { at: next, records, lines, why: 'bad', bad }
      }
      lines += scanner.lines
      at = scanner.next
      if (records >= bounds.recordsMax || at >= bounds.stopAt) {
        return { at, records, lines, why: 'full' }
      }
    }
    return { at, records, lines, why: 'more' }
  }

  take(): { records: ColumnBatch; precisionLosses: number } {
    const records = this.#sink.take(this.#records)
    const precisionLosses = this.#sink.losses
    this.#records = 0
    this.#sink.losses = 0
    return { records, precisionLosses }
  }
}

/** Bytes of an empty line at `at`, or 0. */
function blankLine(data: Buffer, at: number, to: number): number {
  if (data[at] === 10) return 1
  return data[at] === 13 && at + 1 < to && data[at + 1] === 10 ? 2 : 0
}

function checkText(data: Buffer, from: number, to: number): void {
  if (isUtf8(data.subarray(from, to))) return
  throw new RecordFault(firstBadByte(data, from, to), 'not UTF-8')
}

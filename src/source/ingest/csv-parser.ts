import { isUtf8 } from 'node:buffer'
import { type ColumnBuilder, finishBatch } from '../../core/columns/builder.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import { CsvScanner, fieldText } from './csv-scanner.ts'
import type { CsvShape } from './csv-header.ts'
import type { InputTarget } from './input.ts'
import { JsonCursor } from './json-cursor.ts'
import { nullReason, readValue, unknownField, valueReason } from './json-values.ts'
import { firstBadByte } from './ndjson-parser.ts'
import { RecordFault, shown } from './record-fault.ts'
import { countLines, type ParseBounds, type ParseStop, type RecordParser } from './record-parser.ts'
import { appendPlain } from './scalar-values.ts'
import { type ObjectNode, tableNode, type ValueNode } from './value-node.ts'

/**
 * RFC 4180 records straight into columns. Lines without any byte are passed over. ARRAY, MAP and ROW
 * columns take their field as JSON text.
 */
export class CsvParser implements RecordParser {
  readonly #node: ObjectNode
  readonly #builders: readonly ColumnBuilder[]
  readonly #table: string
  readonly #shape: CsvShape
  readonly #columns: readonly number[]
  /** Columns of the table that no field fills. */
  readonly #absent: readonly ValueNode[]
  readonly #scanner: CsvScanner
  readonly #nullText: Buffer
  readonly #cursor = new JsonCursor()
  #scratch = Buffer.allocUnsafeSlow(4096)
  #skipHeader: boolean
  #records = 0

  /** @param options.skipHeader The text begins with the header. */
  constructor(
    target: InputTarget,
    options: {
      readonly shape: CsvShape
      readonly columns: readonly number[]
      readonly skipHeader: boolean
    },
  ) {
    const { node, builders } = tableNode(target.fields)
    this.#node = node
    this.#builders = builders
    this.#table = target.table
    this.#shape = options.shape
    this.#columns = options.columns
    this.#absent = node.fields.filter((_, index) => !options.columns.includes(index))
    this.#scanner = new CsvScanner(options.shape.delimiter)
    this.#nullText = Buffer.from(options.shape.nullText)
    this.#skipHeader = options.skipHeader
  }

  parse(data: Buffer, bounds: ParseBounds): ParseStop {
    const { to, final } = bounds
    const scanner = this.#scanner
    const cursor = this.#cursor
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
        if (at >= bounds.stopAt) return { at, records, lines, why: 'full' }
        continue
      }
      const { losses } = cursor
      try {
        if (!scanner.scan(data, at, to, final)) break
        if (this.#skipHeader) this.#skipHeader = false
        else {
          if (bounds.doubtful) checkText(data, at, scanner.end)
          this.#append(data)
          records += 1
          this.#records += 1
        }
      } catch (error) {
        if (!(error instanceof RecordFault)) throw error
        for (const builder of this.#builders) builder.truncate(this.#records)
        cursor.losses = losses
        const { end, next } = scanner
        const bad = { fault: error, from: at, to: end }
        return { at: next, records, lines: lines + countLines(data, at, next), why: 'bad', bad }
      }
      lines += countLines(data, at, scanner.next)
      at = scanner.next
      if (records >= bounds.recordsMax || at >= bounds.stopAt) {
        return { at, records, lines, why: 'full' }
      }
    }
    return { at, records, lines, why: 'more' }
  }

  take(): { records: ColumnBatch; precisionLosses: number } {
    const records = { ...finishBatch(this.#builders), length: this.#records }
    const precisionLosses = this.#cursor.losses
    this.#records = 0
    this.#cursor.losses = 0
    return { records, precisionLosses }
  }

  #append(data: Buffer): void {
    const { bounds, fields } = this.#scanner
    if (fields !== this.#columns.length) {
      const other = this.#shape.hasHeader ? 'the header has' : `${this.#table} has`
      const count = fields === 1 ? '1 field' : `${fields} fields`
      throw new RecordFault(bounds[0] ?? 0, `${count}, ${other} ${this.#columns.length}`)
    }
    for (let index = 0; index < fields; index += 1) {
      const from = bounds[3 * index] ?? 0
      const to = bounds[3 * index + 1] ?? 0
      const kind = bounds[3 * index + 2] ?? 0
      const isNull = kind === 0 && this.#isNull(data, from, to)
      const node = this.#node.fields[this.#columns[index] ?? -1]
      if (node === undefined) {
        if (isNull) continue
        const name = this.#shape.names?.[index] ?? ''
        throw new RecordFault(from, unknownField(this.#node, name, this.#table), 'unknown-field')
      }
      if (!isNull) this.#appendField(node, data, from, to, kind)
      else if (node.nullable) node.builder.appendNull()
      else throw new RecordFault(from, nullReason(node, 'is null', this.#table))
    }
    for (const node of this.#absent) {
      check(node.nullable, 'a header without a NOT NULL column is refused')
      node.builder.appendNull()
    }
  }

  #appendField(node: ValueNode, data: Buffer, from: number, to: number, kind: number): void {
    let source = data
    let first = from
    let last = to
    if (kind === 2) {
      last = this.#unquote(data, from, to)
      source = this.#scratch
      first = 0
    }
    if (node.kind === 'array' || node.kind === 'map' || node.kind === 'row') {
      this.#appendJson(node, source, { first, last, at: from })
      return
    }
    const why = appendPlain(node, source, first, last, this.#cursor)
    if (why === undefined) return
    const text = JSON.stringify(shown(fieldText(data, from, to, kind)))
    throw new RecordFault(from, valueReason(node, text, why, this.#table))
  }

  /** The cursor ends at a newline, so a line break between tokens becomes another space of JSON. */
  #appendJson(
    node: ValueNode,
    source: Buffer,
    range: { readonly first: number; readonly last: number; readonly at: number },
  ): void {
    const json = Buffer.alloc(range.last - range.first + 1, 10)
    source.copy(json, 0, range.first, range.last)
    for (let at = 0; at < json.length - 1; at += 1) if (json[at] === 10) json[at] = 13
    this.#cursor.start(json, 0)
    try {
      readValue(this.#cursor, node, this.#table)
      if (this.#cursor.skipSpace() !== 10) throw this.#cursor.unexpected('the end of the field')
    } catch (error) {
      if (error instanceof RecordFault) throw new RecordFault(range.at, error.message, error.kind)
      throw error
    }
  }

  #isNull(data: Buffer, from: number, to: number): boolean {
    const text = this.#nullText
    if (to - from !== text.length) return false
    for (let index = 0; index < text.length; index += 1) {
      if (data[from + index] !== text[index]) return false
    }
    return true
  }

  #unquote(data: Buffer, from: number, to: number): number {
    if (to - from > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(2 * (to - from))
    let end = 0
    for (let at = from; at < to; at += 1) {
      this.#scratch[end++] = data[at] ?? 0
      if (data[at] === 34) at += 1
    }
    return end
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

import { type ColumnBuilder, finishBatch } from '../../core/columns/builder.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { check } from '../../core/never.ts'
import type { CsvShape } from './csv-header.ts'
import type { CsvSink } from './csv-parser.ts'
import { type CsvScanner, fieldText } from './csv-scanner.ts'
import type { InputTarget } from './input.ts'
import { JsonCursor } from './json-cursor.ts'
import { nullReason, readValue, unknownField, valueReason } from './json-values.ts'
import { RecordFault, shown } from './record-fault.ts'
import { appendPlain } from './scalar-values.ts'
import { type ObjectNode, tableNode, type ValueNode } from './value-node.ts'

/**
 * CSV records straight into the columns of a table. ARRAY, MAP and ROW columns take their field as
 * JSON text.
 */
export class CsvColumns implements CsvSink {
  readonly #node: ObjectNode
  readonly #builders: readonly ColumnBuilder[]
  readonly #table: string
  readonly #shape: CsvShape
  readonly #columns: readonly number[]
  /** Columns of the table that no field fills. */
  readonly #absent: readonly ValueNode[]
  readonly #nullText: Buffer
  readonly #cursor = new JsonCursor()
  #scratch = Buffer.allocUnsafeSlow(4096)

  /** @param columns Which column each field of a record belongs to; see `csvColumns`. */
  constructor(target: InputTarget, shape: CsvShape, columns: readonly number[]) {
    const { node, builders } = tableNode(target.fields, target.bucketKey)
    this.#node = node
    this.#builders = builders
    this.#table = target.table
    this.#shape = shape
    this.#columns = columns
    this.#absent = node.fields.filter((_, index) => !columns.includes(index))
    this.#nullText = Buffer.from(shape.nullText)
  }

  get losses(): number {
    return this.#cursor.losses
  }

  set losses(count: number) {
    this.#cursor.losses = count
  }

  read(data: Buffer, scanner: CsvScanner): void {
    const { bounds, fields } = scanner
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

  truncate(records: number): void {
    for (const builder of this.#builders) builder.truncate(records)
  }

  take(records: number): ColumnBatch {
    return { ...finishBatch(this.#builders), length: records }
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
    if (node.isKey && first === last) {
      throw new RecordFault(from, nullReason(node, 'is empty', this.#table))
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

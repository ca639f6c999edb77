import type { ColumnBatch } from '../../core/columns/column.ts'
import { parseJson } from '../../core/json64.ts'
import { type Observed, observedField } from '../../core/schema/observe.ts'
import type { Field } from '../../core/schema/types.ts'
import { ConnectFault, envelopeColumns } from './connect-schema.ts'
import { refuseEnvelope } from './change-columns.ts'
import { scanEnvelope } from './envelope.ts'
import type { ChangeForm } from './input.ts'
import type { JsonCursor } from './json-cursor.ts'
import type { JsonSink } from './ndjson-parser.ts'
import { RecordFault } from './record-fault.ts'
import { isUnavailableText } from './unavailable.ts'

/** Notes what the value at the cursor is. */
export type Observe = (cursor: JsonCursor, observed: Observed, line: number) => void

/**
 * Learns the columns of a table from changes: from the rows before and after, or from the Connect
 * schema that stands beside them.
 */
export class ChangeObserver implements JsonSink {
  /** What the first schema of the sample says; undefined when there was none. */
  connectFields: readonly Field[] | undefined
  readonly #root: Observed
  readonly #form: ChangeForm
  readonly #observe: Observe
  #rows = 0

  constructor(root: Observed, form: ChangeForm, observe: Observe) {
    this.#root = root
    this.#form = form
    this.#observe = observe
  }

  read(cursor: JsonCursor, line: number): void {
    if (this.#form.kind === 'debezium') {
      this.#readEnvelope(cursor, line)
      return
    }
    const start = cursor.at
    if (cursor.skipSpace() !== 123) throw cursor.unexpected('an object')
    // Checked as a whole first, so that a bad record leaves no trace in the types.
    cursor.skipValue()
    if (cursor.skipSpace() !== 10) throw cursor.unexpected('the end of the line')
    const end = cursor.at
    const skipped = this.#form.kind === 'op-column' ? this.#form.column : undefined
    cursor.at = start
    this.#members(cursor, (name, at) => {
      refuseEnvelope(cursor, name, at)
    })
    cursor.at = start
    this.#members(cursor, (name) => {
      this.#field(cursor, name, name === skipped, line)
    })
    cursor.at = end
    this.#rows += 1
  }

  truncate(): void {
    // Nothing was kept of a bad record.
  }

  /** Tombstones teach nothing. */
  take(): ColumnBatch {
    const length = this.#rows
    this.#rows = 0
    return { length, columns: [] }
  }

  #readEnvelope(cursor: JsonCursor, line: number): void {
    const envelope = scanEnvelope(cursor)
    if (envelope === undefined) return
    if (cursor.skipSpace() !== 10) throw cursor.unexpected('the end of the line')
    const { before, after, end, schemaFrom, schemaTo } = envelope
    if (schemaFrom !== -1 && this.connectFields === undefined) {
      const text = cursor.data.subarray(schemaFrom, schemaTo)
      try {
        this.connectFields = envelopeColumns(parseJson(text, { name: 'schema' })).fields
      } catch (error) {
        if (!(error instanceof ConnectFault)) throw error
        throw new RecordFault(schemaFrom, error.message, 'value', error.fix)
      }
    }
    for (const at of [after, before]) {
      if (at === -1) continue
      cursor.at = at
      this.#members(cursor, (name) => {
        this.#field(cursor, name, false, line)
      })
      this.#rows += at === after || after === -1 ? 1 : 0
    }
    cursor.at = end
  }

  /** The cursor is behind the name, which `each` may read the value of. */
  #members(cursor: JsonCursor, each: (name: string, at: number) => void): void {
    cursor.at += 1
    if (cursor.skipSpace() === 125) {
      cursor.at += 1
      return
    }
    for (;;) {
      cursor.skipSpace()
      const { at } = cursor
      cursor.scanString()
      const name = cursor.text.toString('utf8', cursor.textFrom, cursor.textTo)
      const behind = cursor.at
      each(name, at)
      if (cursor.at === behind) {
        cursor.expect(58, '":"')
        cursor.skipValue()
      }
      const byte = cursor.skipSpace()
      cursor.at += 1
      if (byte === 125) return
    }
  }

  #field(cursor: JsonCursor, name: string, isSkipped: boolean, line: number): void {
    cursor.expect(58, '":"')
    cursor.skipSpace()
    if (isSkipped || (this.#form.kind === 'debezium' && isUnavailableText(cursor))) {
      cursor.skipValue()
      if (!isSkipped) observedField(this.#root, name)
      return
    }
    this.#observe(cursor, observedField(this.#root, name), line)
  }
}

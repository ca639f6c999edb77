import { type ColumnBuilder, finishBatch } from '../../core/columns/builder.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import type { InputTarget } from './input.ts'
import type { JsonCursor } from './json-cursor.ts'
import { readObject } from './json-values.ts'
import type { JsonSink } from './ndjson-parser.ts'
import { type ObjectNode, tableNode } from './value-node.ts'

/** JSON objects straight into the columns of a table. */
export class JsonColumns implements JsonSink {
  readonly #node: ObjectNode
  readonly #builders: readonly ColumnBuilder[]
  readonly #table: string

  constructor(target: InputTarget) {
    const { node, builders } = tableNode(target.fields, target.bucketKey)
    this.#node = node
    this.#builders = builders
    this.#table = target.table
  }

  read(cursor: JsonCursor): void {
    readObject(cursor, this.#node, this.#table)
  }

  truncate(records: number): void {
    for (const builder of this.#builders) builder.truncate(records)
  }

  take(records: number): ColumnBatch {
    return { ...finishBatch(this.#builders), length: records }
  }
}

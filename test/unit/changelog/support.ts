import { changeSymbols } from '../../../src/core/change-type.ts'
import { encodeKeys } from '../../../src/core/columns/key-codec.ts'
import { batchToRows, type Row, rowsToBatch } from '../../../src/core/columns/rows.ts'
import type { Field } from '../../../src/core/schema/types.ts'
import {
  changeOp,
  type ChangelogOptions,
  type KeptColumns,
} from '../../../src/source/changelog/change-batch.ts'
import { applyChanges, keyText } from '../../../src/source/changelog/changelog.ts'

export const fields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
  { name: 'status', type: { kind: 'string', nullable: true } },
  { name: 'version', type: { kind: 'bigint', nullable: true } },
]

export type Change = readonly ['put' | 'delete' | 'before', Row]

const ops = { put: changeOp.upsert, delete: changeOp.delete, before: changeOp.before }

export const lastRow: ChangelogOptions = {
  engine: { kind: 'last_row' },
  image: 'full',
  deletes: 'allow',
}

/** The state of one bucket as a map, changed batch by batch like a store. */
export class Bucket {
  readonly rows = new Map<string, Uint8Array>()
  readonly log: (readonly [string, Row])[] = []
  readonly options: ChangelogOptions

  constructor(options: ChangelogOptions = lastRow) {
    this.options = options
  }

  /** @returns for each change, how many records of the changelog there are in all up to it */
  apply(changes: readonly Change[], kept?: KeptColumns): readonly number[] {
    const given = changes.map(([, row]) => row)
    const records = rowsToBatch(fields, given)
    const key = records.columns[0]
    if (key === undefined) throw new Error('there is a key')
    const keys = encodeKeys([key], records.length)
    const before = keys.map((each) => this.rows.get(keyText(each)))
    const made = applyChanges(
      fields,
      {
        records,
        ops: Uint8Array.from(changes, ([op]) => ops[op]),
        ...(kept === undefined ? {} : { kept }),
      },
      keys,
      before,
      this.options,
    )
    const start = this.log.length
    batchToRows(fields, made.records).forEach((row, at) => {
      this.log.push([changeSymbols[made.changes[at] ?? -1] ?? '?', row])
    })
    for (const [text, { row }] of made.writes) {
      if (row === undefined) this.rows.delete(text)
      else this.rows.set(text, row)
    }
    return [...made.ends].map((end) => start + end)
  }
}

export function row(id: number, name: string | null, status: string | null, version?: number): Row {
  return { id: BigInt(id), name, status, version: version === undefined ? null : BigInt(version) }
}

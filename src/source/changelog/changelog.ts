import { changeType } from '../../core/change-type.ts'
import { type ColumnBuilder, columnBuilder, finishBatch } from '../../core/columns/builder.ts'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { appendRow, encodeRow, encodeRows } from '../../core/columns/row-codec.ts'
import { SluiceError } from '../../core/errors.ts'
import { check } from '../../core/never.ts'
import type { Field } from '../../core/schema/types.ts'
import { type ChangeBatch, changeOp, type ChangelogOptions } from './change-batch.ts'
import { isOlderVersion } from './version-order.ts'

/** What a batch of changes comes to. */
export type Changelog = {
  readonly records: ColumnBatch
  /** One `ChangeType` for each record. */
  readonly changes: Uint8Array
  /** For each change, how many records there are up to and with it. */
  readonly ends: Uint32Array
  /** The row of each key that changed, or undefined where it has none any more. */
  readonly writes: ReadonlyMap<string, Write>
}

export type Write = { readonly key: Uint8Array; readonly row: Uint8Array | undefined }

/** A key's bytes as a map holds them. */
export function keyText(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
}

/** Which keys have to be looked up before the changes can be applied. */
export function needsRow(batch: ChangeBatch, options: ChangelogOptions, row: number): boolean {
  if (batch.ops[row] === changeOp.none) return false
  if (options.image === 'full' || options.engine.kind !== 'last_row') return true
  return batch.ops[row] !== changeOp.upsert || batch.kept !== undefined
}

/**
 * Turns changes into records of the changelog and rows of the store, as Fluss does (0.9,
 * `KvTablet`): an upsert of a key without a row is `+I`, of one with a row `-U` and `+U`; a delete of a
 * row is `-D` with the row; a delete of nothing is nothing. Rewriting an equal row is an update.
 *
 * @param before The row of each change's key before the batch; only where `needsRow` says so.
 * @throws SluiceError RECORD_REFUSED with the `row` in the batch: nothing of the batch counts then
 */
export function applyChanges(
  fields: readonly Field[],
  batch: ChangeBatch,
  keys: readonly Uint8Array[],
  before: readonly (Uint8Array | undefined)[],
  options: ChangelogOptions,
): Changelog {
  const { records, ops } = batch
  const rows = encodeRows(records)
  const out = new RecordsOut(fields)
  const ends = new Uint32Array(records.length)
  const texts = keys.map(keyText)
  const writes = new Map<string, Write>()

  for (let at = 0; at < records.length; at += 1) {
    const [key, text, fresh] = [keys[at], texts[at], rows[at]]
    check(key !== undefined && text !== undefined && fresh !== undefined, 'each change has a key')
    const written = writes.get(text)
    const old = written === undefined ? before[at] : written.row
    const isPaired =
      ops[at] === changeOp.before &&
      at + 1 < records.length &&
      ops[at + 1] === changeOp.upsert &&
      texts[at + 1] === text
    if (!isPaired && ops[at] === changeOp.upsert) {
      const row = batch.kept === undefined ? fresh : mergedRow(fields, batch, at, old, fresh)
      if (isTaken(fields, row, old, options)) {
        out.upsert(row, old, options)
        writes.set(text, { key, row })
      }
    } else if (!isPaired && ops[at] !== changeOp.none && options.deletes !== 'ignore') {
      if (options.deletes === 'disable') throw refusedDelete(at)
      if (old !== undefined) {
        out.add(changeType.delete, old)
        writes.set(text, { key, row: undefined })
      }
    }
    ends[at] = out.length
  }
  return { ...out.finish(), ends, writes }
}

/** Collects the records of a changelog. */
class RecordsOut {
  readonly #fields: readonly Field[]
  readonly #builders: readonly ColumnBuilder[]
  readonly #changes: number[] = []

  constructor(fields: readonly Field[]) {
    this.#fields = fields
    // Of a deleted row that came with its key alone, the other columns are null.
    this.#builders = fields.map(({ type }) => columnBuilder(type))
  }

  get length(): number {
    return this.#changes.length
  }

  add(change: number, row: Uint8Array): void {
    appendRow(this.#builders, row, this.#fields)
    this.#changes.push(change)
  }

  upsert(row: Uint8Array, old: Uint8Array | undefined, { image, engine }: ChangelogOptions): void {
    if (image === 'wal') {
      // The default engine has not looked whether there is a row.
      const isBlind = engine.kind === 'last_row'
      this.add(isBlind || old !== undefined ? changeType.updateAfter : changeType.insert, row)
    } else if (old === undefined) {
      this.add(changeType.insert, row)
    } else {
      this.add(changeType.updateBefore, old)
      this.add(changeType.updateAfter, row)
    }
  }

  finish(): { readonly records: ColumnBatch; readonly changes: Uint8Array } {
    return { records: finishBatch(this.#builders), changes: Uint8Array.from(this.#changes) }
  }
}

function isTaken(
  fields: readonly Field[],
  row: Uint8Array,
  old: Uint8Array | undefined,
  { engine }: ChangelogOptions,
): boolean {
  if (old === undefined) return true
  switch (engine.kind) {
    case 'last_row':
      return true
    case 'first_row':
      return false
    case 'versioned':
      return !isOlderVersion(fields, engine.column, row, old)
  }
}

/** The record's row with the values that it keeps from the row there is. */
function mergedRow(
  fields: readonly Field[],
  batch: ChangeBatch,
  at: number,
  old: Uint8Array | undefined,
  fresh: Uint8Array,
): Uint8Array {
  const { records, kept } = batch
  const keeps = (column: number): boolean => {
    const bitmap = kept?.columns[column]
    return bitmap !== undefined && (((bitmap[at >> 3] ?? 0) >> (at & 7)) & 1) === 1
  }
  const keptColumns = fields.flatMap((field, column) => (keeps(column) ? [field] : []))
  if (keptColumns.length === 0) return fresh
  if (old === undefined) {
    if (kept?.without === 'null') return fresh
    throw new SluiceError(
      'RECORD_REFUSED',
      `record ${at} of the batch keeps the old value of "${keptColumns[0]?.name ?? ''}", and its key has no row`,
      { details: { row: at, column: keptColumns[0]?.name, reason: 'no-old-value' } },
    )
  }
  const builders = fields.map(({ type }) => columnBuilder({ ...type, nullable: true }))
  appendRow(builders, old, fields)
  const before = finishBatch(builders)
  return encodeRow(
    fields.map((_, column) => {
      const from = keeps(column) ? { batch: before, row: 0 } : { batch: records, row: at }
      const cell = from.batch.columns[column]
      check(cell !== undefined, 'a batch has the columns of the table')
      return { column: cell, row: from.row }
    }),
  )
}

function refusedDelete(row: number): SluiceError {
  return new SluiceError(
    'RECORD_REFUSED',
    `record ${row} of the batch is a delete, which the table does not take`,
    { details: { row, reason: 'delete-disabled' }, fix: 'set table.delete.behavior to ignore' },
  )
}

import { isSluiceError, type SluiceError } from '../../core/errors.ts'
import { type ChangeBatch, changeOp } from '../../source/changelog/change-batch.ts'
import { takeChanges } from '../../source/embedded/split-changes.ts'
import type { InputBatch } from '../../source/ingest/input.ts'
import { markOf, placeOf, type Taken } from './append-records.ts'
import type { IngestContext } from './ingest-input.ts'
import type { OpenedInput } from './open-source.ts'

/**
 * Applies a batch to a primary-key table. A change that the row of its key does not allow makes its
 * record a bad one: it is set aside, or everything before it is applied and reading ends.
 *
 * @param before Changes of the input before the batch.
 */
export async function appendChanges(
  context: IngestContext,
  input: OpenedInput,
  batch: InputBatch,
  before: bigint,
): Promise<Taken> {
  let changes: ChangeBatch = {
    records: batch.records,
    // The rows of an input that does not say what they do.
    ops: batch.changes?.ops ?? new Uint8Array(batch.records.length).fill(changeOp.upsert),
    ...(batch.changes?.kept === undefined ? {} : { kept: batch.changes.kept }),
  }
  let mark = markOf(input, batch, before + BigInt(changes.ops.length))
  let refused: SluiceError | undefined
  for (;;) {
    try {
      const place = placeOf(input, mark)
      const result = await context.source.change(context.opened.table.id, [changes], {
        input: place,
        signal: context.signal,
      })
      return { mark, result, refused }
    } catch (error) {
      const row = isSluiceError(error, 'RECORD_REFUSED') ? error.details['row'] : undefined
      if (!isSluiceError(error) || typeof row !== 'number' || batch.changes === undefined)
        throw error
      const found = batch.changes.refuse(row, reasonOf(error))
      if (found.error === undefined) {
        await context.quarantine.keep({ id: input.id, name: input.name }, [found.bad])
        // It keeps its place, so that a replay counts the changes after it as this run does.
        const ops = Uint8Array.from(changes.ops).fill(changeOp.none, found.first, found.end)
        changes = { ...changes, ops }
        continue
      }
      refused = found.error
      changes = takeChanges(changes, rowsUntil(found.first))
      const place = { ...found.before, endedWithoutNewline: false }
      mark = markOf(input, place, before + BigInt(found.first))
    }
  }
}

function rowsUntil(end: number): Int32Array {
  return Int32Array.from({ length: end }, (_, row) => row)
}

/** The record is named by its line, not by its place in a batch. */
function reasonOf(error: SluiceError): string {
  const { column, reason } = error.details
  switch (reason) {
    case 'no-old-value':
      return `${String(column)} keeps its old value, and there is no row of this key`
    case 'delete-disabled':
      return 'it deletes a row, which the table does not allow (table.delete.behavior)'
    default:
      return error.message
  }
}

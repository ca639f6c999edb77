import { basename } from 'node:path'
import type { SluiceError } from '../../core/errors.ts'
import type { AppendInput, AppendResult } from '../../source/embedded/embedded-table.ts'
import type { InputBatch } from '../../source/ingest/input.ts'
import type { InputProgress } from '../../source/ports.ts'
import type { IngestContext } from './ingest-input.ts'
import type { OpenedInput } from './open-source.ts'

/** What became of one batch. */
export type Taken = {
  /** Where the input is with it. */
  readonly mark: InputProgress
  readonly result: AppendResult
  /** Why reading ends here. */
  readonly refused?: SluiceError | undefined
}

/** Appends a batch to a log table. */
export async function appendRecords(
  { source, opened, signal }: IngestContext,
  input: OpenedInput,
  batch: InputBatch,
): Promise<Taken> {
  const mark = markOf(input, batch, batch.startRecord + BigInt(batch.records.length))
  const result = await source.append(opened.table.id, batch.records, {
    input: { ...placeOf(input, mark), startOrdinal: batch.startRecord },
    signal,
  })
  return { mark, result }
}

/** Where the input is once `batch` is in. @param records Of the input, up to there. */
export function markOf(
  input: OpenedInput,
  batch: Pick<InputBatch, 'endPosition' | 'digest' | 'blocks' | 'endedWithoutNewline'>,
  records: bigint,
): InputProgress {
  // An Arrow stream has no digest.
  const digest = batch.digest()
  return {
    name: basename(input.name),
    position: String(batch.endPosition),
    records,
    ...(digest === '' ? {} : { digest }),
    ...(batch.blocks === undefined ? {} : { blocks: batch.blocks }),
    extra: new Map(),
    ...(batch.endedWithoutNewline || input.isWhole
      ? {
          notes: {
            ...(batch.endedWithoutNewline ? { endedWithoutNewline: 'true' } : {}),
            ...(input.isWhole ? { whole: 'true' } : {}),
          },
        }
      : {}),
  }
}

/** A mark as the source takes it. */
export function placeOf(input: OpenedInput, mark: InputProgress): AppendInput {
  return {
    id: input.id,
    name: mark.name,
    position: mark.position,
    ...(mark.digest === undefined ? {} : { digest: mark.digest }),
    blocks: mark.blocks,
    ...(mark.notes === undefined ? {} : { notes: mark.notes }),
    startPosition: '0',
  }
}

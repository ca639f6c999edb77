import { errorCodes, isSluiceError, type SluiceError } from '../../core/errors.ts'
import { counted } from '../../core/text.ts'
import type { EmbeddedSource } from '../../source/embedded/embedded-source.ts'
import type { InputBatch, InputReader } from '../../source/ingest/input.ts'
import type { SessionTable } from '../tiering-session.ts'
import { explainChanged } from './mended-input.ts'
import { appendChanges } from './append-changes.ts'
import { appendRecords } from './append-records.ts'
import { openSource, type OpenedInput, type SourceContext } from './open-source.ts'
import { orStopped } from './or-stopped.ts'
import type { Quarantine } from './quarantine.ts'
import type { InputReport } from './tier-types.ts'

export type IngestContext = SourceContext & {
  readonly opened: SessionTable
  readonly source: EmbeddedSource
  readonly quarantine: Quarantine
  readonly progress: () => { readonly committed: bigint; readonly round: number }
}

export type IngestEnd = {
  readonly report: InputReport
  readonly notes: readonly string[]
  /** Why reading stopped, as at a bad record; everything before it was appended. */
  readonly refused: SluiceError | undefined
}

/**
 * Reads one input to its end and appends what the lake does not have.
 * @throws SluiceError INPUT_UNREADABLE, INPUT_CHANGED, DATA_CORRUPT, STOPPED before anything is read
 */
export async function ingestInput(context: IngestContext, path: string): Promise<IngestEnd> {
  const opening = openSource(context, path).catch(async (error: unknown) => {
    throw await explainChanged(error, context.request.inputId, context.quarantine)
  })
  const input = await orStopped(opening, context.signal)
  let records = input.progress?.records ?? 0n
  let alreadyThere = records
  let last = input.progress
  let losses = 0
  let [upserts, deletes, tombstones] = [0, 0, 0]
  let refused: SluiceError | undefined
  try {
    for (;;) {
      const batch = await nextBatch(input.reader, context.signal)
      if (isSluiceError(batch)) {
        refused = batch
        break
      }
      if (batch === undefined) break
      await context.quarantine.keep({ id: input.id, name: input.name }, batch.bad)
      const append = context.primaryKey === undefined ? appendRecords : appendChanges
      const taken = await unlessStopped(append(context, input, batch, records), context.signal)
      if (taken === undefined) break
      const { mark, result } = taken
      records = mark.records
      alreadyThere += BigInt(result.alreadyThere)
      losses += batch.precisionLosses
      upserts += result.upserts ?? 0
      deletes += result.deletes ?? 0
      tombstones += batch.changes?.tombstones ?? 0
      last = mark
      tell(context, input, records)
      refused = taken.refused
      if (refused !== undefined || batch.ended || context.signal.aborted) break
    }
  } finally {
    const closed = input.reader.close()
    // A read of a pipe that is under way ends only when its writer does something.
    if (context.signal.aborted) void closed.catch(() => undefined)
    else await closed
  }
  if (last !== undefined) context.known.set(input.id, last)
  return {
    report: {
      id: input.id,
      name: input.name,
      records,
      bytes: input.reader.progress().bytesRead,
      position: last?.position ?? '0',
      alreadyThere,
      valuesCut: losses,
      ...(context.primaryKey === undefined ? {} : { changes: { upserts, deletes, tombstones } }),
      exactlyOnce: input.isReplayable,
    },
    notes: notesOf(input, losses),
    refused,
  }
}

/** What ends reading is no failure of what came before it. */
async function nextBatch(
  reader: InputReader,
  signal: AbortSignal,
): Promise<InputBatch | SluiceError | undefined> {
  try {
    return await unlessStopped(orStopped(reader.next(), signal), signal)
  } catch (error) {
    if (isOfInput(error)) return error
    throw error
  }
}

/** What the work gives; nothing if the signal ended it. */
async function unlessStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isSluiceError(error, 'STOPPED') && signal.aborted) return undefined
    throw error
  }
}

/** Whether an error says that an input, or the table it is for, does not let it be read on. */
export function isOfInput(error: unknown): error is SluiceError {
  return isSluiceError(error) && [2, 3].includes(errorCodes[error.code].exit)
}

function tell(context: IngestContext, input: OpenedInput, records: bigint): void {
  const { bytesRead, bytesTotal } = input.reader.progress()
  context.hooks.onEvent({
    event: 'progress',
    input: input.name,
    bytes: bytesRead,
    ...(bytesTotal === undefined || context.request.follow ? {} : { bytesTotal }),
    records,
    ...context.progress(),
  })
}

function notesOf(input: OpenedInput, losses: number): readonly string[] {
  const notes: string[] = []
  if (!input.isReplayable) {
    notes.push(
      `${input.name} cannot be read again, so a repeat adds its records again; name it with --input-id`,
    )
  }
  if (losses > 0) notes.push(`${counted(losses, 'value')} cut to microseconds, as declared`)
  return notes
}

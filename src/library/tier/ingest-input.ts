import { basename } from 'node:path'
import { errorCodes, isSluiceError, type SluiceError } from '../../core/errors.ts'
import { counted } from '../../core/text.ts'
import type { EmbeddedSource } from '../../source/embedded/embedded-source.ts'
import type { InputBatch, InputReader } from '../../source/ingest/input.ts'
import type { InputProgress } from '../../source/ports.ts'
import type { SessionTable } from '../tiering-session.ts'
import { explainChanged } from './mended-input.ts'
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
      const mark = markOf(input, batch)
      const append = context.source.append(context.opened.table.id, batch.records, {
        input: {
          id: input.id,
          name: mark.name,
          position: mark.position,
          ...(mark.digest === undefined ? {} : { digest: mark.digest }),
          blocks: mark.blocks,
          ...(mark.notes === undefined ? {} : { notes: mark.notes }),
          startOrdinal: batch.startRecord,
          startPosition: '0',
        },
        signal: context.signal,
      })
      const result = await unlessStopped(append, context.signal)
      if (result === undefined) break
      records = mark.records
      alreadyThere += BigInt(result.alreadyThere)
      losses += batch.precisionLosses
      last = mark
      tell(context, input, records)
      if (batch.ended || context.signal.aborted) break
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

/** Where the input is once `batch` is in. */
function markOf(input: OpenedInput, batch: InputBatch): InputProgress {
  // An Arrow stream has no digest.
  const digest = batch.digest()
  return {
    name: basename(input.name),
    position: String(batch.endPosition),
    records: batch.startRecord + BigInt(batch.records.length),
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

import { randomUUID } from 'node:crypto'
import { basename } from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import type { Clock } from '../../core/ports.ts'
import type { Field } from '../../core/schema/types.ts'
import { identifyInput, type KnownInput } from '../../source/ingest/identify.ts'
import { InputBytes } from '../../source/ingest/input-bytes.ts'
import { inputChanged } from '../../source/ingest/input-changed.ts'
import { detectFormat } from '../../source/ingest/input-format.ts'
import type {
  CsvOptions,
  InputFormat,
  InputReader,
  ResumePoint,
} from '../../source/ingest/input.ts'
import { openInput } from '../../source/ingest/open-input.ts'
import type { InputProgress } from '../../source/ports.ts'
import type { TierHooks, TierRequest } from './tier-types.ts'

/** Inputs by id; grows as inputs of this run are read. */
export type KnownInputs = Map<string, InputProgress>

/** Inputs that were looked at and cannot be opened again: stdin, pipes. */
export type WaitingInputs = Map<string, InputBytes>

export type OpenedInput = {
  readonly id: string
  /** As the user wrote it. */
  readonly name: string
  readonly reader: InputReader
  /** Where the lake has it; undefined for a new input. */
  readonly progress: InputProgress | undefined
  /** A Parquet or Arrow file: it is one input as a whole. */
  readonly isWhole: boolean
  /** Whether a repeat of the command can tell its records from new ones. */
  readonly isReplayable: boolean
}

export type SourceContext = {
  readonly request: TierRequest
  readonly name: string
  readonly fields: readonly Field[]
  readonly bucketKey: string | undefined
  readonly primaryKey: readonly string[] | undefined
  readonly hooks: TierHooks
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly known: KnownInputs
  readonly waiting: WaitingInputs
}

/**
 * Opens an input for reading what the lake does not have of it.
 * @throws SluiceError INPUT_UNREADABLE, INPUT_CHANGED, DATA_CORRUPT
 */
export async function openSource(context: SourceContext, path: string): Promise<OpenedInput> {
  const { request } = context
  const waiting = context.waiting.get(path)
  context.waiting.delete(path)
  const looked = waiting ?? (await openBytes(context, path))
  const isFile = isReopenable(looked)
  const shortName = path === '-' ? 'stdin' : basename(path)
  const isNamed = request.inputId !== undefined
  const id = isNamed || !isFile ? (request.inputId ?? `${shortName}-${randomUUID()}`) : undefined
  let format: InputFormat
  let identity: { readonly id: string } | undefined
  try {
    format = await detectFormat(looked, request.inputFormat)
    if (isFile) {
      const known = id === undefined ? context.known : only(context.known, id)
      identity = await identifyFile(path, shortName, isWholeFormat(format), known, id)
    }
  } catch (error) {
    await looked.close()
    throw error
  }
  const isWhole = isWholeFormat(format)
  const chosen = id ?? identity?.id ?? ''

  let bytes = looked
  if (isFile) {
    await looked.close()
    bytes = await openBytes(context, path)
  }
  const progress = context.known.get(chosen)
  const reader = await openInput({
    bytes,
    target: {
      table: context.name,
      fields: context.fields,
      ...(context.bucketKey === undefined ? {} : { bucketKey: context.bucketKey }),
      ...(context.primaryKey === undefined ? {} : { primaryKey: context.primaryKey }),
      ...(request.changes === undefined ? {} : { changes: request.changes }),
    },
    format,
    csv: csvOptions(request),
    onBadRecord: request.onBadRecord,
    onUnknownField: request.onUnknownField,
    badRecordsMax: request.badRecordsMax,
    follow: request.follow,
    ...(progress === undefined ? {} : { resume: resumePoint(progress) }),
  })
  return {
    id: chosen,
    name: path === '-' ? 'stdin' : path,
    reader,
    progress,
    isReplayable: isFile || isNamed,
    isWhole,
  }
}

/** @throws SluiceError INPUT_UNREADABLE, with the nearest name where there is one. */
export async function openBytes(
  context: Pick<SourceContext, 'request' | 'hooks' | 'clock' | 'signal'>,
  path: string,
): Promise<InputBytes> {
  const { request, hooks, clock, signal } = context
  return InputBytes.open({
    name: path === '-' ? 'stdin' : path,
    location: path === '-' ? { kind: 'stream', bytes: stdinBytes(hooks) } : { kind: 'file', path },
    signal,
    ...(request.follow ? { follow: { clock, signal } } : {}),
  })
}

/** A regular file can be read twice; a pipe or a terminal only once. */
export function isReopenable(bytes: InputBytes): boolean {
  return bytes.bytesTotal !== undefined
}

export function csvOptions(request: TierRequest): CsvOptions {
  const { delimiter, hasHeader, nullText } = request.csv
  return {
    header: hasHeader,
    ...(delimiter === undefined ? {} : { delimiter }),
    ...(nullText === undefined ? {} : { nullText }),
  }
}

/**
 * Which known input a file is, by its content. With an id given only that one is asked for, and its
 * name does not matter.
 * @throws SluiceError INPUT_CHANGED
 */
async function identifyFile(
  path: string,
  name: string,
  whole: boolean,
  known: ReadonlyMap<string, InputProgress>,
  id: string | undefined,
): Promise<{ readonly id: string }> {
  const evidence = evidenceOf(known)
  const identity = await identifyInput({
    name,
    location: { kind: 'file', path },
    whole,
    known: evidence,
  })
  if (identity.kind === 'changed') throw inputChanged(name, identity.known, identity.found)
  const [asked] = id === undefined ? [] : evidence
  if (identity.kind === 'new' && asked !== undefined) {
    throw identity.failure ?? inputChanged(name, asked, identity.misses.get(asked.id))
  }
  return identity
}

function isWholeFormat(format: InputFormat): boolean {
  return format === 'parquet' || format === 'arrow'
}

/** Places whose digest the lake knows: where an input stands, or where a part that is in ends. */
function evidenceOf(known: ReadonlyMap<string, InputProgress>): readonly KnownInput[] {
  const evidence: KnownInput[] = []
  for (const [id, progress] of known) {
    const { position, digest, ...rest } = progress.ahead ?? seenOf(progress)
    if (digest === undefined || !/^\d{1,18}$/.test(position) || position === '0') continue
    const whole = progress.notes?.['whole'] === 'true'
    evidence.push({ ...rest, id, name: progress.name, position: BigInt(position), digest, whole })
  }
  return evidence
}

function seenOf({
  position,
  digest,
  blocks,
  tieredAt,
}: InputProgress): Pick<InputProgress, 'position' | 'digest' | 'blocks' | 'tieredAt'> {
  return {
    position,
    ...(digest === undefined ? {} : { digest }),
    ...(blocks === undefined ? {} : { blocks }),
    ...(tieredAt === undefined ? {} : { tieredAt }),
  }
}

function only(known: KnownInputs, id: string): ReadonlyMap<string, InputProgress> {
  const progress = known.get(id)
  return new Map(progress === undefined ? [] : [[id, progress]])
}

function resumePoint(progress: InputProgress): ResumePoint {
  if (!/^\d{1,18}$/.test(progress.position)) {
    throw new SluiceError(
      'INPUT_CHANGED',
      `${progress.name}: its position in the lake is ${progress.position}, which is no place in a file`,
      { details: { position: progress.position }, fix: 'choose another --input-id' },
    )
  }
  return {
    ...seenOf(progress),
    position: BigInt(progress.position),
    records: progress.records,
    digest: progress.digest ?? '',
    endedWithoutNewline: progress.notes?.['endedWithoutNewline'] === 'true',
  }
}

async function* stdinBytes(hooks: TierHooks): AsyncGenerator<Uint8Array> {
  for await (const chunk of hooks.stdin) {
    yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  }
}

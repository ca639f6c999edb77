import type { ColumnBatch } from '../../core/columns/column.ts'
import { type Row, rowsToBatch } from '../../core/columns/rows.ts'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import type { SourceTable } from '../ports.ts'
import { type ArrowRecords, readArrow } from './arrow-records.ts'
import type { AppendOptions, EmbeddedSource } from './embedded-source.ts'

export type Records = Row | readonly Row[] | AsyncIterable<Row> | ArrowRecords

/** End offset (exclusive) of each bucket once the call's records are in; only buckets that grew. */
export type Position = { readonly table: string; readonly ends: ReadonlyMap<number, bigint> }

export type WriteOptions = {
  readonly signal?: AbortSignal
  /** `reject` throws LOG_FULL and takes nothing; `wait`, the default, waits for room. */
  readonly whenFull?: 'wait' | 'reject'
  /** Your place in your own feed after these records, committed with the rows. */
  readonly input?: { readonly id: string; readonly position: string }
}

export interface LogTable {
  readonly kind: 'log'
  readonly name: string
  /**
   * Resolves when the records are accepted in order, in memory. Rows, arrays and Arrow data are taken
   * whole or refused whole. An async iterable is taken in chunks; `details.accepted` of its error says
   * how many of its rows were taken.
   *
   * @throws SluiceError RECORD_REFUSED, LOG_FULL, STOPPED; INPUT_UNREADABLE when the iterable throws.
   */
  append(records: Records, options?: WriteOptions): Promise<Position>
}

/** Rows of an async iterable that are appended at once. */
const chunkRows = 1024

/** The writing side of a log table, as users of the library see it. */
export function logTable(source: EmbeddedSource, table: SourceTable): LogTable {
  const { fields } = table.schema
  return {
    kind: 'log',
    name: table.name,
    append: async (records, options = {}) => {
      refuseOther(table.name, records)
      const ends = new Map<number, bigint>()
      const take = async (batches: readonly ColumnBatch[], isLast: boolean): Promise<void> => {
        const { ranges } = await source.append(table.id, batches, appendOptions(options, isLast))
        for (const { bucket, end } of ranges) ends.set(bucket, end)
      }
      if (isAsyncIterable(records)) {
        await takeChunks(records, options.signal, async (rows, isLast) => {
          // An empty last chunk still carries the position.
          await take([rowsToBatch(fields, rows)], isLast)
        })
      } else if (isArrow(records)) await take(readArrow(fields, records), true)
      else await take([rowsToBatch(fields, isRows(records) ? records : [records])], true)
      return { table: table.name, ends }
    },
  }
}

/** Chunks before the last stay open: a replay starts before all of them. */
function appendOptions({ input, ...rest }: WriteOptions, isLast: boolean): AppendOptions {
  if (input === undefined) return rest
  const { id, position } = input
  return { ...rest, input: isLast ? { id, name: id, position } : { id, name: id } }
}

async function takeChunks(
  rows: AsyncIterable<Row>,
  signal: AbortSignal | undefined,
  take: (rows: readonly Row[], isLast: boolean) => Promise<void>,
): Promise<void> {
  let accepted = 0
  let chunk: Row[] = []
  const flush = async (isLast: boolean): Promise<void> => {
    await take(chunk, isLast)
    accepted += chunk.length
    chunk = []
  }
  const iterator = rows[Symbol.asyncIterator]()
  let isDone = false
  try {
    for (;;) {
      const next = await unlessAborted(iterator.next(), signal)
      if (next.done === true) break
      if (chunk.length === chunkRows) await flush(false)
      chunk.push(next.value)
    }
    isDone = true
    await flush(true)
  } catch (error) {
    // Not awaited: an iterator that is stuck in `next` would never answer.
    if (!isDone) iterator.return?.().then(undefined, () => undefined)
    throw withAccepted(error, accepted)
  }
}

async function unlessAborted<Value>(
  value: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (signal === undefined) return value
  let stop: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(new SluiceError('STOPPED', 'the append was ended'))
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([value, aborted])
  } finally {
    if (stop !== undefined) signal.removeEventListener('abort', stop)
  }
}

/** The same error, which also says how many rows of the iterable were taken before it. */
function withAccepted(error: unknown, accepted: number): SluiceError {
  if (!isSluiceError(error)) {
    const reason = error instanceof Error ? error.message : String(error)
    return new SluiceError(
      'INPUT_UNREADABLE',
      `the rows to append ended with an error: ${reason}`,
      {
        details: { accepted },
        cause: error,
      },
    )
  }
  const { row } = error.details
  return new SluiceError(error.code, error.message, {
    details: {
      ...error.details,
      // Counted from the first row of the iterable, as its reader counts.
      ...(typeof row === 'number' ? { row: accepted + row } : {}),
      accepted,
    },
    ...(error.fix === undefined ? {} : { fix: error.fix }),
    ...(error.where === undefined ? {} : { where: error.where }),
    effect: error.effect,
    cause: error,
  })
}

/** Callers without types may give anything. */
function refuseOther(table: string, records: unknown): void {
  if (typeof records === 'object' && records !== null) return
  const found =
    records === undefined ? 'nothing' : records === null ? 'null' : `a ${typeof records}`
  throw new SluiceError('RECORD_REFUSED', `${table}: ${found} is no row`, {
    fix: 'append a row, an array or an async iterable of rows, or Arrow data',
  })
}

function isAsyncIterable(records: Records): records is AsyncIterable<Row> {
  return Symbol.asyncIterator in records && typeof records[Symbol.asyncIterator] === 'function'
}

/** Told by shape: the caller's copy of apache-arrow may be another one. Rows hold no functions. */
function isArrow(records: Row | readonly Row[] | ArrowRecords): records is ArrowRecords {
  if (records instanceof Uint8Array) return true
  return 'schema' in records && 'getChild' in records && typeof records.getChild === 'function'
}

function isRows(records: Row | readonly Row[]): records is readonly Row[] {
  return Array.isArray(records)
}

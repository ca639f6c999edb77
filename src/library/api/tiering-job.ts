import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { type Bucket, bucket, type Offset } from '../../core/ids.ts'
import { parseSize } from '../../core/size.ts'
import { systemClock } from '../../core/system.ts'
import type { RoundReport, TieringEvent } from '../../sink/job/events.ts'
import type { Position } from '../../source/index.ts'
import type { SessionTable } from '../tiering-session.ts'
import { checkMembers } from './check-options.ts'
import { type Duration, durationMs } from './duration.ts'
import { type Source, sourceParts } from './embedded-source.ts'
import { type Cancel, type Lake, partsOf, type Snapshot } from './lake.ts'

/** What a job did up to a moment. */
export type JobReceipt = {
  readonly ok: boolean
  readonly rows: bigint
  readonly files: number
  readonly bytes: bigint
  readonly rounds: readonly RoundReport[]
  readonly seconds: number
}

/**
 * One table's failure is an event; if the job as a whole cannot go on, `events` throws and the
 * promises below reject with that error.
 */
export interface TieringJob extends AsyncDisposable {
  /** Resolves once every record before `position` is in the lake. */
  committed(position: Position, options?: Cancel): Promise<Snapshot>
  /** Tiers all that was appended before the call, without waiting for freshness. */
  drain(options?: Cancel): Promise<JobReceipt>
  events(options?: Cancel): AsyncIterable<TieringEvent>
  /** Ends rounds with what they have read; gives up what does not fit into the timeout (30 s). */
  stop(options?: { readonly timeout?: Duration }): Promise<JobReceipt>
  close(): Promise<void>
}

export type TieringOptions = {
  readonly source: Source
  readonly lake: Lake
  /** Splits that are read at the same time; 4 unless given. */
  readonly readers?: number
  /** Memory for open row groups, such as `256MiB`; 192MiB unless given. */
  readonly memory?: string
}

/** Failures of one table, in a row, after which those who wait for it are told. */
const failuresMax = 3
/** Events kept for a reader of `events` that is slow. */
const eventsMax = 10_000

/** Starts tiering every table of the source into the lake, each by its freshness. */
export function startTiering(options: TieringOptions): TieringJob {
  checkMembers('startTiering', options, ['source', 'lake', 'readers', 'memory'])
  const { session, lake, tables } = sourceParts(options.source)
  if (partsOf(options.lake) !== partsOf(lake)) {
    throw new SluiceError('CONFIG_INVALID', 'the source was opened to resume from another lake')
  }
  const rounds: RoundReport[] = []
  const failures = new Map<string, { count: number; error: SluiceError }>()
  const watchers = new Set<() => void>()
  const readers = new Set<(event: TieringEvent) => void>()
  const startedAt = systemClock.monotonic()
  let failure: unknown
  let isStopping = false

  const job = session.start(() => isStopping, {
    ...(options.readers === undefined ? {} : { readers: options.readers }),
    ...(options.memory === undefined ? {} : { writerBytes: parseSize(options.memory, 'memory') }),
  })
  const tell = (): void => {
    for (const watcher of watchers) watcher()
  }
  job.done.then(tell, (error: unknown) => {
    failure = error
    tell()
  })
  session.listen((event) => {
    if (event.event === 'committed') {
      rounds.push(reportOf(event))
      failures.delete(event.table)
    }
    if (event.event === 'rejected') {
      const count = (failures.get(event.table)?.count ?? 0) + 1
      failures.set(event.table, { count, error: event.error })
    }
    for (const reader of readers) reader(event)
    tell()
  })

  const receipt = (): JobReceipt => ({
    ok: failure === undefined && failures.size === 0,
    rows: rounds.reduce((sum, round) => sum + round.rows, 0n),
    files: rounds.reduce((sum, round) => sum + round.files, 0),
    bytes: rounds.reduce((sum, round) => sum + round.bytes, 0n),
    rounds: [...rounds],
    seconds: (systemClock.monotonic() - startedAt) / 1000,
  })

  /** Waits until `isDone`, or until the job or one of these tables has failed for good. */
  const until = (
    isDone: () => boolean,
    waitingFor: () => readonly SessionTable[],
    signal: AbortSignal | undefined,
  ): Promise<void> =>
    new Promise((resolve, reject) => {
      const settle = (): void => {
        if (signal?.aborted === true) {
          end(() => {
            reject(stopped('the wait was ended by its signal'))
          })
          return
        }
        if (failure !== undefined) {
          end(() => {
            reject(asError(failure))
          })
          return
        }
        if (isDone()) {
          end(resolve)
          return
        }
        if (isStopping && job.view().phase === 'ended') {
          end(() => {
            reject(stopped('the job has ended before the records were in the lake'))
          })
          return
        }
        for (const { table } of waitingFor()) {
          const failed = failures.get(table.name)
          if (failed !== undefined && failed.count >= failuresMax) {
            end(() => {
              reject(failed.error)
            })
            return
          }
        }
        return undefined
      }
      const end = (finish: () => void): void => {
        watchers.delete(settle)
        signal?.removeEventListener('abort', settle)
        finish()
      }
      watchers.add(settle)
      signal?.addEventListener('abort', settle)
      settle()
    })

  const stop: TieringJob['stop'] = async (given = {}) => {
    isStopping = true
    await job.stop(durationMs(given.timeout ?? 30_000, 'timeout', { zero: 'allowed' }))
    return receipt()
  }

  return {
    async committed(position, given = {}) {
      const opened = tables.get(position.table)
      if (opened === undefined) {
        throw new SluiceError('TABLE_MISSING', `${position.table}: the source has no such table`)
      }
      const ends = new Map<Bucket, Offset>()
      for (const [each, end] of position.ends) ends.set(bucket(each), end as Offset)
      const isIn = (): boolean => {
        const reached = session.source.committedEnds(opened.table.id)
        return [...ends].every(([each, end]) => (reached.get(each) ?? 0n) >= end)
      }
      await until(isIn, () => [opened], given.signal)
      const table = await options.lake.table(position.table)
      for await (const snapshot of table.snapshots()) return snapshot
      throw new SluiceError('TABLE_REPLACED', `${position.table}: its snapshots are gone`)
    },

    async drain(given = {}) {
      const goals = await Promise.all(
        [...tables.values()].map(async (opened) => ({
          opened,
          ends: await session.logEnds(opened.table.id),
        })),
      )
      const open = (): readonly SessionTable[] =>
        goals
          .filter(({ opened, ends }) => {
            const reached = session.source.committedEnds(opened.table.id)
            return [...ends].some(([each, end]) => (reached.get(each) ?? 0n) < end)
          })
          .map(({ opened }) => opened)
      const ask = (): boolean => {
        for (const { table } of open()) session.coordinator.trigger(table.id)
        return open().length === 0
      }
      await until(ask, open, given.signal)
      return receipt()
    },

    async *events(given = {}) {
      const queue: TieringEvent[] = []
      let wake = (): void => undefined
      const push = (event: TieringEvent): void => {
        if (queue.length < eventsMax) queue.push(event)
        wake()
      }
      const woken = (): void => {
        wake()
      }
      readers.add(push)
      watchers.add(woken)
      given.signal?.addEventListener('abort', woken)
      try {
        while (given.signal?.aborted !== true) {
          const next = queue.shift()
          if (next !== undefined) {
            yield next
            continue
          }
          if (failure !== undefined) throw asError(failure)
          if (isStopping && job.view().phase === 'ended') return
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      } finally {
        readers.delete(push)
        watchers.delete(woken)
        given.signal?.removeEventListener('abort', woken)
      }
    },

    stop,
    close: async () => {
      await stop()
    },
    [Symbol.asyncDispose]: async () => {
      await stop()
    },
  }
}

function reportOf(event: Extract<TieringEvent, { readonly event: 'committed' }>): RoundReport {
  const report: RoundReport & { event?: string } = { ...event }
  delete report.event
  return report
}

function asError(failure: unknown): Error {
  if (isSluiceError(failure)) return failure
  return new SluiceError('INVARIANT_BROKEN', String(failure), { cause: failure })
}

function stopped(why: string): SluiceError {
  return new SluiceError('STOPPED', why)
}

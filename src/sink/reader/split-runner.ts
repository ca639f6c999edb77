import type { ObjectStore } from '../../catalog/store/object-store.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Offset, offset } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { IdSource, Journal } from '../../core/ports.ts'
import type { LogSource } from '../../source/ports.ts'
import type { PlanContext } from '../committer/lake-committer.ts'
import { contextOf } from '../committer/lake-committer.ts'
import { showToken } from '../committer/token.ts'
import type { EncoderOptions, ParquetEncoder } from '../parquet/encoder.ts'
import type { LogSplit, RoundPlan, SplitResult, SplitRunner, StopSignal } from '../ports.ts'
import { RollingWriter } from '../writer/rolling-writer.ts'
import { withSystemColumns } from '../writer/system-columns.ts'
import type { WriterBudget } from '../writer/writer-budget.ts'

export type SplitRunnerPorts = {
  readonly source: LogSource
  readonly store: ObjectStore
  readonly ids: IdSource
  readonly budget: WriterBudget
  readonly journal: Journal
  readonly encoderFor: (plan: PlanContext) => ParquetEncoder
  readonly optionsFor: (plan: PlanContext) => EncoderOptions & { readonly targetFileBytes: number }
}

/** Reads the splits of a round from the log and writes them as Parquet files. */
export function splitRunner(ports: SplitRunnerPorts): SplitRunner {
  return {
    run: (plan, split, stop) => {
      check(split.kind === 'log', 'a log table has no snapshot splits')
      return runSplit(ports, plan, split, stop)
    },
    async discard(results): Promise<void> {
      for (const file of results.flatMap((result) => result.files)) {
        await removeQuietly(ports, file.location)
      }
    },
  }
}

async function runSplit(
  ports: SplitRunnerPorts,
  plan: RoundPlan,
  split: LogSplit,
  stop: StopSignal,
): Promise<SplitResult> {
  const context = contextOf(plan)
  const { table } = context.version
  const options = ports.optionsFor(context)
  const random = ports.ids.bits128()
  let files = 0
  const writer = new RollingWriter({
    store: ports.store,
    encoder: ports.encoderFor(context),
    encoderOptions: options,
    targetFileBytes: options.targetFileBytes,
    fields: table.fields,
    budget: ports.budget,
    bucket: split.bucket,
    nextLocation: () => {
      files += 1
      const folder = `${table.location}/data/${partitionFolder(context, split)}`
      const place = String(split.bucket).padStart(5, '0')
      const part = String(files).padStart(5, '0')
      return `${folder}/${place}-${showToken(context.token)}-${random}-${part}.parquet`
    },
  })
  const pin = ports.source.pin(plan.table.id, split.bucket, split.start)
  let end: Offset = split.start
  let rows = 0
  try {
    for await (const batch of ports.source.read(
      plan.table.id,
      split.bucket,
      split.start,
      split.stop,
    )) {
      check(batch.baseOffset === end, 'the log is read without gap or overlap')
      await writer.write(withSystemColumns(batch, split.bucket))
      end = offset(end + BigInt(batch.records.length))
      rows += batch.records.length
      // Looked at only here, so that a started split always commits at least one batch.
      if (stop.stopped) break
    }
    check(stop.stopped || end === split.stop, 'a split that was not stopped is read to its end')
    return { bucket: split.bucket, start: split.start, end, rows, files: await writer.finish() }
  } catch (error) {
    for (const location of await writer.abandon()) await removeQuietly(ports, location)
    throw named(error, plan, split)
  } finally {
    pin.release()
  }
}

/**
 * Iceberg's folder of a partition; readers go by the manifest, people by the folder. Engines disagree
 * on whether `%` in a location is an escape, so what would need one becomes `_`.
 */
function partitionFolder(context: PlanContext, split: LogSplit): string {
  const key = context.version.table.bucketKey
  const field = key === undefined ? '__bucket' : `${key}_bucket`
  return `${field.replaceAll(/[^A-Za-z0-9_-]/g, '_')}=${String(split.bucket)}`
}

/** Nothing here was ever part of a commit, so it may go; what stays is the sweeper's. */
async function removeQuietly(ports: SplitRunnerPorts, location: string): Promise<void> {
  try {
    await ports.store.remove(location)
  } catch (error) {
    ports.journal.note({
      level: 'warn',
      event: 'file.left_behind',
      message: 'a file that is in no commit could not be removed',
      fields: { path: location, error_code: String(error) },
    })
  }
}

/** Says which bucket of which table a failure of the store belongs to. */
function named(error: unknown, plan: RoundPlan, split: LogSplit): unknown {
  if (!(error instanceof SluiceError) || error.code !== 'DISK_FULL') return error
  return new SluiceError(
    error.code,
    `disk full while writing bucket ${String(split.bucket)} of ${plan.table.name} (${error.message})`,
    {
      details: { ...error.details, table: plan.table.name, bucket: split.bucket },
      cause: error,
      fix: 'free space, run again: it goes on where the lake ends',
      state: 'earlier rounds are in the lake; this round added nothing',
    },
  )
}

import type { ObjectStore } from '../../catalog/store/object-store.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Bucket, type Offset, offset } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { IdSource, Journal } from '../../core/ports.ts'
import type { LogSource } from '../../source/ports.ts'
import type { PlanContext } from '../committer/lake-committer.ts'
import { contextOf } from '../committer/lake-committer.ts'
import { showToken } from '../committer/token.ts'
import type { EncoderOptions, ParquetEncoder } from '../parquet/encoder.ts'
import type {
  LogSplit,
  RoundPlan,
  SnapshotSplit,
  Split,
  SplitResult,
  SplitRunner,
  StopSignal,
} from '../ports.ts'
import { bucketFolder } from '../writer/bucket-folder.ts'
import { KeyedRows } from './keyed-rows.ts'
import { RollingWriter } from '../writer/rolling-writer.ts'
import { withSnapshotColumns, withSystemColumns } from '../writer/system-columns.ts'
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
    run: (plan, split, stop) => runSplit(ports, plan, split, stop),
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
  split: Split,
  stop: StopSignal,
): Promise<SplitResult> {
  const context = contextOf(plan)
  const writer = writerOf(ports, context, split)
  try {
    const read =
      split.kind === 'snapshot'
        ? await readSnapshot(ports, plan, split, writer)
        : await readLog(ports, plan, split, writer, stop)
    const files = await writer.finish()
    const rows = files.reduce((sum, file) => sum + file.rows, 0)
    return { bucket: split.bucket, start: split.start, rows, files, ...read }
  } catch (error) {
    for (const location of await writer.abandon()) await removeQuietly(ports, location)
    throw named(error, plan, split)
  }
}

function writerOf(ports: SplitRunnerPorts, context: PlanContext, split: Split): RollingWriter {
  const { table } = context.version
  const options = ports.optionsFor(context)
  const random = ports.ids.bits128()
  let files = 0
  return new RollingWriter({
    store: ports.store,
    encoder: ports.encoderFor(context),
    encoderOptions: options,
    targetFileBytes: options.targetFileBytes,
    fields: table.fields,
    budget: ports.budget,
    bucket: split.bucket,
    nextLocation: () => {
      files += 1
      const place = String(split.bucket).padStart(5, '0')
      const part = String(files).padStart(5, '0')
      const name = `${place}-${showToken(context.token)}-${random}-${part}.parquet`
      return `${bucketFolder(table, split.bucket)}/${name}`
    },
  })
}

async function readLog(
  { source }: SplitRunnerPorts,
  plan: RoundPlan,
  split: LogSplit,
  writer: RollingWriter,
  stop: StopSignal,
): Promise<Pick<SplitResult, 'end' | 'touched'>> {
  const { id } = plan.table
  const { bucket, start } = split
  const keyed = keyedRows(plan, bucket, writer)
  const pin = source.pin(id, bucket, start)
  let end: Offset = start
  try {
    for await (const batch of source.read(id, bucket, start, split.stop)) {
      check(batch.baseOffset === end, 'the log is read without gap or overlap')
      if (keyed === undefined) await writer.write(withSystemColumns(batch, bucket))
      else await keyed.add(batch)
      end = offset(end + BigInt(batch.records.length))
      // Looked at only here, so that a started split always commits at least one batch.
      if (stop.stopped) break
    }
    check(stop.stopped || end === split.stop, 'a split that was not stopped is read to its end')
    return { end, ...(keyed === undefined ? {} : { touched: await keyed.finish() }) }
  } finally {
    pin.release()
  }
}

/** The whole state of a bucket. No stop signal is looked at: a part of it would be worth nothing. */
async function readSnapshot(
  { source }: SplitRunnerPorts,
  plan: RoundPlan,
  split: SnapshotSplit,
  writer: RollingWriter,
): Promise<Pick<SplitResult, 'end' | 'isSnapshot' | 'touched'>> {
  const keyed = keyedRows(plan, split.bucket, writer)
  check(source.kv !== undefined && keyed !== undefined, 'a snapshot is of a primary-key table')
  const lease = source.kv.lease(plan.table.id, split.snapshot)
  try {
    for await (const records of lease.read()) {
      await keyed.addRows(records, withSnapshotColumns(records, split.bucket))
    }
    return { end: split.snapshot.offset, isSnapshot: true, touched: await keyed.finish() }
  } finally {
    lease.release()
  }
}

/** @returns undefined for a log table, whose records are all rows */
function keyedRows(plan: RoundPlan, bucket: Bucket, writer: RollingWriter): KeyedRows | undefined {
  const { primaryKey, schema } = plan.table
  if (primaryKey === undefined) return undefined
  const keyColumns = primaryKey.map((name) => schema.fields.findIndex((each) => each.name === name))
  return new KeyedRows({ bucket, keyColumns, write: (batch) => writer.write(batch) })
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
function named(error: unknown, plan: RoundPlan, split: Split): unknown {
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

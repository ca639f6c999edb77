import {
  createEmbeddedCoordinator,
  type EmbeddedCoordinator,
} from '../../src/coordinator/embedded-coordinator.ts'
import { SluiceError } from '../../src/core/errors.ts'
import { bucket, incarnation, millis, offset, snapshotId, tableId } from '../../src/core/ids.ts'
import type { Bucket, Offset, TableId } from '../../src/core/ids.ts'
import { type Chance, order, silentJournal } from '../../src/core/ports.ts'
import { startJob } from '../../src/sink/job/job.ts'
import type { TieringEvent } from '../../src/sink/job/events.ts'
import type { JobOptions, RunningJob } from '../../src/sink/job/options.ts'
import type { RoundCommitter, RoundPlanner } from '../../src/sink/ports.ts'
import { planSplits } from '../../src/sink/round/plan-splits.ts'
import type { BucketRange, KvSnapshot, SourceTable } from '../../src/source/ports.ts'
import { type Pace, type PacedRunner, pacedRunner } from './paced-runner.ts'
import { VirtualClock } from './virtual-clock.ts'

export type WorldSnapshot = { readonly offset: number; readonly rows: number }

export type WorldTable = {
  readonly name: string
  readonly buckets: number
  /** Seconds. */
  readonly freshness: number
  readonly pace: Pace
  /** Log end of a bucket at a time in seconds; 10,000 records more at each look if absent. */
  readonly written?: (at: number, bucket: number) => number
  /** The KV snapshot of a bucket, which makes the table one with a primary key. */
  readonly snapshot?: (bucket: number) => WorldSnapshot | undefined
  /** `created`: waits one freshness. `wanted` (default): in the queue from the start. */
  readonly start?: 'created' | 'wanted'
}

export type Version = {
  readonly table: string
  /** Seconds. */
  readonly at: number
  readonly ranges: readonly (readonly [bucket: number, start: number, end: number])[]
  /** Of all buckets of the table: where they end in the lake, undefined for none. */
  readonly ends: readonly (number | undefined)[]
  readonly final: boolean
}

/** The identity as a shuffle: splits are handed out in the order of their buckets. */
export const fixedOrder: Chance = { below: (bound) => bound - 1 }

/** A job, a coordinator, logs and a lake that follow one clock. Times are seconds after `origin`. */
export type World = {
  readonly clock: VirtualClock
  readonly coordinator: EmbeddedCoordinator
  readonly job: RunningJob
  readonly runner: PacedRunner
  readonly events: readonly TieringEvent[]
  /** What happened, one line each: `30 clicks commit 1`. Splits of one instant are counted. */
  readonly lines: readonly string[]
  readonly versions: readonly Version[]
  id(name: string): TableId
  run(untilSeconds: number): Promise<void>
}

export async function createWorld(options: {
  readonly tables: readonly WorldTable[]
  readonly readers: number
  readonly origin?: number
  readonly chance?: Chance
  readonly commitSeconds?: number
  readonly job?: Partial<JobOptions>
  /** Replaces or watches the ports of the job. */
  readonly wrap?: (
    ports: JobOptions,
    world: { readonly clock: VirtualClock },
  ) => Partial<JobOptions>
}): Promise<World> {
  const clock = new VirtualClock()
  const origin = options.origin ?? 0
  const seconds = (): number => clock.monotonic() / 1000 - origin
  const coordinator = createEmbeddedCoordinator({ clock, incarnation: incarnation(1) })
  const tables = options.tables.map((table, i) => ({ ...table, source: sourceTable(table, i) }))
  const byId = (id: TableId) => {
    const table = tables.find((known) => known.source.id === id)
    if (table === undefined) throw new Error(`no table ${String(id)} in this world`)
    return table
  }
  const lake = new Map<TableId, Map<Bucket, Offset>>(tables.map((t) => [t.source.id, new Map()]))
  const endsOf = (id: TableId): Map<Bucket, Offset> => lake.get(id) ?? new Map<Bucket, Offset>()
  const lines: string[] = []
  const events: TieringEvent[] = []
  const versions: Version[] = []
  const say = (line: string): void => void lines.push(`${seconds()} ${line}`)
  const counted = splitCounter(lines, seconds)

  const planner: RoundPlanner = {
    plan: async (assignment) => {
      await Promise.resolve()
      const { source, ...table } = byId(assignment.table)
      const ends = endsOf(source.id)
      const ranges = Array.from({ length: table.buckets }, (_, i): BucketRange => {
        const lakeEnd = Number(ends.get(bucket(i)) ?? 0n)
        const end = table.written?.(seconds(), i) ?? lakeEnd + 10_000
        return { bucket: bucket(i), earliest: offset(0n), end: offset(BigInt(Math.floor(end))) }
      })
      const splits = planSplits(table.name, ranges, ends, snapshotsOf(table))
      return { assignment, table: source, splits, context: undefined }
    },
  }
  const committer: RoundCommitter = {
    commit: async (plan, results, final) => {
      if (options.commitSeconds !== undefined) {
        say(`${plan.table.name} committing`)
        await clock.sleep(options.commitSeconds * 1000, { order: order.result })
      }
      const ends = endsOf(plan.table.id)
      for (const { bucket: moved, start, isSnapshot = false } of results) {
        if (isSnapshot ? !ends.has(moved) : (ends.get(moved) ?? 0n) === start) continue
        const error = new SluiceError('COMMIT_STALE', `bucket ${moved} has moved on`)
        return { kind: 'rejected', error }
      }
      for (const { bucket: moved, end } of results) ends.set(moved, end)
      const { name: table, bucketCount } = plan.table
      const round = versions.filter((version) => version.table === table).length + 1
      say(`${table} commit ${round}`)
      versions.push({
        table,
        at: seconds(),
        ranges: results.map((r) => [r.bucket, Number(r.start), Number(r.end)] as const),
        ends: Array.from({ length: bucketCount }, (_, i) => asNumber(ends.get(bucket(i)))),
        final,
      })
      const id = snapshotId(BigInt(versions.length))
      return { kind: 'committed', snapshotId: id, round, attempts: 1, alreadyApplied: false }
    },
  }
  const runner = pacedRunner({
    clock,
    pace: (plan, split) => byId(plan.table.id).pace(plan, split),
    snapshotRows: (plan, split) => byId(plan.table.id).snapshot?.(split.bucket)?.rows ?? 0,
    started: (plan) => {
      counted(`${plan.table.name} start`)
    },
    ended: (plan) => {
      counted(`${plan.table.name} end`)
    },
  })

  coordinator.watch((moved) => {
    if (moved.from !== undefined) say(`${moved.name} ${moved.to} ${moved.epoch}`)
  })
  for (const { source, start } of tables) {
    const { id: table, name, freshnessMs } = source
    coordinator.register({ table, name, freshnessMs })
    if (start !== 'created') coordinator.trigger(table)
  }
  await clock.advanceTo(origin * 1000)
  lines.length = 0
  const ports: JobOptions = {
    coordinator,
    planner,
    runner,
    committer,
    clock,
    chance: options.chance ?? fixedOrder,
    readers: options.readers,
    journal: silentJournal,
    events: (event) => void events.push(event),
    ...options.job,
  }
  const job = startJob({ ...ports, ...options.wrap?.(ports, { clock }) })
  return {
    clock,
    coordinator,
    job,
    runner,
    events,
    lines,
    versions,
    id: (name) =>
      byId(tables.find((table) => table.name === name)?.source.id ?? tableId(0n)).source.id,
    run: (until) => clock.advanceTo((origin + until) * 1000),
  }
}

function snapshotsOf({
  buckets,
  snapshot,
}: Pick<WorldTable, 'buckets' | 'snapshot'>): ReadonlyMap<Bucket, KvSnapshot> {
  const taken = new Map<Bucket, KvSnapshot>()
  for (let of = 0; of < buckets; of += 1) {
    const found = snapshot?.(of)
    if (found === undefined) continue
    taken.set(bucket(of), {
      id: BigInt(of) + 1n,
      bucket: bucket(of),
      offset: offset(BigInt(found.offset)),
    })
  }
  return taken
}

/** When each table committed, in seconds. */
export function commitTimes(world: World, table?: string): number[] {
  return world.versions.filter((v) => table === undefined || v.table === table).map((v) => v.at)
}

/** Lines about commits only: `30 clicks`. */
export function commitLines(world: World): string[] {
  return world.versions.map((version) => `${version.at} ${version.table}`)
}

function sourceTable(table: WorldTable, index: number): SourceTable {
  return {
    id: tableId(BigInt(index + 1)),
    name: table.name,
    kind: table.snapshot === undefined ? 'log' : 'primary-key',
    sourceId: `world/${table.name}`,
    schema: { fields: [] },
    bucketCount: table.buckets,
    bucketKey: undefined,
    freshnessMs: millis(table.freshness * 1000),
  }
}

/** Turns many lines of one instant into one with a count. */
function splitCounter(lines: string[], seconds: () => number): (what: string) => void {
  return (what) => {
    const prefix = `${seconds()} ${what} `
    const last = lines.at(-1)
    if (last?.startsWith(prefix) === true) {
      lines[lines.length - 1] = `${prefix}${Number(last.slice(prefix.length)) + 1}`
    } else lines.push(`${prefix}1`)
  }
}

function asNumber(end: Offset | undefined): number | undefined {
  return end === undefined ? undefined : Number(end)
}

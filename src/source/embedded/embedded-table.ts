import { changeType } from '../../core/change-type.ts'
import {
  batchBytes,
  type Column,
  type ColumnBatch,
  isNull,
  layoutOf,
  sliceBatch,
} from '../../core/columns/column.ts'
import { takeBatch } from '../../core/columns/take.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Bucket, bucket, type Millis, type Offset, offset } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import { bucketsOf } from '../bucketing/buckets.ts'
import type { BucketFormat } from '../bucketing/key-encoding.ts'
import { type ChangeBatch, changeOp } from '../changelog/change-batch.ts'
import type { Changelog } from '../changelog/changelog.ts'
import { type BucketPart, gatherBuckets, splitByPlace } from '../bucketing/split.ts'
import type {
  BlockDigests,
  BucketEnds,
  InputProgress,
  InputsProgress,
  SourceTable,
} from '../ports.ts'
import { BucketLog, type Holding } from './bucket-log.ts'
import { type InputMark, type InputRun, InputTracker } from './input-tracker.ts'

/** What the lake holds of a table when its log is opened again. */
export type TableResume = { readonly ends: BucketEnds; readonly inputs: InputsProgress }

/** The place of an append in an input, so that a replay after a crash is exact. */
export type AppendInput = {
  readonly id: string
  /** Shown to people; the file name for a file. */
  readonly name: string
  /**
   * Where a replay starts once these records are in. Without it they stay open: a replay starts
   * before them until a later append of the input brings a position.
   */
  readonly position?: string
  /** SHA-256 in hex of everything before `position`. */
  readonly digest?: string
  readonly blocks?: BlockDigests | undefined
  readonly notes?: Readonly<Record<string, string>>
  /** Records of the input before this batch, refused ones not counted. Checked when given. */
  readonly startOrdinal?: bigint
  /** Position of the beginning, for an input not known yet; '' if not given. */
  readonly startPosition?: string
}

export type AppendResult = {
  /** Offsets `[start, end)` the records took, ascending by bucket. */
  readonly ranges: readonly {
    readonly bucket: Bucket
    readonly start: Offset
    readonly end: Offset
  }[]
  /** Records that took an offset. */
  readonly appended: number
  /** Records of a replay that the lake has already; they took none. */
  readonly alreadyThere: number
  /** Of a primary-key table: rows that came or changed, and rows that went. */
  readonly upserts?: number
  readonly deletes?: number
}

/** An append that is checked and waits for room. */
export type PreparedAppend = {
  readonly batch: ColumnBatch
  /** Bucket of each record; undefined when place decides. */
  readonly buckets: Int32Array | undefined
  /** What it takes of the budget. */
  readonly bytes: number
}

/** What the changes of one bucket came to. */
export type ChangelogPart = {
  readonly bucket: Bucket
  readonly changelog: Pick<Changelog, 'records' | 'changes' | 'ends'>
  /** Changes before them that the lake has already. */
  readonly skipped: number
}

export type TakeContext = {
  readonly now: Millis
  /** Told the bytes that are held from now on. */
  readonly hold: (bytes: number) => void
}

// Objects and buffers of a segment beside its values, so that tiny appends cannot outgrow the budget.
const segmentBytes = 256
const columnOverheadBytes = 128
/** Builders and messages hold larger buffers than so few records need; they are copied. */
const smallBatchRecords = 64

/** The logs of one table and how far its inputs are. Everything here happens in one step. */
export class EmbeddedTable {
  readonly definition: SourceTable
  readonly logs: readonly BucketLog[]
  readonly #format: BucketFormat
  readonly #inputs = new Map<string, InputTracker>()
  /** Place of the next record that comes without an input. */
  #ordinal: bigint

  constructor(definition: SourceTable, format: BucketFormat, resume: TableResume) {
    this.definition = definition
    this.#format = format
    const first = offset(0n)
    this.logs = Array.from({ length: definition.bucketCount }, (_, each) => {
      const start = resume.ends.get(bucket(each)) ?? first
      return new BucketLog({ table: definition.name, bucket: bucket(each), start })
    })
    this.#ordinal = this.logs.reduce((sum, { end }) => sum + end, 0n)
    for (const [id, { extra, ahead, ...mark }] of resume.inputs) {
      this.#inputs.set(id, new InputTracker(mark, true, extra, ahead))
    }
  }

  get hasBacklog(): boolean {
    return this.logs.some(({ end, committed }) => end > committed)
  }

  log(id: Bucket): BucketLog {
    const found = this.logs[id]
    check(found !== undefined, `${this.definition.name} has bucket ${id}`)
    return found
  }

  /** @throws SluiceError RECORD_REFUSED naming the first record that does not fit the table. */
  prepare(given: ColumnBatch): PreparedAppend {
    this.#checkColumns(given)
    const key = this.#keyColumn(given)
    const buckets =
      key === undefined ? undefined : bucketsOf(key, this.definition.bucketCount, this.#format)
    const batch = given.length < smallBatchRecords ? compact(given) : given
    const parts = key === undefined ? Math.ceil(batch.length / 1024) + 1 : this.logs.length
    return {
      batch,
      buckets,
      bytes: batchBytes(batch) + this.#overhead(Math.min(parts, batch.length)),
    }
  }

  /**
   * Takes a whole append at once, except for records the lake has already.
   *
   * @throws SluiceError INPUT_CHANGED when the input does not go on where it was.
   */
  take(
    prepared: readonly PreparedAppend[],
    input: AppendInput | undefined,
    at: TakeContext,
  ): AppendResult {
    const tracker = input === undefined ? undefined : this.#tracker(input)
    const starts = this.logs.map(({ end }) => end)
    if (tracker !== undefined && input !== undefined) {
      if (input.startOrdinal !== undefined && input.startOrdinal !== tracker.ordinal) {
        throw this.#wrongPlace(input, tracker.ordinal)
      }
      this.#inputs.set(input.id, tracker)
      for (const each of prepared) {
        tracker.add(this.#append(each, tracker.ordinal, tracker, at))
      }
      const place = placeOf(input, at.now)
      if (place !== undefined) tracker.mark(place)
    } else {
      for (const each of prepared) {
        this.#append(each, this.#ordinal, undefined, at)
        this.#ordinal += BigInt(each.batch.length)
      }
    }
    const ranges = this.logs
      .map(({ bucket, end }, index) => ({ bucket, start: starts[index] ?? end, end }))
      .filter(({ start, end }) => start < end)
    const appended = ranges.reduce((sum, { start, end }) => sum + Number(end - start), 0)
    const given = prepared.reduce((sum, { batch }) => sum + batch.length, 0)
    return { ranges, appended, alreadyThere: given - appended }
  }

  /**
   * How many of the next `count` changes of an input that go to a bucket the lake has already.
   *
   * @param already Changes of the bucket before them that this append skips.
   */
  skips(input: AppendInput | undefined, of: Bucket, count: number, already: bigint): number {
    if (input === undefined) return 0
    return this.#inputs.get(input.id)?.skips(of, count, already) ?? 0
  }

  /**
   * Takes what the changes of one append came to, at once.
   *
   * @param given Changes of the append, those included that the lake has already.
   * @throws SluiceError INPUT_CHANGED when the input does not go on where it was.
   */
  takeChanges(
    parts: readonly ChangelogPart[],
    given: number,
    input: AppendInput | undefined,
    at: TakeContext,
  ): AppendResult {
    const tracker = input === undefined ? undefined : this.#tracker(input)
    if (tracker !== undefined && input?.startOrdinal !== undefined) {
      if (input.startOrdinal !== tracker.ordinal) throw this.#wrongPlace(input, tracker.ordinal)
    }
    const starts = this.logs.map(({ end }) => end)
    const runs = parts.map(({ bucket, changelog, skipped }): InputRun => {
      const log = this.log(bucket)
      const start = log.end
      const { records, changes, ends } = changelog
      if (records.length > 0) {
        const holding = { bytes: this.#partBytes({ bucket, records }), segments: 0 }
        at.hold(holding.bytes)
        log.append(records, at.now, holding, changes)
      }
      return { bucket, start, end: log.end, skipped: BigInt(skipped), ends }
    })
    if (tracker !== undefined && input !== undefined) {
      this.#inputs.set(input.id, tracker)
      tracker.add(runs)
      const place = placeOf(input, at.now)
      if (place !== undefined) tracker.mark(place)
    }
    const ranges = this.logs
      .map(({ bucket, end }, index) => ({ bucket, start: starts[index] ?? end, end }))
      .filter(({ start, end }) => start < end)
    const alreadyThere = parts.reduce((sum, { skipped }) => sum + skipped, 0)
    let [upserts, deletes] = [0, 0]
    for (const { changelog } of parts) {
      for (const change of changelog.changes) {
        if (change === changeType.delete) deletes += 1
        else if (change !== changeType.updateBefore) upserts += 1
      }
    }
    return { ranges, appended: given - alreadyThere, alreadyThere, upserts, deletes }
  }

  /** Bucket of each change. @throws SluiceError RECORD_REFUSED naming the first that does not fit. */
  prepareChanges({ records, ops, kept }: ChangeBatch): Int32Array {
    check(ops.length === records.length, 'each change says what it does')
    this.#checkColumns(records, (row, column) => {
      if (ops[row] !== changeOp.upsert) return true
      const bits = kept?.columns[column]
      return bits !== undefined && (((bits[row >> 3] ?? 0) >> (row & 7)) & 1) === 1
    })
    const key = this.#keyColumn(records)
    check(key !== undefined, 'a primary-key table has a bucket key')
    return bucketsOf(key, this.definition.bucketCount, this.#format)
  }

  inputs(ends: BucketEnds): InputsProgress {
    const reached = this.#reached(ends)
    const progress = new Map<string, InputProgress>()
    for (const [id, tracker] of this.#inputs) {
      const each = tracker.progress(reached)
      if (each !== undefined) progress.set(id, each)
    }
    return progress
  }

  commit(ends: BucketEnds): void {
    for (const [id, end] of ends) this.log(id).commit(end)
    const reached = this.#reached(new Map())
    for (const tracker of this.#inputs.values()) tracker.commit(reached)
  }

  /** Drops what neither a pin nor the lake needs and returns the bytes that became free. */
  trim(): number {
    return this.logs.reduce((freed, log) => freed + log.trim(), 0)
  }

  #append(
    { batch, buckets, bytes }: PreparedAppend,
    ordinal: bigint,
    tracker: InputTracker | undefined,
    at: TakeContext,
  ): readonly InputRun[] {
    const parts =
      buckets === undefined
        ? splitByPlace(ordinal, batch, this.logs.length)
        : gatherBuckets(buckets, batch, this.logs.length)
    // Parts by place share the buffers of the batch, which are free only when all of them are.
    const shared: Holding | undefined = buckets === undefined ? { bytes, segments: 0 } : undefined
    const runs = new Map<Bucket, InputRun>()
    for (const part of parts) {
      const log = this.log(part.bucket)
      const run = runs.get(part.bucket)
      const skippedBefore = run?.skipped ?? 0n
      const skipped = tracker?.skips(part.bucket, part.records.length, skippedBefore) ?? 0
      const start = log.end
      if (skipped < part.records.length) {
        const records =
          skipped === 0 ? part.records : sliceBatch(part.records, skipped, part.records.length)
        const holding = shared ?? { bytes: this.#partBytes(part), segments: 0 }
        if (holding.segments === 0) at.hold(holding.bytes)
        log.append(records, at.now, holding)
      }
      runs.set(part.bucket, {
        bucket: part.bucket,
        start: run?.start ?? start,
        end: log.end,
        skipped: skippedBefore + BigInt(skipped),
      })
    }
    return [...runs.values()]
  }

  #partBytes({ records }: BucketPart): number {
    return batchBytes(records) + this.#overhead(1)
  }

  #overhead(segments: number): number {
    return segments * (segmentBytes + columnOverheadBytes * this.definition.schema.fields.length)
  }

  #tracker(input: AppendInput): InputTracker {
    const known = this.#inputs.get(input.id)
    if (known !== undefined) return known
    const start = { name: input.name, position: input.startPosition ?? '', records: 0n }
    return new InputTracker(start, false, new Map())
  }

  /** What the lake holds: what is asked for, and never less than is known to be there. */
  #reached(ends: BucketEnds): BucketEnds {
    const reached = new Map<Bucket, Offset>()
    for (const log of this.logs) {
      const end = ends.get(log.bucket)
      reached.set(log.bucket, end !== undefined && end > log.committed ? end : log.committed)
    }
    return reached
  }

  #keyColumn(batch: ColumnBatch): Column | undefined {
    const { bucketKey, schema } = this.definition
    if (bucketKey === undefined) return undefined
    return batch.columns[schema.fields.findIndex(({ name }) => name === bucketKey)]
  }

  /** @param mayLack Whether a record may be without a value of a column that is NOT NULL. */
  #checkColumns(
    batch: ColumnBatch,
    mayLack: (row: number, column: number) => boolean = () => false,
  ): void {
    const { name, schema } = this.definition
    check(batch.columns.length === schema.fields.length, `a batch has the columns of ${name}`)
    schema.fields.forEach((field, index) => {
      const column = batch.columns[index]
      check(
        column?.layout === layoutOf(field.type) && column.length === batch.length,
        `column ${field.name} of a batch is as ${name} defines it`,
      )
      if (field.type.nullable || column.nullCount === 0) return
      for (let row = 0; row < column.length; row += 1) {
        if (isNull(column, row) && !mayLack(row, index)) throw this.#unexpectedNull(field.name, row)
      }
    })
  }

  #unexpectedNull(field: string, row: number): SluiceError {
    return new SluiceError(
      'RECORD_REFUSED',
      `${this.definition.name}: record ${row} of the batch has no ${JSON.stringify(field)}, which ` +
        'is NOT NULL',
      { details: { table: this.definition.name, row, column: field, reason: 'null' } },
    )
  }

  #wrongPlace(input: AppendInput, ordinal: bigint): SluiceError {
    return new SluiceError(
      'INPUT_CHANGED',
      `${this.definition.name}: ${input.name} goes on at record ${String(ordinal)}, not at ` +
        String(input.startOrdinal),
      {
        details: {
          table: this.definition.name,
          input: input.id,
          expected: ordinal,
          given: input.startOrdinal,
        },
      },
    )
  }
}

function placeOf(
  { name, position, digest, blocks, notes }: AppendInput,
  tieredAt: Millis,
): Omit<InputMark, 'records'> | undefined {
  if (position === undefined) return undefined
  return {
    name,
    position,
    tieredAt,
    ...(digest === undefined ? {} : { digest }),
    ...(blocks === undefined ? {} : { blocks }),
    ...(notes === undefined ? {} : { notes }),
  }
}

function compact(batch: ColumnBatch): ColumnBatch {
  const rows = Int32Array.from({ length: batch.length }, (_, row) => row)
  return takeBatch(batch, rows, batch.length)
}

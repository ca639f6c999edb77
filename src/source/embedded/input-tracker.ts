import type { Bucket, Offset } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { BucketEnds, InputProgress } from '../ports.ts'

/*
 * How a replay of an input neither loses nor doubles a record.
 *
 * An input is appended piece by piece, and pieces end at marks from which it can be read again. The
 * buckets of a table are committed to different depths, so beyond the last mark that is wholly in
 * the lake some buckets already hold more of the input:
 *
 *               mark 1     mark 2     mark 3
 *   bucket 0  ────┼──────────┼────•     │        • = end in the lake
 *   bucket 1  ────┼──•       ┆          ┆
 *
 * What goes into the lake is mark 1 with `extra` = {0: records between mark 1 and •, 1: likewise}.
 * Within one bucket an input's records keep their order and a replay assigns them to the same
 * buckets, so the first `extra` records that a replay from mark 1 brings to a bucket are the ones the
 * lake has: they are skipped. It does not matter how the replay is cut into pieces.
 */

/** A place in an input from which it can be read again. */
export type InputMark = Omit<InputProgress, 'extra' | 'ahead'>

type Ahead = NonNullable<InputProgress['ahead']>

/** What one piece brought to one bucket. */
export type InputRun = {
  readonly bucket: Bucket
  /** Offsets `[start, end)` given to its records; empty when all were skipped. */
  readonly start: Offset
  readonly end: Offset
  /** Records the lake had already. */
  readonly skipped: bigint
  /**
   * Where records are changes of keys, which take no offset or several: for each record that was not
   * skipped, the offsets taken up to and with it. Absent where each takes one.
   */
  readonly ends?: Uint32Array
}

/** Pieces up to a mark; the last entry may still be without one. Runs per bucket, in order. */
type Entry = { mark: InputMark | undefined; readonly runs: Map<Bucket, InputRun[]> }

export class InputTracker {
  /** Up to here everything is in the lake. */
  #base: InputMark
  /** Records after the base that the lake had when the source was opened and no replay brought yet. */
  readonly #toSkip: Map<Bucket, bigint>
  #entries: Entry[] = []
  #ordinal: bigint
  #known: boolean
  /** The mark that bounds what an earlier life left in `#toSkip`. */
  readonly #aheadBefore: Ahead | undefined

  /** @param known False for an input of which nothing is in the lake; `base` is then its beginning. */
  constructor(base: InputMark, known: boolean, extra: ReadonlyMap<Bucket, bigint>, ahead?: Ahead) {
    this.#base = base
    this.#known = known
    this.#aheadBefore = ahead
    this.#toSkip = new Map(extra)
    this.#ordinal = base.records
  }

  /** Records of the input before the next one that is appended, skipped ones included. */
  get ordinal(): bigint {
    return this.#ordinal
  }

  /**
   * How many of the next `count` records for a bucket are in the lake already.
   *
   * @param already Records of the bucket that this piece skips before them.
   */
  skips(bucket: Bucket, count: number, already: bigint): number {
    const left = (this.#toSkip.get(bucket) ?? 0n) - already
    return left < BigInt(count) ? Number(left) : count
  }

  /** Notes one piece. It stays open, so that a replay starts before it, until `mark` is called. */
  add(runs: readonly InputRun[]): void {
    for (const run of runs) {
      const { bucket, skipped } = run
      this.#ordinal += recordsOf(run) + skipped
      if (skipped === 0n) continue
      const left = (this.#toSkip.get(bucket) ?? 0n) - skipped
      check(left >= 0n, 'no more is skipped than the lake has')
      if (left === 0n) this.#toSkip.delete(bucket)
      else this.#toSkip.set(bucket, left)
    }
    const entry = this.#openEntry()
    for (const run of runs) addRun(entry.runs, run)
  }

  /** Notes that the input can be read again from here; the records before it are counted here. */
  mark(place: Omit<InputMark, 'records'>): void {
    this.#close(this.#openEntry(), { ...place, records: this.#ordinal })
  }

  /**
   * Progress once the lake holds everything below `ends`: the last mark whose pieces and all before
   * are in, and per bucket what is in beyond it. Undefined when nothing at all is.
   */
  progress(ends: BucketEnds): InputProgress | undefined {
    const whole = this.#wholeEntries(ends)
    const mark = this.#entries[whole - 1]?.mark ?? this.#base
    const extra = new Map(this.#toSkip)
    let ahead = extra.size > 0 ? this.#aheadBefore : undefined
    for (const { runs, mark: end } of this.#entries.slice(whole)) {
      let isIn = false
      for (const [bucket, ofBucket] of runs) {
        const count = ofBucket.reduce((sum, run) => sum + countIn(run, ends), 0n)
        if (count === 0n) continue
        isIn = true
        extra.set(bucket, (extra.get(bucket) ?? 0n) + count)
      }
      // What an earlier life left is bounded by its own mark, which may lie further on.
      if (!isIn || end?.digest === undefined || this.#toSkip.size > 0) continue
      ahead = {
        position: end.position,
        digest: end.digest,
        ...(end.blocks === undefined ? {} : { blocks: end.blocks }),
        ...(end.tieredAt === undefined ? {} : { tieredAt: end.tieredAt }),
      }
    }
    if (whole === 0 && !this.#known && extra.size === 0) return undefined
    return { ...mark, extra, ...(ahead === undefined ? {} : { ahead }) }
  }

  /** Forgets what is in the lake for good. Later calls of `progress` have ends at least these. */
  commit(ends: BucketEnds): void {
    const whole = this.#wholeEntries(ends)
    const mark = this.#entries[whole - 1]?.mark
    if (mark !== undefined) {
      this.#base = mark
      this.#known = true
      this.#entries = this.#entries.slice(whole)
    }
    for (const { runs } of this.#entries) {
      for (const [bucket, ofBucket] of runs) runs.set(bucket, withoutCommitted(ofBucket, ends))
    }
  }

  #openEntry(): Entry {
    const last = this.#entries.at(-1)
    if (last !== undefined && last.mark === undefined) return last
    const opened: Entry = { mark: undefined, runs: new Map() }
    this.#entries.push(opened)
    return opened
  }

  #wholeEntries(ends: BucketEnds): number {
    let whole = 0
    for (const { mark, runs } of this.#entries) {
      if (mark === undefined) break
      if (![...runs.values()].flat().every((run) => isCommitted(run, ends))) break
      whole += 1
    }
    return whole
  }

  /**
   * Closes the open entry. If it brought nothing new it is in the lake as soon as the one before is,
   * so the two become one: entries then never outnumber the appends that the log still holds.
   */
  #close(entry: Entry, mark: InputMark): void {
    entry.mark = mark
    const runs = [...entry.runs.values()].flat()
    if (runs.some((run) => recordsOf(run) > 0n)) return
    this.#entries.pop()
    const before = this.#entries.at(-1)
    if (before === undefined) {
      this.#base = later(this.#base, mark)
      this.#known = true
      return
    }
    before.mark = later(before.mark, mark)
    for (const run of runs) addRun(before.runs, run)
  }
}

/** An input that was looked at again and has nothing more was not tiered again. */
function later(before: InputMark | undefined, mark: InputMark): InputMark {
  const isSame = before?.tieredAt !== undefined && before.position === mark.position
  return isSame ? { ...mark, tieredAt: before.tieredAt } : mark
}

/** Runs that touch become one, so that an entry stays as small as what it describes. */
function addRun(runs: Map<Bucket, InputRun[]>, run: InputRun): void {
  const ofBucket = runs.get(run.bucket)
  const last = ofBucket?.at(-1)
  if (ofBucket === undefined || last === undefined) {
    runs.set(run.bucket, [run])
    return
  }
  const skipped = last.skipped + run.skipped
  const at = ofBucket.length - 1
  if (recordsOf(run) === 0n) ofBucket[at] = { ...last, skipped }
  else if (recordsOf(last) === 0n) ofBucket[at] = { ...run, skipped }
  else if (last.end === run.start && last.ends === undefined && run.ends === undefined) {
    ofBucket[at] = { ...last, end: run.end, skipped }
  } else ofBucket.push(run)
}

/** Runs that are in the lake become a count, which says the same and takes no room. */
function withoutCommitted(runs: InputRun[], ends: BucketEnds): InputRun[] {
  const first = runs.findIndex((run) => !isCommitted(run, ends))
  const committed = first < 0 ? runs : runs.slice(0, first)
  const rest = first < 0 ? [] : runs.slice(first)
  const last = committed.at(-1)
  if (last === undefined) return runs
  const skipped = committed.reduce((sum, run) => sum + countIn(run, ends), 0n)
  return [{ bucket: last.bucket, start: last.end, end: last.end, skipped }, ...rest]
}

function isCommitted(run: InputRun, ends: BucketEnds): boolean {
  return committedOf(run, ends) === recordsOf(run)
}

/** Records that were not skipped. */
function recordsOf({ start, end, ends }: InputRun): bigint {
  return ends === undefined ? end - start : BigInt(ends.length)
}

function countIn(run: InputRun, ends: BucketEnds): bigint {
  return run.skipped + committedOf(run, ends)
}

function committedOf(run: InputRun, ends: BucketEnds): bigint {
  const { bucket, start, end } = run
  const committed = ends.get(bucket)
  if (committed === undefined || committed < start) return 0n
  if (committed >= end) return recordsOf(run)
  if (run.ends === undefined) return committed - start
  // A record that took no offset is in as soon as what came before it is: again, it changes nothing.
  return BigInt(countUpTo(run.ends, Number(committed - start)))
}

/** How many of the ascending numbers are at most `limit`. */
function countUpTo(ends: Uint32Array, limit: number): number {
  let [low, high] = [0, ends.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ends[middle] ?? 0) <= limit) low = middle + 1
    else high = middle
  }
  return low
}

import { batchBytes, type ColumnBatch, sliceBatch } from '../../core/columns/column.ts'
import { SluiceError } from '../../core/errors.ts'
import { type Bucket, type Millis, type Offset, offset } from '../../core/ids.ts'
import { check } from '../../core/never.ts'
import type { BucketRange, LogBatch } from '../ports.ts'

/** Memory that several segments share; it is free once the last of them is trimmed. */
export type Holding = { readonly bytes: number; segments: number }

type Segment = {
  readonly base: Offset
  readonly end: Offset
  readonly committedAt: Millis
  readonly records: ColumnBatch
  /** Of a changelog: one `ChangeType` for each record. */
  readonly changes: Uint8Array | undefined
  readonly holding: Holding
}

/**
 * The log of one bucket in memory: records with consecutive offsets from `start` on. It trims whole
 * segments, only below the committed end and below every pin (I-29), so a reader that holds a pin
 * never loses a record.
 */
export class BucketLog {
  readonly bucket: Bucket
  readonly #table: string
  readonly #pins = new Set<{ readonly start: Offset }>()
  #segments: Segment[] = []
  #end: Offset
  #committed: Offset

  /** @param at.start Where offsets go on: the lake's end of the bucket, or 0 if it has none. */
  constructor(at: { readonly table: string; readonly bucket: Bucket; readonly start: Offset }) {
    this.#table = at.table
    this.bucket = at.bucket
    this.#end = at.start
    this.#committed = at.start
  }

  get end(): Offset {
    return this.#end
  }

  /** End of what the lake holds. */
  get committed(): Offset {
    return this.#committed
  }

  get range(): BucketRange {
    const earliest = this.#segments[0]?.base ?? this.#end
    return { bucket: this.bucket, earliest, end: this.#end }
  }

  append(records: ColumnBatch, committedAt: Millis, holding: Holding, changes?: Uint8Array): void {
    check(records.length > 0, 'a segment has records')
    check(changes === undefined || changes.length === records.length, 'each record has its change')
    const end = offset(this.#end + BigInt(records.length))
    holding.segments += 1
    this.#segments.push({ base: this.#end, end, committedAt, records, changes, holding })
    this.#end = end
  }

  /**
   * Yields `[start, stop)` in slices of at most `bytesMax` bytes, or of one record if that is larger.
   *
   * @throws SluiceError LOG_TRUNCATED for an offset that is trimmed, SOURCE_BEHIND for one to come.
   */
  *read(start: Offset, stop: Offset, bytesMax: number): Generator<LogBatch, void, undefined> {
    if (stop > this.#end) throw this.#behind(stop)
    for (let next = start; next < stop; ) {
      // Looked up anew each time: the log may have been trimmed while the reader was away.
      const segment = this.#segmentOf(next)
      const from = Number(next - segment.base)
      const to = Number((stop < segment.end ? stop : segment.end) - segment.base)
      const records = boundedSlice(segment.records, from, to, bytesMax)
      const changes = segment.changes?.subarray(from, from + records.length)
      yield {
        baseOffset: next,
        committedAt: segment.committedAt,
        records,
        ...(changes === undefined ? {} : { changes }),
      }
      next = offset(next + BigInt(records.length))
    }
  }

  /**
   * Keeps everything from `start` on until released; releasing twice is harmless. Trims nothing by
   * itself.
   *
   * @throws SluiceError LOG_TRUNCATED when `start` is trimmed already.
   */
  pin(start: Offset): { release(): void } {
    if (start < this.range.earliest) throw this.#truncated(start)
    const pin = { start }
    this.#pins.add(pin)
    return {
      release: () => {
        this.#pins.delete(pin)
      },
    }
  }

  /**
   * Notes that the lake holds everything below `end`; a smaller end than before changes nothing.
   *
   * @throws SluiceError SOURCE_BEHIND when the log has not seen all of it.
   */
  commit(end: Offset): void {
    if (end > this.#end) throw this.#behind(end)
    if (end > this.#committed) this.#committed = end
  }

  /** Drops what nobody needs and returns the bytes that became free. */
  trim(): number {
    let below = this.#committed
    for (const pin of this.#pins) if (pin.start < below) below = pin.start
    let dropped = 0
    let freed = 0
    for (const { end, holding } of this.#segments) {
      if (end > below) break
      dropped += 1
      holding.segments -= 1
      if (holding.segments === 0) freed += holding.bytes
    }
    if (dropped > 0) this.#segments = this.#segments.slice(dropped)
    return freed
  }

  #segmentOf(next: Offset): Segment {
    const segments = this.#segments
    if (next < this.range.earliest) throw this.#truncated(next)
    let low = 0
    let high = segments.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((segments[middle]?.base ?? this.#end) <= next) low = middle
      else high = middle - 1
    }
    const found = segments[low]
    check(found !== undefined && found.base <= next && next < found.end, 'segments have no gaps')
    return found
  }

  #truncated(asked: Offset): SluiceError {
    const { earliest } = this.range
    return new SluiceError(
      'LOG_TRUNCATED',
      `${this.#table}: bucket ${this.bucket} has no offset ${String(asked)} any more; its log ` +
        `begins at ${String(earliest)}`,
      { details: { table: this.#table, bucket: this.bucket, asked, earliest } },
    )
  }

  #behind(stop: Offset): SluiceError {
    return new SluiceError(
      'SOURCE_BEHIND',
      `${this.#table}: bucket ${this.bucket} ends at ${String(this.#end)}, before ${String(stop)}`,
      { details: { table: this.#table, bucket: this.bucket, asked: stop, end: this.#end } },
    )
  }
}

/** As many rows of `[from, to)` as take at most `bytesMax`, at least one. */
function boundedSlice(batch: ColumnBatch, from: number, to: number, bytesMax: number): ColumnBatch {
  let records = sliceBatch(batch, from, to)
  while (records.length > 1) {
    const bytes = batchBytes(records)
    if (bytes <= bytesMax) break
    // Rows differ in size, so the share that would fit on average may not.
    const share = Math.floor((records.length * bytesMax) / bytes)
    const rows = Math.max(1, Math.min(share, Math.floor(records.length * 0.9)))
    records = sliceBatch(records, 0, rows)
  }
  return records
}

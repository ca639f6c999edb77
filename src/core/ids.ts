/**
 * Identifiers are plain values at run time and separate types at compile time, so that a bucket can
 * never be passed where an epoch is expected. Only this file casts.
 */
declare const brand: unique symbol
type Brand<Base, Name extends string> = Base & { readonly [brand]: Name }

/** Id of a source table. A table dropped and made again under the same name has a new one. */
export type TableId = Brand<bigint, 'TableId'>

/** Number of one hash part of a table, from 0. The unit of order, of a log, and of a split. */
export type Bucket = Brand<number, 'Bucket'>

/** Position of one record in a bucket's log, from 0. Ranges are half open: `[start, end)`. */
export type Offset = Brand<bigint, 'Offset'>

/** Number of one life of a coordinator. Durable, grows with each start. */
export type Incarnation = Brand<number, 'Incarnation'>

/** Grows by one whenever a table enters the pending queue, and nowhere else. */
export type Epoch = Brand<number, 'Epoch'>

/** Names one round's commit over all its attempts: 128 random bits in hex, never derived. */
export type CommitId = Brand<string, 'CommitId'>

/** Id of a lake snapshot. All 63 bits are in use, so a number would corrupt it. */
export type SnapshotId = Brand<bigint, 'SnapshotId'>

/** Milliseconds, on the injected clock. Never compare with a clock of another machine. */
export type Millis = Brand<number, 'Millis'>

const int64Max = 2n ** 63n - 1n

export function tableId(value: bigint): TableId {
  return wholeBig(value, 'table id') as TableId
}

export function bucket(value: number): Bucket {
  return whole(value, 'bucket') as Bucket
}

export function offset(value: bigint): Offset {
  return wholeBig(value, 'offset') as Offset
}

export function incarnation(value: number): Incarnation {
  return whole(value, 'incarnation') as Incarnation
}

export function epoch(value: number): Epoch {
  return whole(value, 'epoch') as Epoch
}

export function millis(value: number): Millis {
  return whole(value, 'millis') as Millis
}

/** @throws RangeError unless the text is 32 lower-case hexadecimal digits. */
export function commitId(value: string): CommitId {
  if (!/^[0-9a-f]{32}$/.test(value)) throw new RangeError(`commit id is malformed: ${value}`)
  return value as CommitId
}

/** @throws RangeError unless the value is a positive int64; 0 and -1 mean "none" to some readers. */
export function snapshotId(value: bigint): SnapshotId {
  if (value < 1n || value > int64Max) {
    throw new RangeError(`snapshot id must be a positive int64: ${String(value)}`)
  }
  return value as SnapshotId
}

function whole(value: number, what: string): number {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`${what} must be a non-negative safe integer: ${String(value)}`)
  }
  return value
}

function wholeBig(value: bigint, what: string): bigint {
  if (value < 0n || value > int64Max) {
    throw new RangeError(`${what} must be a non-negative int64: ${String(value)}`)
  }
  return value
}

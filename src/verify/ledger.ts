import { createHash } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { isJsonArray, isJsonObject, type JsonValue, parseJson } from '../core/json64.ts'
import { damage } from './damage.ts'
import { intAt, listAt, objectOr, objectsAt, textAt } from './json-view.ts'

/** Generation, incarnation, epoch; compared from left to right. */
export type Token = readonly [number, number, number]

export type Range = { readonly origin: bigint; readonly end: bigint }

/** Offsets `[from, to)` that an operator declared to be in no file. */
export type DeclaredGap = {
  readonly bucket: number
  readonly from: bigint
  readonly to: bigint
  readonly reason: string
  readonly by: string
}

/** What a snapshot of Sluice says about progress. */
export type Ledger = {
  readonly source: string
  readonly table: string
  readonly kind: string
  readonly token: Token
  readonly round: number
  readonly commit: string
  /** The rows of a bucket are exactly those of its range, without the declared gaps. */
  readonly buckets: ReadonlyMap<number, Range>
  readonly gaps: readonly DeclaredGap[]
}

/** The copy of the ends in the table property `sluice.progress`. */
export type ProgressCopy = {
  readonly snapshot: bigint
  readonly sequence: bigint
  readonly ends: ReadonlyMap<number, bigint> | undefined
  /** Of the list of ends, where that is too long for a property. */
  readonly sha256: string | undefined
  readonly ledger: Ledger | undefined
}

const ledgerBytesMax = 256 * 1024 * 1024

/** @throws SluiceError DATA_CORRUPT */
export function readLedger(text: string): Ledger {
  const root = objectOr(
    parseJson(text, { name: 'its ledger', bytesMax: ledgerBytesMax }),
    'the ledger',
  )
  const version = intAt(root, 'v')
  if (version !== 1) throw damage(`its ledger is of version ${version}, which is not known`)
  const buckets = new Map<number, Range>()
  for (const each of listAt(root, 'buckets')) {
    const [partition, bucket, origin, end] = isJsonArray(each) ? each : []
    if (partition !== null || typeof bucket !== 'number') throw damage('a bucket of its ledger')
    const range = { origin: offsetOf(origin), end: offsetOf(end) }
    if (range.end < range.origin)
      throw damage(`bucket ${bucket} of its ledger ends before it begins`)
    if (buckets.has(bucket)) throw damage(`bucket ${bucket} is twice in its ledger`)
    buckets.set(bucket, range)
  }
  return {
    source: textAt(root, 'source'),
    table: textAt(root, 'table'),
    kind: textAt(root, 'kind'),
    token: tokenOf(root['token']),
    round: intAt(root, 'round'),
    commit: textAt(root, 'commit'),
    buckets,
    gaps: objectsAt(root, 'gaps').map((gap) => ({
      bucket: intAt(gap, 'bucket'),
      from: offsetOf(gap['from']),
      to: offsetOf(gap['to']),
      reason: textAt(gap, 'reason'),
      by: textAt(gap, 'by'),
    })),
  }
}

/** The ledger from the header of a manifest list, checked against the digest in the summary. */
export function unpackLedger(packed: string, summary: string): string {
  const mark = 'deflate:'
  let text = packed
  if (packed.startsWith(mark)) {
    try {
      const bytes = Buffer.from(packed.slice(mark.length), 'base64')
      text = inflateRawSync(bytes, { maxOutputLength: ledgerBytesMax }).toString('utf8')
    } catch {
      throw damage('the ledger in its header cannot be unpacked')
    }
  }
  const wanted = /sha256=([0-9a-f]{64})/.exec(summary)?.[1]
  if (wanted !== undefined && wanted !== sha256(text)) {
    throw damage('the ledger in its header is not the one of the summary (sha256)')
  }
  return text
}

/** @throws SluiceError DATA_CORRUPT */
export function readCopy(text: string): ProgressCopy {
  const root = objectOr(parseJson(text, { name: 'sluice.progress' }), 'sluice.progress')
  const hasEnds = root['ends'] !== undefined
  const ends = new Map<number, bigint>()
  for (const each of listAt(root, 'ends')) {
    const [partition, bucket, end] = isJsonArray(each) ? each : []
    if (partition !== null || typeof bucket !== 'number')
      throw damage('a bucket of sluice.progress')
    ends.set(bucket, offsetOf(end))
  }
  const { sha256: digest, ledger } = root
  return {
    snapshot: offsetOf(root['snapshot']),
    sequence: offsetOf(root['sequence']),
    ends: hasEnds ? ends : undefined,
    sha256: typeof digest === 'string' ? digest : undefined,
    ledger: typeof ledger === 'string' ? readLedger(ledger) : undefined,
  }
}

/** The token of the table property `sluice.token`. @throws SluiceError DATA_CORRUPT */
export function readClaim(text: string): Token {
  const root = parseJson(text, { name: 'sluice.token' })
  if (!isJsonObject(root)) throw damage('sluice.token should be an object')
  return tokenOf(root['token'])
}

/** The digest that `sluice.progress` has instead of ends that are too many. */
export function digestOfEnds(ends: ReadonlyMap<number, bigint>): string {
  const list = [...ends].sort(([a], [b]) => a - b)
  return sha256(JSON.stringify(list.map(([bucket, end]) => [null, bucket, end.toString()])))
}

export function compareTokens(a: Token, b: Token): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
}

/** `incarnation.epoch`, as everywhere. */
export function showToken([generation, incarnation, epoch]: Token): string {
  const short = `${incarnation}.${epoch}`
  return generation === 0 ? short : `${generation}.${short}`
}

/** @throws SluiceError DATA_CORRUPT */
export function tokenOf(value: JsonValue | undefined): Token {
  const [first, second, third, more] = isJsonArray(value) ? value : []
  if (!isCount(first) || !isCount(second) || !isCount(third) || more !== undefined) {
    throw damage('a token should be three whole numbers')
  }
  return [first, second, third]
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** 64-bit numbers stand in ledgers as decimal text. */
function offsetOf(value: JsonValue | undefined): bigint {
  if (typeof value === 'string' && /^\d{1,19}$/.test(value)) return BigInt(value)
  throw damage('an offset should be a decimal text')
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

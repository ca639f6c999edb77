import { SluiceError } from '../../core/errors.ts'
import {
  type Bucket,
  bucket,
  type CommitId,
  commitId,
  type Millis,
  millis,
  type Offset,
  offset,
} from '../../core/ids.ts'
import type { BlockDigests, BucketEnds, InputProgress, InputsProgress } from '../../source/ports.ts'
import { decodeToken, type Token } from './token.ts'

/** What a snapshot of ours is for. Only a `round` adds rows. */
export type LedgerKind = 'round' | 'fence' | 'override' | 'keepalive' | 'resync'

/** The last millisecond that a date can be of. */
const timeMax = 8_640_000_000_000_000

const kinds: readonly LedgerKind[] = ['round', 'fence', 'override', 'keepalive', 'resync']

/** Rows of a bucket are exactly `[origin, end)` without the declared gaps. */
export type BucketProgress = { readonly origin: Offset; readonly end: Offset }

/** A declared hole: offsets that will never be in the table. */
export type Gap = {
  readonly bucket: Bucket
  readonly from: Offset
  readonly to: Offset
  readonly reason: string
  readonly by: string
}

/**
 * What every snapshot of ours says about progress, written in the same swap as the rows. A bucket
 * without an entry has no end yet: absent is a fact of its own and never 0.
 */
export type Ledger = {
  /** Stable id of source and source table. */
  readonly source: string
  /** UUID of the lake table. */
  readonly table: string
  readonly kind: LedgerKind
  readonly token: Token
  /** Counts rounds that were committed, from 1. */
  readonly round: number
  readonly commit: CommitId
  /** The writer will not write again under this token. */
  readonly final: boolean
  readonly buckets: ReadonlyMap<Bucket, BucketProgress>
  readonly gaps: readonly Gap[]
  readonly inputs: InputsProgress
}

export function endsOf(ledger: Ledger): BucketEnds {
  return new Map([...ledger.buckets].map(([each, progress]) => [each, progress.end]))
}

/** What of a ledger is written beside what a round depends on. */
type LedgerParts = { readonly blocks: boolean }

/** Canonical JSON: keys and buckets in a fixed order, 64-bit numbers as decimal strings. */
export function encodeLedger(ledger: Ledger, has: LedgerParts = { blocks: true }): string {
  const buckets = [...ledger.buckets].sort(([a], [b]) => a - b)
  const inputs = [...ledger.inputs].sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify({
    v: 1,
    source: ledger.source,
    table: ledger.table,
    kind: ledger.kind,
    token: [ledger.token.generation, ledger.token.incarnation, ledger.token.epoch],
    round: ledger.round,
    commit: ledger.commit,
    final: ledger.final,
    buckets: buckets.map(([each, { origin, end }]) => [null, each, String(origin), String(end)]),
    gaps: ledger.gaps.map((gap) => ({
      partition: null,
      bucket: gap.bucket,
      from: String(gap.from),
      to: String(gap.to),
      reason: gap.reason,
      by: gap.by,
    })),
    inputs: inputs.map(([id, progress]) => [id, encodeInput(progress, has)]),
  })
}

/** @throws SluiceError DATA_CORRUPT when the text is not a ledger this version can read. */
export function decodeLedger(text: string, where: string): Ledger {
  const fail = (what: string): never => {
    throw new SluiceError('DATA_CORRUPT', `${where}: the ledger is damaged (${what})`, {
      details: { where },
    })
  }
  // Every 64-bit number in a ledger is a string, so the plain parser loses nothing.
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return fail('it is not JSON')
  }
  const root = record(parsed) ?? fail('it is not an object')
  if (root['v'] !== 1) fail(`version ${String(root['v'])} is not known`)
  const string = (value: unknown, key: string): string =>
    typeof value === 'string' ? value : fail(`${key} is not text`)
  const whole = (value: unknown, key: string): number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
      ? value
      : fail(`${key} is not a whole number`)
  const long = (value: unknown, key: string): bigint =>
    typeof value === 'string' && /^\d{1,19}$/.test(value)
      ? BigInt(value)
      : fail(`${key} is not a decimal string`)
  const time = (value: unknown, key: string): Millis => {
    const ms = Number(long(value, key))
    return ms <= timeMax ? millis(ms) : fail(`${key} is no time`)
  }
  const list = (value: unknown, key: string): readonly unknown[] =>
    Array.isArray(value) ? value : fail(`${key} is not a list`)

  const seen = (fields: Readonly<Record<string, unknown>>): Seen => {
    const { tiered, blocks } = fields
    return {
      ...(tiered === undefined ? {} : { tieredAt: time(tiered, 'tiered') }),
      ...(blocks === undefined
        ? {}
        : { blocks: decodeBlocks(blocks) ?? fail('blocks of an input are malformed') }),
    }
  }

  const input = (value: unknown): InputProgress => {
    const fields = record(value) ?? fail('an input is not an object')
    const notes = record(fields['notes'])
    const ahead = record(fields['ahead'])
    return {
      name: string(fields['name'], 'name'),
      position: string(fields['position'], 'position'),
      records: long(fields['records'], 'records'),
      ...(fields['digest'] === undefined ? {} : { digest: string(fields['digest'], 'digest') }),
      ...seen(fields),
      extra: new Map(
        list(fields['extra'], 'extra').map((each) => {
          const [which, count] = list(each, 'extra')
          return [bucket(whole(which, 'bucket')), long(count, 'count')]
        }),
      ),
      ...(ahead === undefined
        ? {}
        : {
            ahead: {
              position: string(ahead['position'], 'position'),
              digest: string(ahead['digest'], 'digest'),
              ...seen(ahead),
            },
          }),
      ...(notes === undefined
        ? {}
        : {
            notes: Object.fromEntries(
              Object.entries(notes).map(([key, each]) => [key, string(each, key)]),
            ),
          }),
    }
  }

  const kind = kinds.find((each) => each === root['kind']) ?? fail('its kind is not known')
  return {
    source: string(root['source'], 'source'),
    table: string(root['table'], 'table'),
    kind,
    token: decodeToken(root['token']) ?? fail('its token is malformed'),
    round: whole(root['round'], 'round'),
    commit: commitId(string(root['commit'], 'commit')),
    final: root['final'] === true,
    buckets: new Map(
      list(root['buckets'], 'buckets').map((each) => {
        const [partition, which, origin, end] = list(each, 'buckets')
        if (partition !== null) fail('partitions are not known to this version')
        const progress = {
          origin: offset(long(origin, 'origin')),
          end: offset(long(end, 'end')),
        }
        if (progress.end < progress.origin) fail(`bucket ${String(which)} ends before its origin`)
        return [bucket(whole(which, 'bucket')), progress]
      }),
    ),
    gaps: list(root['gaps'], 'gaps').map((each) => {
      const gap = record(each) ?? fail('a gap is not an object')
      return {
        bucket: bucket(whole(gap['bucket'], 'bucket')),
        from: offset(long(gap['from'], 'from')),
        to: offset(long(gap['to'], 'to')),
        reason: string(gap['reason'], 'reason'),
        by: string(gap['by'], 'by'),
      }
    }),
    inputs: new Map(
      list(root['inputs'], 'inputs').map((each) => {
        const [id, progress] = list(each, 'inputs')
        return [string(id, 'input id'), input(progress)]
      }),
    ),
  }
}

/** What the ledger says of an input for the message when it is another one day. */
type Seen = Pick<InputProgress, 'blocks' | 'tieredAt'>

function encodeSeen(
  { blocks, tieredAt }: Seen,
  has: LedgerParts,
): Readonly<Record<string, unknown>> {
  return {
    ...(tieredAt === undefined ? {} : { tiered: String(tieredAt) }),
    ...(blocks === undefined || !has.blocks ? {} : { blocks: [blocks.bytes, blocks.digests] }),
  }
}

function decodeBlocks(value: unknown): BlockDigests | undefined {
  const [bytes, digests] = Array.isArray(value) ? (value as readonly unknown[]) : []
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes < 1) return undefined
  if (typeof digests !== 'string' || !/^(?:[0-9a-f]{8})+$/.test(digests)) return undefined
  return { bytes, digests }
}

function encodeInput(progress: InputProgress, has: LedgerParts): Readonly<Record<string, unknown>> {
  const { ahead } = progress
  const extra = [...progress.extra].sort(([a], [b]) => a - b)
  return {
    name: progress.name,
    position: progress.position,
    records: String(progress.records),
    ...(progress.digest === undefined ? {} : { digest: progress.digest }),
    ...encodeSeen(progress, has),
    extra: extra.map(([each, count]) => [each, String(count)]),
    ...(ahead === undefined
      ? {}
      : { ahead: { position: ahead.position, digest: ahead.digest, ...encodeSeen(ahead, has) } }),
    ...(progress.notes === undefined ? {} : { notes: progress.notes }),
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined
}

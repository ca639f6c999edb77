import { inflateRawSync } from 'node:zlib'

export type SeenInput = {
  readonly position: number
  readonly extra: ReadonlyMap<number, number>
}

export type SeenLedger = {
  readonly commit: string
  readonly kind: string
  readonly table: string
  readonly token: readonly number[]
  readonly round: number
  readonly final: boolean
  readonly buckets: ReadonlyMap<number, { readonly origin: bigint; readonly end: bigint }>
  readonly inputs: ReadonlyMap<string, SeenInput>
}

type Entries = Readonly<Record<string, unknown>>

/** The ledger as its page defines it, read without the code that writes it. */
export function seeLedger(text: string): SeenLedger {
  const plain = text.startsWith('deflate:')
    ? inflateRawSync(Buffer.from(text.slice(8), 'base64')).toString('utf8')
    : text
  const root = entries(JSON.parse(plain))
  return {
    commit: String(root['commit']),
    kind: String(root['kind']),
    table: String(root['table']),
    token: list(root['token']).map(Number),
    round: Number(root['round']),
    final: root['final'] === true,
    buckets: new Map(
      list(root['buckets']).map((each) => {
        const [, bucket, origin, end] = list(each)
        return [Number(bucket), { origin: BigInt(String(origin)), end: BigInt(String(end)) }]
      }),
    ),
    inputs: new Map(
      list(root['inputs']).map((each) => {
        const [id, progress] = list(each)
        const { position, extra } = entries(progress)
        const counts = list(extra).map((pair): [number, number] => {
          const [bucket, count] = list(pair)
          return [Number(bucket), Number(count)]
        })
        return [String(id), { position: Number(position), extra: new Map(counts) }]
      }),
    ),
  }
}

/** The token in a table property: who may write. */
export function seeClaim(text: string): {
  readonly token: readonly number[]
  readonly commit: string
} {
  const root = entries(JSON.parse(text))
  return { token: list(root['token']).map(Number), commit: String(root['commit']) }
}

/** Below 0 when `a` is the lower. */
export function compareSeen(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < 3; at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function entries(value: unknown): Entries {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error('a ledger has an object here')
  }
  return Object.fromEntries(Object.entries(value))
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('a ledger has a list here')
  return value
}

import type { SimInput } from '../inputs.ts'
import { compareSeen, seeClaim, type SeenInput, seeLedger, type SeenLedger } from './ledger.ts'
import {
  lineageOf,
  ManifestReader,
  type Objects,
  type SeenFile,
  type SeenSnapshot,
  type SeenVersion,
  seeVersion,
} from './read-version.ts'
import { readRows, type SeenRow } from './rows.ts'
import { demand, Violation } from './violation.ts'

/** Who wrote a version: Sluice, or one of the people of the simulation. */
export type Author = 'sluice' | 'rollback' | 'expire' | 'foreign-append' | 'foreign-rewrite'

type Checked = {
  readonly seen: SeenVersion
  readonly files: readonly SeenFile[]
  readonly ends: ReadonlyMap<number, bigint>
}

const ownKey = 'sluice.commit-id'

/**
 * Judges each version of one table as a reader of the lake would see it, against the inputs alone.
 * It knows nothing of rounds, fences and processes, and shares no code with what it judges.
 */
export class TableOracle {
  readonly #objects: Objects
  readonly #manifests: ManifestReader
  readonly #inputs: readonly SimInput[]
  readonly #rows = new Map<string, readonly SeenRow[]>()
  /** Snapshots whose files were looked at, with their files. */
  readonly #snapshots = new Map<string, readonly SeenFile[]>()
  /** The snapshot each path was added by, over the life of the table. */
  readonly #addedBy = new Map<string, string>()
  readonly #commits = new Map<string, string>()
  readonly #rounds = new Map<string, string>()
  readonly #bucketOf = new Map<number, number>()
  /** Files of rounds that their process says are not in the lake and never will be. */
  readonly #disowned = new Set<string>()
  #highest: readonly number[] = [0, 0, 0]
  #last: Checked | undefined
  #versions = 0

  constructor(objects: Objects, inputs: readonly SimInput[]) {
    this.#objects = objects
    this.#manifests = new ManifestReader(objects)
    this.#inputs = inputs
  }

  get versions(): number {
    return this.#versions
  }

  async check(number: number, body: Uint8Array, author: Author): Promise<void> {
    try {
      await this.#check(number, body, author)
    } catch (error) {
      if (error instanceof Violation) throw error
      throw new Violation('I-19', `version ${number} cannot be read: ${String(error)}`)
    }
  }

  removed(path: string): void {
    const seen = this.#last?.seen
    if (seen === undefined) return
    for (const snapshot of seen.snapshots.values()) {
      const files = this.#snapshots.get(snapshot.id) ?? []
      demand(
        snapshot.manifestList !== path && !files.some((file) => file.path === path),
        'I-12',
        () => `${path} was deleted, and snapshot ${snapshot.id} names it`,
      )
    }
  }

  /** A process says that a round is in the lake. */
  committed(paths: readonly string[], snapshot: string): void {
    for (const path of paths) {
      const by = this.#addedBy.get(path)
      demand(by === snapshot, 'I-13', () => {
        return `${path} is reported as committed by ${snapshot}, and ${by ?? 'nothing'} added it`
      })
    }
  }

  /** A process says that a round is not in the lake and never will be. */
  disowned(paths: readonly string[]): void {
    for (const path of paths) {
      demand(!this.#addedBy.has(path), 'I-13', () => {
        return `${path} is reported as not committed, and it is in the table`
      })
      this.#disowned.add(path)
    }
  }

  /** @throws Violation unless every record of every input is in the table once */
  atTheEnd(): void {
    const found = new Set<number>()
    for (const file of this.#last?.files ?? []) {
      for (const row of this.#rows.get(file.path) ?? []) found.add(row.n)
    }
    for (const input of this.#inputs) {
      for (let ordinal = 0; ordinal < input.records; ordinal += 1) {
        demand(found.has(input.first + ordinal), 'I-01', () => {
          return `record ${ordinal} of ${input.id} is in no row although everything has ended`
        })
      }
    }
  }

  async #check(number: number, body: Uint8Array, author: Author): Promise<void> {
    demand(number === this.#versions + 1, 'I-16', () => {
      return `version ${number} was made after version ${this.#versions}`
    })
    this.#versions = number
    const before = this.#last
    const seen = seeVersion(body, before?.seen)
    if (before !== undefined) this.#checkMove(before.seen, seen)
    for (const snapshot of seen.snapshots.values()) await this.#look(snapshot, seen)
    const files = seen.head === undefined ? [] : (this.#snapshots.get(seen.head) ?? [])
    const ledger = this.#newestLedger(seen)
    if (author === 'sluice') this.#checkTokens(seen, before?.seen)
    const ends = this.#checkRows(seen, files, ledger, author)
    if (before !== undefined && author !== 'rollback') this.#checkKept(before, files, ends)
    this.#last = { seen, files, ends }
  }

  #checkMove(before: SeenVersion, seen: SeenVersion): void {
    demand(before.uuid === seen.uuid, 'I-22', () => 'the table has another UUID')
    demand(seen.updatedAt >= before.updatedAt, 'I-25', () => 'time went back in metadata')
    demand(seen.lastSequence >= before.lastSequence, 'I-16', () => 'sequence numbers went back')
  }

  /** Reads a snapshot when it is seen first: everything below it has to be there. */
  async #look(snapshot: SeenSnapshot, seen: SeenVersion): Promise<void> {
    if (this.#snapshots.has(snapshot.id)) return
    const { manifests } = this.#manifests.list(snapshot.manifestList)
    const files: SeenFile[] = []
    for (const manifest of manifests) {
      const entries = this.#manifests.files(manifest)
      const rows = entries.reduce((sum, file) => sum + file.rows, 0)
      demand(manifest.addedFiles === entries.length && manifest.addedRows === rows, 'I-18', () => {
        return `${manifest.path} has other counts than its list says`
      })
      files.push(...entries)
    }
    for (const file of files) await this.#lookAtFile(file, snapshot, seen)
    this.#checkTotals(snapshot, files)
    this.#checkCommit(snapshot, seen)
    this.#snapshots.set(snapshot.id, files)
  }

  async #lookAtFile(file: SeenFile, snapshot: SeenSnapshot, seen: SeenVersion): Promise<void> {
    const { path } = file
    const known = this.#addedBy.get(path)
    if (known !== undefined) {
      demand(known === file.snapshot, 'I-17', () => `${path} was added by ${known} and again`)
      return
    }
    demand(file.snapshot === snapshot.id, 'I-23', () => {
      return `${path} says ${file.snapshot} added it, and it appears with ${snapshot.id}`
    })
    this.#addedBy.set(path, file.snapshot)
    demand(!this.#disowned.has(path), 'I-13', () => {
      return `${path} was reported as not committed, and landed with ${snapshot.id}`
    })
    const found = this.#objects.get(path)
    demand(found !== undefined, 'I-19', () => `${path} is in the table and not there`)
    demand(found.body.length === file.bytes, 'I-19', () => `${path} has not ${file.bytes} bytes`)
    if (isForeign(path)) return
    const rows = await readRows(found.body)
    demand(rows.length === file.rows, 'I-18', () => `${path} has not ${file.rows} rows`)
    this.#rows.set(path, rows)
    for (const row of rows) {
      demand(row.bucket === file.bucket, 'I-18', () => {
        return `${path} has a row of bucket ${row.bucket}`
      })
    }
    checkBounds(file, rows, seen.fieldIds)
  }

  #checkTotals(snapshot: SeenSnapshot, files: readonly SeenFile[]): void {
    const said = (key: string): string | undefined => snapshot.summary.get(key)
    const sum = (of: (file: SeenFile) => number): string =>
      String(files.reduce((total, file) => total + of(file), 0))
    const expected: readonly (readonly [string, string])[] = [
      ['total-records', sum((file) => file.rows)],
      ['total-data-files', String(files.length)],
      ['total-files-size', sum((file) => file.bytes)],
    ]
    for (const [key, value] of expected) {
      demand(said(key) === value, 'I-18', () => {
        return `snapshot ${snapshot.id}: ${key} is ${said(key) ?? 'absent'}, and ${value} is right`
      })
    }
  }

  /** A commit id and a round's token are used once; the ledger belongs to this table. */
  #checkCommit(snapshot: SeenSnapshot, seen: SeenVersion): void {
    const commit = snapshot.summary.get(ownKey)
    if (commit === undefined) return
    const known = this.#commits.get(commit)
    demand(known === undefined, 'I-13', () => `commit ${commit} is in ${known ?? ''} and again`)
    this.#commits.set(commit, snapshot.id)
    const ledger = this.#ledgerOf(snapshot)
    demand(ledger.table === seen.uuid, 'I-22', () => 'a ledger is of another table')
    if (ledger.kind !== 'round') return
    const token = ledger.token.join('.')
    demand(!this.#rounds.has(token), 'I-11', () => `two rounds were committed under ${token}`)
    this.#rounds.set(token, snapshot.id)
  }

  /** Nothing is written under a token lower than the highest that was ever written. */
  #checkTokens(seen: SeenVersion, before: SeenVersion | undefined): void {
    const head = seen.head === before?.head ? undefined : seen.snapshots.get(seen.head ?? '')
    const tokens: (readonly number[])[] = []
    if (head?.summary.has(ownKey) === true) tokens.push(this.#ledgerOf(head).token)
    const claim = seen.properties.get('sluice.token')
    if (claim !== undefined && claim !== before?.properties.get('sluice.token')) {
      tokens.push(seeClaim(claim).token)
    }
    for (const token of tokens) {
      demand(compareSeen(token, this.#highest) >= 0, 'I-09', () => {
        return `a commit under ${token.join('.')} landed after ${this.#highest.join('.')} had the table`
      })
    }
    for (const token of tokens) if (compareSeen(token, this.#highest) > 0) this.#highest = token
  }

  #newestLedger(seen: SeenVersion): SeenLedger | undefined {
    for (const snapshot of lineageOf(seen)) {
      if (snapshot.summary.has(ownKey)) return this.#ledgerOf(snapshot)
    }
    return undefined
  }

  #ledgerOf(snapshot: SeenSnapshot): SeenLedger {
    const inline = snapshot.summary.get('sluice.ledger') ?? ''
    if (!inline.startsWith('manifest-list')) return seeLedger(inline)
    const { ledger } = this.#manifests.list(snapshot.manifestList)
    if (ledger === undefined) throw new Error(`snapshot ${snapshot.id} has no ledger`)
    return seeLedger(ledger)
  }

  /** Exactly once: per bucket every offset up to its end, and per input what the ledger says. */
  #checkRows(
    seen: SeenVersion,
    files: readonly SeenFile[],
    ledger: SeenLedger | undefined,
    author: Author,
  ): ReadonlyMap<number, bigint> {
    const buckets = new Map<number, SeenRow[]>()
    for (const file of inOrder(files)) {
      for (const row of this.#rows.get(file.path) ?? []) {
        const rows = buckets.get(row.bucket)
        if (rows === undefined) buckets.set(row.bucket, [row])
        else rows.push(row)
      }
    }
    const ends = new Map<number, bigint>()
    const present = new Set<number>()
    for (const [bucket, rows] of buckets) {
      const range = ledger?.buckets.get(bucket)
      let next = range?.origin ?? 0n
      const newest = new Map<number, number>()
      for (const row of rows) {
        demand(row.offset === next, 'I-01', () => {
          const what = row.offset < next ? 'again' : 'too early'
          return `bucket ${bucket} has offset ${String(row.offset)} ${what}, after ${String(next - 1n)}`
        })
        next += 1n
        demand(!present.has(row.n), 'I-01', () => `record ${row.n} is in the table twice`)
        present.add(row.n)
        const input = Math.floor(row.n / 1_000_000)
        demand(row.n > (newest.get(input) ?? -1), 'I-02', () => {
          return `record ${row.n} comes after ${newest.get(input) ?? ''} in bucket ${bucket}`
        })
        newest.set(input, row.n)
        this.#checkBucket(row)
      }
      ends.set(bucket, next)
      demand(ledger === undefined || range?.end === next, 'I-01', () => {
        return `bucket ${bucket} ends at ${String(next)}, the ledger says ${String(range?.end)}`
      })
    }
    const isWhole = isToTheRoot(seen) || ledger !== undefined
    for (const [bucket, { origin, end }] of ledger?.buckets ?? []) {
      demand(buckets.has(bucket) || origin === end, 'I-01', () => {
        return `bucket ${bucket} has no rows, the ledger says ${String(end)}`
      })
    }
    if (ledger !== undefined) this.#checkInputs(ledger, present)
    else
      demand(
        !isWhole || present.size === 0 || author === 'expire',
        'I-01',
        () => 'rows without a ledger',
      )
    return ends
  }

  #checkBucket(row: SeenRow): void {
    const known = this.#bucketOf.get(row.n)
    demand(known === undefined || known === row.bucket, 'I-01', () => {
      return `record ${row.n} moved from bucket ${known ?? ''} to ${row.bucket}`
    })
    this.#bucketOf.set(row.n, row.bucket)
  }

  /** A crash right now resumes from these positions, so they have to be exact. */
  #checkInputs(ledger: SeenLedger, present: ReadonlySet<number>): void {
    for (const input of this.#inputs) {
      const nothing: SeenInput = { position: 0, extra: new Map() }
      const progress = ledger.inputs.get(input.id) ?? nothing
      const beyond = new Map<number, number>()
      for (let ordinal = 0; ordinal < input.records; ordinal += 1) {
        const n = input.first + ordinal
        const isThere = present.has(n)
        if (ordinal < progress.position) {
          demand(
            isThere,
            'I-01',
            () => `record ${n} is missing below position ${progress.position}`,
          )
          continue
        }
        const bucket = this.#bucketOf.get(n)
        if (isThere && bucket !== undefined) beyond.set(bucket, (beyond.get(bucket) ?? 0) + 1)
      }
      for (const bucket of new Set([...beyond.keys(), ...progress.extra.keys()])) {
        const [found, said] = [beyond.get(bucket) ?? 0, progress.extra.get(bucket) ?? 0]
        demand(found === said, 'I-01', () => {
          return `${input.id}: bucket ${bucket} has ${found} records beyond ${progress.position}, the ledger says ${said}`
        })
      }
    }
  }

  /** Nothing that was in the table leaves it, and no end goes back. */
  #checkKept(before: Checked, files: readonly SeenFile[], ends: ReadonlyMap<number, bigint>): void {
    const paths = new Set(files.map((file) => file.path))
    for (const { path } of before.files) {
      demand(paths.has(path), isForeign(path) ? 'I-24' : 'I-02', () => `${path} left the table`)
    }
    for (const [bucket, end] of before.ends) {
      demand((ends.get(bucket) ?? 0n) >= end, 'I-04', () => `bucket ${bucket} went back`)
    }
  }
}

function isForeign(path: string): boolean {
  return path.includes('/foreign-')
}

function isToTheRoot(seen: SeenVersion): boolean {
  const last = lineageOf(seen).at(-1)
  return last === undefined ? seen.head === undefined : last.parent === undefined
}

/** By sequence number; files of one commit in the order its manifest has them. */
function inOrder(files: readonly SeenFile[]): readonly SeenFile[] {
  return [...files].sort((a, b) => (a.sequence < b.sequence ? -1 : a.sequence > b.sequence ? 1 : 0))
}

function checkBounds(
  file: SeenFile,
  rows: readonly SeenRow[],
  fieldIds: ReadonlyMap<string, number>,
): void {
  const id = fieldIds.get('__offset') ?? -1
  const [lower, upper] = [file.lower.get(id), file.upper.get(id)]
  if (lower === undefined || upper === undefined) return
  const [low, high] = [int64(lower), int64(upper)]
  for (const { offset } of rows) {
    demand(low <= offset && offset <= high, 'I-18', () => {
      return `${file.path}: offset ${String(offset)} is outside of its bounds`
    })
  }
}

function int64(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getBigInt64(0, true)
}

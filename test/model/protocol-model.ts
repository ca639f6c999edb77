import {
  type CommitClaim,
  judge as soundJudge,
  rivalOf,
  type Verdict,
} from '../../src/sink/committer/judge.ts'
import { ledgerOf } from '../../src/sink/committer/held-table.ts'
import type { ReadVersion } from '../../src/sink/committer/progress.ts'
import { reachesBack } from '../../src/sink/committer/lineage.ts'
import { compareTokens } from '../../src/sink/committer/token.ts'
import { Catalog, type CatalogKind, type Request } from './catalog-kinds.ts'
import {
  CatalogFold,
  commitOf,
  endOf,
  fenceLetter,
  type HolderSpec,
  type Op,
  rangeOf,
  type Reader,
  snapshotOf,
  soundReader,
  tokenOf,
} from './catalog-fold.ts'

/*
 * Every interleaving of a few holders on one table. A request that got no answer
 * stays on the wire and may land at any later moment, or never; a holder may crash between any two
 * steps; people do to the table what people do. The judge, the reading of the lineage and the
 * changes are those of production; the loop around them is `commit` in small steps.
 */

type Phase = 'plan' | 'fence' | 'judge' | 'send' | 'done'

type Holder = {
  readonly phase: Phase
  /** What it is about to do to the table. */
  readonly op: Op | undefined
  /** Versions that requests of it were bound to and that may still be the newest. */
  readonly open: readonly number[]
  readonly base: number
  readonly attempt: number
  readonly isFenced: boolean
  readonly claim: '' | 'committed' | 'deletable' | 'unknown' | 'nothing' | 'dead'
}

type State = {
  readonly ops: readonly Op[]
  readonly holders: readonly Holder[]
  readonly flying: readonly Request[]
  readonly people: readonly number[]
}

/** What is put wrong, each part in its place. */
export type Mutation = {
  readonly judge?: typeof soundJudge
  readonly read?: Reader
  /** A rejection is the end, and nobody looks whether it was our own request that took the number. */
  readonly rejectionIsFinal?: boolean
  /** Attempts without an answer are forgotten. */
  readonly doubtForgotten?: boolean
  /** Answers that say "taken" are believed even when nothing can be read afterwards. */
  readonly rejectionBelieved?: boolean
  /** Only the first attempt is judged. */
  readonly judgedOnce?: boolean
}

export type ModelOptions = {
  readonly holders: readonly HolderSpec[]
  readonly attemptsMax: number
  /** How many foreign appends, rollbacks and expiries there may be. */
  readonly people?: readonly [foreign: number, rollback: number, expire: number]
  readonly catalog?: CatalogKind
  /** What a take-over writes: a property, or a snapshot without rows, which may bear a mark. */
  readonly fence?: 'property' | 'snapshot' | 'marked'
  /**
   * An attempt once in doubt is so for ever: the catalog may take an old request after a rollback. Then
   * nothing that is seen later proves its files dead.
   */
  readonly doubtStays?: boolean
  /** False where a rollback below a fence may give a table back to an older holder for one request. */
  readonly ownership?: boolean
  /** The answer to a create may be "taken" by its own doubled request, and reads may fail. */
  readonly lies?: boolean
  readonly mutation?: Mutation
  readonly statesMax?: number
}

export type Explored = {
  readonly states: number
  /** The shortest way to something that must not be: its steps, and what it is. */
  readonly counterexample:
    | { readonly steps: readonly string[]; readonly problem: string }
    | undefined
}

export function explore(options: ModelOptions): Explored {
  const { mutation = {} } = options
  const fold = new CatalogFold(options.holders, mutation.read ?? soundReader)
  const model = new Model(options, fold, mutation)
  const first: State = {
    ops: [],
    holders: options.holders.map(() => ({
      phase: 'plan',
      op: undefined,
      open: [],
      base: 0,
      attempt: 0,
      isFenced: false,
      claim: '',
    })),
    flying: [],
    people: options.people ?? [0, 0, 0],
  }
  const cameFrom = new Map<string, { readonly key: string; readonly label: string } | undefined>()
  cameFrom.set(JSON.stringify(first), undefined)
  let layer: State[] = [first]
  while (layer.length > 0) {
    const next: State[] = []
    for (const state of layer) {
      const key = JSON.stringify(state)
      const problem = model.problemOf(state)
      if (problem !== undefined) {
        return { states: cameFrom.size, counterexample: { steps: wayTo(key, cameFrom), problem } }
      }
      for (const [label, after] of model.steps(state)) {
        const afterKey = JSON.stringify(after)
        if (cameFrom.has(afterKey)) continue
        cameFrom.set(afterKey, { key, label })
        next.push(after)
      }
      if (cameFrom.size > (options.statesMax ?? 2_000_000)) throw new Error('too many states')
    }
    layer = next
  }
  return { states: cameFrom.size, counterexample: undefined }
}

function wayTo(
  key: string,
  cameFrom: ReadonlyMap<string, { readonly key: string; readonly label: string } | undefined>,
): readonly string[] {
  const steps: string[] = []
  for (let at = cameFrom.get(key); at !== undefined; at = cameFrom.get(at.key)) {
    steps.unshift(at.label)
  }
  return steps
}

class Model {
  readonly #options: ModelOptions
  readonly #fold: CatalogFold
  readonly #mutation: Mutation
  readonly #catalog: Catalog

  constructor(options: ModelOptions, fold: CatalogFold, mutation: Mutation) {
    this.#options = options
    this.#fold = fold
    this.#mutation = mutation
    this.#catalog = new Catalog(options.catalog ?? 'numbered', fold, (op) => {
      if (op.kind === 'round') return options.holders[op.holder]?.commit
      if (op.kind !== 'fence' || op.form === undefined) return undefined
      const spec = options.holders[op.holder]
      return spec === undefined ? undefined : fenceLetter(spec)
    })
  }

  *steps(state: State): Iterable<readonly [string, State]> {
    for (const [index, holder] of state.holders.entries()) {
      if (holder.phase === 'done') continue
      yield* this.#stepsOf(state, index, holder)
      yield [`${name(index)} crashes`, put(state, index, { ...over(holder), claim: 'dead' })]
    }
    for (const [at, request] of state.flying.entries()) {
      const rest = { ...state, flying: state.flying.filter((_, other) => other !== at) }
      const after = this.#catalog.after(state.ops, request)
      const ops = after ?? state.ops
      const fate = after === undefined ? 'loses' : 'lands'
      // What loses now may land later, where a rollback brings back what it is bound to.
      const mayReturn = after === undefined && (this.#options.catalog ?? 'numbered') !== 'numbered'
      if (!mayReturn) {
        yield [`late ${request.op.kind} of ${name(request.holder)} ${fate}`, { ...rest, ops }]
      }
      if (after !== undefined)
        yield [`${request.op.kind} of ${name(request.holder)} vanishes`, rest]
    }
    yield* this.#people(state)
  }

  *#stepsOf(state: State, index: number, holder: Holder): Iterable<readonly [string, State]> {
    const spec = this.#options.holders[index]!
    const who = name(index)
    if (holder.phase === 'plan') {
      yield [`${who} plans on v${state.ops.length}`, this.#plan(state, index, holder, spec)]
      return
    }
    if (holder.phase === 'judge') {
      const version = holder.attempt === 0 ? holder.base : state.ops.length
      yield [`${who} judges v${version}`, this.#judge(state, index, holder, spec, version)]
      if (this.#options.lies === true && holder.attempt > 0) {
        yield [`${who} cannot read`, put(state, index, this.#giveUp(holder))]
      }
      return
    }
    yield* this.#send(state, index, holder)
  }

  #plan(state: State, index: number, holder: Holder, spec: HolderSpec): State {
    const version = this.#fold.version(state.ops)
    const drawn = new Set([commitOf(spec.commit), commitOf(fenceLetter(spec))])
    const isLost = version.progress.kind === 'lost'
    if (isLost || rivalOf(version, { token: tokenOf(spec), drawn }) !== undefined) {
      return put(state, index, { ...over(holder), claim: 'nothing' })
    }
    const base = state.ops.length
    if (spec.fences && !holder.isFenced) {
      const { fence = 'property' } = this.#options
      const form = fence === 'property' ? {} : { form: fence }
      const op: Op = { kind: 'fence', holder: index, ...form }
      return put(state, index, { ...holder, phase: 'judge', op, base, attempt: 0, open: [] })
    }
    const end = endOf(version, spec.bucket)
    const start = Number(end ?? 0n)
    if (start >= spec.stop) return put(state, index, { ...over(holder), claim: 'nothing' })
    const op: Op = {
      kind: 'round',
      holder: index,
      start,
      stop: spec.stop,
      isFirst: end === undefined,
      of: spec.bucket,
      follows: ledgerOf(version)?.commit ?? 'nothing',
    }
    return put(state, index, { ...holder, phase: 'judge', op, base, attempt: 0, open: [] })
  }

  #judge(state: State, index: number, holder: Holder, spec: HolderSpec, length: number): State {
    const version = this.#fold.version(state.ops.slice(0, length))
    const open = holder.open.filter((base) => {
      if (this.#options.doubtStays === true) return true
      if (this.#catalog.isSame(state.ops, base, length)) return true
      const { head } = this.#fold.table(state.ops.slice(0, base))
      return !reachesBack(version.table, head)
    })
    const seen = { ...holder, open }
    const isSkipped = this.#mutation.judgedOnce === true && holder.attempt > 0
    const verdict: Verdict = isSkipped ? { kind: 'apply' } : this.#verdict(version, seen, spec)
    if (verdict.kind === 'committed') return put(state, index, this.#landed(seen))
    if (verdict.kind === 'rolled-back')
      return put(state, index, { ...over(seen), claim: 'unknown' })
    if (verdict.kind !== 'apply') return put(state, index, this.#giveUp(seen))
    // After the last attempt it only looks.
    if (holder.attempt >= this.#options.attemptsMax) {
      return put(state, index, this.#giveUp(seen))
    }
    return put(state, index, { ...seen, phase: 'send', base: length })
  }

  #verdict(version: ReadVersion, holder: Holder, spec: HolderSpec): Verdict {
    const { op } = holder
    const judge = this.#mutation.judge ?? soundJudge
    if (op?.kind === 'round') {
      const claim: CommitClaim = {
        ...claimOf(spec, spec.commit),
        ranges: [rangeOf(op)],
        follows: op.follows === 'nothing' ? 'nothing' : commitOf(op.follows[0] ?? ''),
      }
      return judge(version, claim)
    }
    const fence = claimOf(spec, fenceLetter(spec))
    if (version.claim?.commit === fence.commit) {
      return { kind: 'committed', snapshotId: fence.snapshotId }
    }
    return judge(version, { ...fence, ranges: [] })
  }

  *#send(state: State, index: number, holder: Holder): Iterable<readonly [string, State]> {
    const { base } = holder
    if (holder.op === undefined) return
    // The version that is replaced need not be the one it was built on where only the head is guarded.
    const isBranch = (this.#options.catalog ?? 'numbered') !== 'numbered'
    const op = isBranch ? { ...holder.op, on: base } : holder.op
    const who = name(index)
    const again: Holder = {
      ...holder,
      phase: 'judge',
      attempt: holder.attempt + 1,
      open: [...holder.open, base],
    }
    const ops = this.#catalog.after(state.ops, { holder: index, base, op })
    if (ops !== undefined) {
      const after = { ...state, ops }
      yield [`${who} ${op.kind} is applied`, put(after, index, this.#landed(holder))]
      if (this.#options.lies === true) {
        yield [
          `${who} ${op.kind} is applied, answer "taken"`,
          put(after, index, this.#refused(again)),
        ]
      }
    } else {
      yield [`${who} ${op.kind} is rejected`, put(state, index, this.#refused(again))]
    }
    const flying = [...state.flying, { holder: index, base, op }]
    yield [`${who} ${op.kind} gets no answer`, put({ ...state, flying }, index, again)]
  }

  *#people(state: State): Iterable<readonly [string, State]> {
    const [foreign, rollback, expire] = state.people
    const table = this.#fold.table(state.ops)
    const head = table.head === undefined ? undefined : table.snapshots.get(table.head)
    if (head === undefined) return
    const act = (op: Op, which: number): State => ({
      ...state,
      ops: [...state.ops, op],
      people: state.people.map((count, at) => (at === which ? count - 1 : count)),
    })
    if ((foreign ?? 0) > 0) yield ['another engine appends', act({ kind: 'foreign' }, 0)]
    const parent = head.parent === undefined ? undefined : table.snapshots.get(head.parent)
    if ((rollback ?? 0) > 0 && parent !== undefined) {
      yield ['an operator rolls back', act({ kind: 'rollback' }, 1)]
    }
    if ((expire ?? 0) > 0 && parent !== undefined) {
      yield ['a tool expires all but the head', act({ kind: 'expire' }, 2)]
    }
  }

  /** A fence that landed is planned behind; a round that landed is the end. */
  #landed(holder: Holder): Holder {
    if (holder.op?.kind !== 'fence') return { ...over(holder), claim: 'committed' }
    return { ...holder, phase: 'plan', op: undefined, open: [], attempt: 0, isFenced: true }
  }

  #refused(again: Holder): Holder {
    if (this.#mutation.rejectionBelieved === true) {
      return { ...again, open: again.open.slice(0, -1) }
    }
    return this.#mutation.rejectionIsFinal === true ? { ...over(again), claim: 'deletable' } : again
  }

  #giveUp(holder: Holder): Holder {
    const inDoubt = holder.open.length > 0 && this.#mutation.doubtForgotten !== true
    return { ...over(holder), claim: inDoubt ? 'unknown' : 'deletable' }
  }

  /** What must not be, or undefined. */
  problemOf(state: State): string | undefined {
    return (
      rowsProblem(state.ops, this.#options.holders) ??
      (this.#options.ownership === false ? undefined : this.#ownershipProblem(state.ops)) ??
      this.#claimProblem(state)
    )
  }

  #ownershipProblem(ops: readonly Op[]): string | undefined {
    let highest = 0
    for (const op of ops) {
      if (op.kind !== 'round' && op.kind !== 'fence') continue
      const token = tokenOf(this.#options.holders[op.holder]!)
      const holderOfHighest = tokenOf(this.#options.holders[highest]!)
      const isFirst = ops.find((each) => each.kind === 'round' || each.kind === 'fence') === op
      if (!isFirst && compareTokens(token, holderOfHighest) < 0) {
        return `${name(op.holder)} wrote after ${name(highest)} had the table`
      }
      highest = op.holder
    }
    return undefined
  }

  /** The files of its round are in the table, or in a snapshot that is still listed. */
  #isNamed(ops: readonly Op[], index: number): boolean {
    if (lineageOf(ops).some((op) => op.kind === 'round' && op.holder === index)) return true
    const commit = commitOf(this.#options.holders[index]?.commit ?? '')
    return this.#fold.table(ops).snapshots.has(snapshotOf(commit))
  }

  #claimProblem({ ops, flying, holders }: State): string | undefined {
    for (const [index, { claim, op }] of holders.entries()) {
      if (op?.kind === 'fence') continue
      const isIn = ops.some((each) => each.kind === 'round' && each.holder === index)
      const mayLand = flying.some(
        (each) =>
          each.holder === index &&
          each.op.kind === 'round' &&
          this.#catalog.after(ops, each) !== undefined,
      )
      const isNeeded = isIn && this.#isNamed(ops, index)
      if (claim === 'committed' && !isIn) return `${name(index)} claims what is not there`
      if (claim === 'deletable' && isNeeded) return `${name(index)} deletes files of its own commit`
      if (claim === 'deletable' && mayLand) return `${name(index)} deletes files that may land`
    }
    return undefined
  }
}

type Made = Op & { readonly kind: 'round' | 'foreign' | 'fence' }

/** The true lineage: what expiry takes from the list stays below the head. */
function lineageOf(ops: readonly Op[]): readonly Made[] {
  let lineage: readonly Made[] = []
  for (const op of ops) {
    const isSnapshot =
      op.kind === 'round' || op.kind === 'foreign' || (op.kind === 'fence' && op.form !== undefined)
    if (isSnapshot) lineage = [...lineage, op]
    else if (op.kind === 'rollback') lineage = lineage.slice(0, -1)
    else if (op.kind === 'rewind') {
      while (isMarked(lineage.at(-1))) lineage = lineage.slice(0, -1)
    }
  }
  return lineage
}

/** Rounds of the lineage tile each bucket from 0, and each lands on the one it was planned on. */
function rowsProblem(ops: readonly Op[], specs: readonly HolderSpec[]): string | undefined {
  const landed = ops.flatMap((op) => (op.kind === 'round' ? [op.holder] : []))
  if (new Set(landed).size !== landed.length) return 'a round landed twice'
  const ends = new Map<number, number>()
  let newest = 'nothing'
  for (const op of lineageOf(ops)) {
    const spec = op.kind === 'fence' ? specs[op.holder] : undefined
    if (spec !== undefined) newest = commitOf(fenceLetter(spec))
    if (op.kind !== 'round') continue
    const end = ends.get(op.of) ?? 0
    if (op.start < end) return `rows [${op.start}, ${end}) are there twice`
    if (op.start > end) return `rows [${end}, ${op.start}) are skipped`
    if (op.follows !== newest) return 'positions of inputs are written for another table'
    ends.set(op.of, op.stop)
    newest = commitOf(specs[op.holder]?.commit ?? '')
  }
  return undefined
}

function isMarked(op: Made | undefined): boolean {
  return op?.kind === 'fence' && op.form === 'marked'
}

function claimOf(spec: HolderSpec, letter: string): CommitClaim {
  const commit = commitOf(letter)
  return {
    commit,
    snapshotId: snapshotOf(commit),
    token: tokenOf(spec),
    tableUuid: 'uuid-1',
    planHead: undefined,
    schemaId: 0,
    specId: 0,
    ranges: [],
    drawn: new Set([commitOf(spec.commit), commitOf(fenceLetter(spec))]),
  }
}

function name(index: number): string {
  return `holder ${index + 1}`
}

function over(holder: Holder): Holder {
  return { ...holder, phase: 'done', open: [], attempt: 0, base: 0 }
}

function put(state: State, index: number, holder: Holder): State {
  return { ...state, holders: state.holders.map((each, at) => (at === index ? holder : each)) }
}

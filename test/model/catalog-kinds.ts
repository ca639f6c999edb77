import type { LoadedTable } from '../../src/catalog/ports.ts'
import { type CatalogFold, commitOf, entryOf, marked, type Op, snapshotOf } from './catalog-fold.ts'

/**
 * What a swap is bound to. `numbered`: the version. The others guard the head of the branch and no
 * property. `branch`: nothing else, as the specification of REST catalogs has it; `branch+sequence`:
 * also the last sequence number, as its reference server does; `rewinding`: drops marked snapshots to
 * let an older request in; `rebasing`: puts a request on whatever is newest.
 */
export type CatalogKind = 'numbered' | 'branch' | 'branch+sequence' | 'rewinding' | 'rebasing'

export type Request = { readonly holder: number; readonly base: number; readonly op: Op }

export class Catalog {
  readonly #kind: CatalogKind
  readonly #fold: CatalogFold
  readonly #letterOf: (op: Op) => string | undefined

  constructor(kind: CatalogKind, fold: CatalogFold, letterOf: (op: Op) => string | undefined) {
    this.#kind = kind
    this.#fold = fold
    this.#letterOf = letterOf
  }

  /** What the table is after a request, or undefined when it is refused. */
  after(ops: readonly Op[], { base, op }: Request): readonly Op[] | undefined {
    if (this.#kind === 'numbered') return base === ops.length ? [...ops, op] : undefined
    const now = this.#fold.table(ops)
    const then = this.#fold.table(ops.slice(0, base))
    const letter = this.#letterOf(op)
    // No server lists an id twice, so a request that comes again finds itself.
    if (letter !== undefined && now.snapshots.has(snapshotOf(commitOf(letter)))) return undefined
    if (this.#kind === 'rebasing') return [...ops, op]
    if (this.#kind === 'branch+sequence' && now.lastSequence !== then.lastSequence) return undefined
    if (now.head === then.head) return [...ops, op]
    const isRewound = this.#kind === 'rewinding' && headBelowMarks(now) === then.head
    return isRewound ? [...ops, { kind: 'rewind' }, op] : undefined
  }

  /** Whether a request bound to the one version may be applied to the other: what its token says. */
  isSame(ops: readonly Op[], one: number, other: number): boolean {
    if (this.#kind === 'numbered') return one === other
    const [left, right] = [one, other].map((length) => this.#fold.table(ops.slice(0, length)))
    return left?.head === right?.head
  }
}

function headBelowMarks(table: LoadedTable): LoadedTable['head'] {
  let { head } = table
  for (let at = entryOf(table, head); at?.summary.has(marked) === true; ) {
    head = at.parent
    at = entryOf(table, head)
  }
  return head
}

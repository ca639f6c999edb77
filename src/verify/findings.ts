/** What an audit can find wrong. `DUPLICATE_KEY` and `DANGLING_DELETE` are of primary-key tables. */
export const faultKinds = [
  'GAP',
  'OVERLAP',
  'DUPLICATE_FILE',
  'MISSING_FILE',
  'FILE_SIZE',
  'UNREADABLE',
  'ROWCOUNT',
  'OFFSETS',
  'BUCKET',
  'STATS',
  'TOTALS',
  'REWIND',
  'FENCE',
  'DUPLICATE_KEY',
  'DANGLING_DELETE',
  'PROGRESS',
] as const
export type FaultKind = (typeof faultKinds)[number]

/** What is worth knowing and is no fault. */
export const warningKinds = ['FOREIGN', 'ORPHAN', 'EXPIRED', 'CLOCK'] as const
export type WarningKind = (typeof warningKinds)[number]

/** One thing found, with the place it is at as far as it has one. */
export type Finding<Kind extends string = FaultKind | WarningKind> = {
  readonly kind: Kind
  readonly bucket?: number | undefined
  /** Offsets `[start, end)` of the bucket. */
  readonly start?: bigint | undefined
  readonly end?: bigint | undefined
  readonly snapshotIds?: readonly bigint[]
  /** Below the table's folder, or whole where a file lies elsewhere. */
  readonly paths?: readonly string[]
  readonly column?: string
  readonly expected?: string
  readonly found?: string
  /** One clause, without the place. */
  readonly detail: string
  /** A second clause: what follows from it, or the files it is in. */
  readonly also?: string
}
export type Fault = Finding<FaultKind>
export type Warning = Finding<WarningKind>

/** Findings of one kind that are kept; a table that is all wrong must not fill the memory. */
const keptMax = 200

/** Collects what is found in one table; of each kind the first are kept, the others counted. */
export class Findings {
  readonly #faults: Fault[] = []
  readonly #warnings: Warning[] = []
  readonly #counts = new Map<string, number>()

  fault(fault: Fault): void {
    if (this.#count(fault.kind) <= keptMax) this.#faults.push(fault)
  }

  warn(warning: Warning): void {
    if (this.#count(warning.kind) <= keptMax) this.#warnings.push(warning)
  }

  /** In the order of the kinds, then as found. */
  faults(): readonly Fault[] {
    return faultKinds.flatMap((kind) => this.#faults.filter((each) => each.kind === kind))
  }

  warnings(): readonly Warning[] {
    return warningKinds.flatMap((kind) => this.#warnings.filter((each) => each.kind === kind))
  }

  /** Faults that were found; more than `faults` holds when there are very many. */
  get faultCount(): number {
    return faultKinds.reduce((sum, kind) => sum + (this.#counts.get(kind) ?? 0), 0)
  }

  #count(kind: string): number {
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    return count
  }
}

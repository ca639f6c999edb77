/** Something that must never happen and did. */
export class Violation extends Error {
  override readonly name = 'Violation'
  /** Such as `I-01`. */
  readonly invariant: string

  constructor(invariant: string, message: string) {
    super(message)
    this.invariant = invariant
  }
}

export function demand(holds: boolean, invariant: string, message: () => string): asserts holds {
  if (!holds) throw new Violation(invariant, message())
}

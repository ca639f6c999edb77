import { SluiceError } from './errors.ts'

/** Makes a missing `case` a compile error, and an impossible value a loud one. */
export function unreachable(value: never): never {
  throw new SluiceError('INVARIANT_BROKEN', `unreachable value ${String(value)}`)
}

/** States what must hold, in production too. A failure is a bug of ours, never bad input. */
export function check(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new SluiceError('INVARIANT_BROKEN', `this must hold and does not: ${claim}`)
}

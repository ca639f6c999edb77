import { SluiceError } from '../core/errors.ts'
import type { TierRun } from './tier-request.ts'

/** Joins what `tier` is made of. */
export const tierRun: TierRun = () =>
  Promise.reject(new SluiceError('INVARIANT_BROKEN', 'tier is not wired up yet'))

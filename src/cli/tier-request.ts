/** What `tier` is asked and what it answers, as the library defines them. */
export type {
  ChangeCounts,
  InputReport,
  Outcome,
  Receipt,
  RoundReport,
  TierEvent,
  TierHooks,
  TierRequest,
} from '../library/tier/tier-types.ts'

import type { Receipt, TierHooks, TierRequest } from '../library/tier/tier-types.ts'

/** Tiers inputs into one table; apart from what it is made of, so that it can be replaced in tests. */
export type TierRun = (request: TierRequest, hooks: TierHooks) => Promise<Receipt>

import { silentJournal } from '../core/ports.ts'
import { seededChance, systemClock, systemIds } from '../core/system.ts'
import { tierInputs } from '../library/tier/run.ts'
import type { TierRun } from './tier-request.ts'

/** Joins what `tier` is made of. */
export const tierRun: TierRun = (request, hooks) =>
  tierInputs(request, hooks, {
    clock: systemClock,
    ids: systemIds,
    chance: seededChance(Number.parseInt(systemIds.bits128().slice(0, 7), 16)),
    journal: silentJournal,
  })

import { silentJournal } from '../core/ports.ts'
import { seededChance, systemClock, systemIds } from '../core/system.ts'
import { tierInputs } from '../library/tier/run.ts'
import type { TierRun } from './tier-request.ts'

/** Tiers on this machine: its clock, its random ids, and an order of splits that differs each time. */
export const tierRun: TierRun = (request, hooks) =>
  tierInputs(request, hooks, {
    clock: systemClock,
    ids: systemIds,
    chance: seededChance(Number.parseInt(systemIds.bits128().slice(0, 8), 16)),
    journal: hooks.journal ?? silentJournal,
  })

import type { Plan } from './plan.ts'
import { runPlan } from './run.ts'
import type { Seams } from './seams.ts'

/**
 * Leaves out whatever a failure does not need, by halves, quarters and so on (Zeller's ddmin).
 * @param runsMax Runs that the plan may be tried in
 * @returns the smallest plan found that still breaks the same invariant
 */
export async function shrinkPlan(
  plan: Plan,
  invariant: string,
  seams: (() => Seams) | undefined,
  runsMax = 250,
): Promise<Plan> {
  let runs = 0
  const fails = async (candidate: Plan): Promise<boolean> => {
    runs += 1
    const { violation } = await runPlan(candidate, seams === undefined ? {} : { seams })
    return violation?.invariant === invariant
  }
  type Item = { readonly kind: 'event' | 'fault'; readonly index: number }
  const keep = (items: readonly Item[]): Plan => ({
    ...plan,
    events: plan.events.filter((_, at) => has(items, 'event', at)),
    faults: plan.faults.filter((_, at) => has(items, 'fault', at)),
  })
  let items: readonly Item[] = [
    ...plan.events.map((_, index): Item => ({ kind: 'event', index })),
    ...plan.faults.map((_, index): Item => ({ kind: 'fault', index })),
  ]
  let parts = 2
  while (items.length > 0 && runs < runsMax) {
    const size = Math.max(1, Math.ceil(items.length / parts))
    let smaller: readonly Item[] | undefined
    for (let from = 0; from < items.length && runs < runsMax; from += size) {
      const rest = items.filter((_, at) => at < from || at >= from + size)
      if (!(await fails(keep(rest)))) continue
      smaller = rest
      break
    }
    if (smaller !== undefined) {
      items = smaller
      parts = Math.max(2, parts - 1)
    } else if (size === 1) break
    else parts = Math.min(items.length, parts * 2)
  }
  return keep(items)
}

function has(
  items: readonly { readonly kind: string; readonly index: number }[],
  kind: string,
  index: number,
): boolean {
  return items.some((item) => item.kind === kind && item.index === index)
}

/** Faults and events of a plan together. */
export function sizeOf(plan: Plan): number {
  return plan.events.length + plan.faults.length
}

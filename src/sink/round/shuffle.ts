import type { Chance } from '../../core/ports.ts'

/** Every order is equally likely (Fisher and Yates), so that no reader always has the heavy bucket. */
export function shuffle<T>(items: readonly T[], chance: Chance): readonly T[] {
  const order = items.map((item) => ({ item }))
  for (let last = order.length - 1; last > 0; last -= 1) {
    const pick = chance.below(last + 1)
    const [a, b] = [order[last], order[pick]]
    if (a === undefined || b === undefined) continue
    order[last] = b
    order[pick] = a
  }
  return order.map(({ item }) => item)
}

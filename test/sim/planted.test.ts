import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { drawPlan } from '../../sim/plan.ts'
import { plants } from '../../sim/plants.ts'
import { runPlan } from '../../sim/run.ts'
import { shrinkPlan, sizeOf } from '../../sim/shrink.ts'

Error.stackTraceLimit = 0

for (const { name, says, scenario, seedsMax, seams } of plants) {
  test(`finds the planted bug ${name}: ${says}`, async () => {
    for (let seed = 1; seed <= seedsMax; seed += 1) {
      const { violation } = await runPlan(drawPlan(seed, scenario, name), { seams })
      if (violation !== undefined) return
    }
    throw new Error(`${seedsMax} seeds of the scenario ${scenario} did not find it`)
  })
}

test('a failure is shrunk to a plan that still fails the same way', async () => {
  const plant = plants.find(({ name }) => name === 'eager-delete')
  for (let seed = 1; seed <= 100; seed += 1) {
    const plan = drawPlan(seed, 'store', 'eager-delete')
    const { violation } = await runPlan(plan, { seams: plant!.seams })
    if (violation === undefined) continue
    const small = await shrinkPlan(plan, violation.invariant, plant!.seams)
    const again = await runPlan(small, { seams: plant!.seams })
    equal(again.violation?.invariant, violation.invariant)
    equal(sizeOf(small) <= 3, true, `${sizeOf(small)} faults are left of ${sizeOf(plan)}`)
    return
  }
  throw new Error('the planted bug was not found')
})

import { equal, match } from 'node:assert/strict'
import type { HolderSpec } from './catalog-fold.ts'
import { explore, type ModelOptions } from './protocol-model.ts'

/** The large groups take minutes: SLUICE_NIGHTLY=1. */
export const nightly =
  process.env['SLUICE_NIGHTLY'] === '1' ? {} : { skip: 'only with SLUICE_NIGHTLY=1' }

export function holder(commit: string, incarnation: number, stop: number): HolderSpec {
  return { commit, incarnation, stop, epoch: 1, bucket: 0, fences: incarnation > 1 }
}

export const unfenced = (spec: HolderSpec): HolderSpec => ({ ...spec, fences: false })

export function holds(options: ModelOptions): void {
  const { counterexample } = explore(options)
  const shown = counterexample && [...counterexample.steps, counterexample.problem].join('\n')
  equal(shown, undefined)
}

/** The shortest way to the failure has exactly so many steps; a shorter one would be news. */
export function fails(options: ModelOptions, steps: number, problem: RegExp): void {
  const { counterexample } = explore(options)
  match(counterexample?.problem ?? 'it holds', problem)
  equal(counterexample?.steps.length, steps, counterexample?.steps.join('\n'))
}

import { parseArgs } from 'node:util'
import { type Scenario, scenarios } from './plan.ts'
import { type Plant, plantOf, plants } from './plants.ts'

export type SimOptions = {
  readonly firstSeed: number
  /** Absent: as many as fit into the time. */
  readonly seeds: number | undefined
  /** Absent: until the seeds are done. */
  readonly minutes: number | undefined
  readonly scenario: Scenario
  readonly plant: Plant | undefined
  readonly planFile: string | undefined
  readonly isPlanted: boolean
  readonly workers: number
  readonly isJson: boolean
}

export type ReadOptions =
  | { readonly kind: 'run'; readonly options: SimOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'refused'; readonly why: string }

export const usage = `npm run sim -- [options]
  --seed N        first seed (random, and printed first)
  --seeds N       how many
  --minutes M     stop after so long (1, unless --seeds says when)
  --scenario S    ${scenarios.join(', ')} (all, or where a planted bug shows soonest)
  --plan FILE     replay one plan, such as a failure wrote
  --plant NAME    put a bug in: ${plants.map(({ name }) => name).join(', ')}
  --planted       afterwards look for every planted bug
  --workers N     processes (2)
  --json          one JSON document`

/** Seeds are drawn below this, short enough to be typed again. */
const seedMax = 1_000_000

/** @param chance Between 0 and 1; decides the first seed where none is given. */
export function readOptions(args: readonly string[], chance: number): ReadOptions {
  let values: ReturnType<typeof parse>
  try {
    values = parse(args)
  } catch (error) {
    return refused(error instanceof Error ? error.message : String(error))
  }
  if (values.help) return { kind: 'help' }
  const { seed, seeds, minutes, workers, scenario } = values
  for (const [name, text] of Object.entries({ seed, seeds, workers })) {
    if (text === undefined || /^\d{1,9}$/.test(text)) continue
    return refused(`--${name} is "${text}", which is no whole number`)
  }
  if (minutes !== undefined && !/^\d{1,6}(?:\.\d{1,3})?$/.test(minutes)) {
    return refused(`--minutes is "${minutes}", which is no number of minutes`)
  }
  if (workers === '0') return refused('--workers is 0')
  const known = scenarios.find((each) => each === scenario)
  if (scenario !== undefined && known === undefined) {
    return refused(`there is no scenario ${scenario}; there are ${scenarios.join(', ')}`)
  }
  const plant = values.plant === undefined ? undefined : plantOf(values.plant)
  if (values.plant !== undefined && plant === undefined) {
    return refused(`there is no planted bug ${values.plant}; --help lists them`)
  }
  const isOpen = seeds === undefined && minutes === undefined
  return {
    kind: 'run',
    options: {
      firstSeed: seed === undefined ? 1 + Math.floor(chance * seedMax) : Number.parseInt(seed, 10),
      seeds: seeds === undefined ? undefined : Number.parseInt(seeds, 10),
      minutes: isOpen ? 1 : minutes === undefined ? undefined : Number.parseFloat(minutes),
      scenario: known ?? plant?.scenario ?? 'all',
      plant,
      planFile: values.plan,
      isPlanted: values.planted,
      workers: workers === undefined ? 2 : Number.parseInt(workers, 10),
      isJson: values.json,
    },
  }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      minutes: { type: 'string' },
      scenario: { type: 'string' },
      plan: { type: 'string' },
      plant: { type: 'string' },
      planted: { type: 'boolean', default: false },
      workers: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values
}

function refused(why: string): ReadOptions {
  return { kind: 'refused', why }
}

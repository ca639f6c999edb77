import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { quoteValue } from '../../core/text.ts'
import type { KvEngine } from './engine.ts'
import type { EffectiveOptions, FamilyOptions, OptionsFactory } from './ports.ts'

type OptionName = keyof FamilyOptions

export type ResolvedOptions = {
  readonly options: FamilyOptions
  readonly effective: EffectiveOptions
  /** Options somebody set, rather than left at what the engine has. */
  readonly chosen: ReadonlySet<OptionName>
}

/** Options of a family, from the weakest to the strongest. */
export type OptionLayers = {
  readonly store: Partial<FamilyOptions>
  readonly family: Partial<FamilyOptions>
  readonly factory: OptionsFactory | undefined
}

/**
 * What a family gets: what the engine has, then what is set for all families, then for this one, then
 * what the factory changes.
 * @throws SluiceError CONFIG_INVALID
 */
export function resolveOptions(
  engine: Pick<KvEngine, 'defaults' | 'supported'>,
  family: string,
  layers: OptionLayers,
): ResolvedOptions {
  const given = { ...checkOptions(family, layers.store), ...checkOptions(family, layers.family) }
  const before: FamilyOptions = { ...engine.defaults, ...given }
  const made = layers.factory === undefined ? {} : callFactory(layers.factory, family, before)
  const options: FamilyOptions = { ...before, ...made }
  const changed = optionNames.filter((name) => options[name] !== before[name])
  return {
    options,
    effective: effectiveOptions(options, engine.supported),
    chosen: new Set([...optionNames.filter((name) => name in given), ...changed]),
  }
}

/** What all write buffers of these families may come to if nothing keeps them down. */
export function writeBufferCeiling(
  families: readonly Pick<FamilyOptions, 'writeBufferSize' | 'maxWriteBufferNumber'>[],
): number {
  return families.reduce(
    (sum, { writeBufferSize, maxWriteBufferNumber }) =>
      sum + writeBufferSize * maxWriteBufferNumber,
    0,
  )
}

function effectiveOptions(
  options: FamilyOptions,
  supported: ReadonlySet<OptionName>,
): EffectiveOptions {
  const entries = optionNames.map((name) => [
    name,
    supported.has(name) ? options[name] : 'not supported',
  ])
  return Object.fromEntries(entries) as EffectiveOptions
}

function callFactory(
  factory: OptionsFactory,
  family: string,
  current: FamilyOptions,
): Partial<FamilyOptions> {
  let made: unknown
  try {
    made = factory(family, { ...current })
  } catch (error) {
    if (isSluiceError(error)) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new SluiceError(
      'CONFIG_INVALID',
      `kv.options-factory failed for column family ${quoteValue(family)}: ${why}`,
      { cause: error, details: { family } },
    )
  }
  if (typeof made === 'object' && made !== null) return checkOptions(family, made)
  throw new SluiceError(
    'CONFIG_INVALID',
    `kv.options-factory answered ${quoteValue(textOf(made))} for column family ` +
      `${quoteValue(family)}; it must answer an object of options`,
    { details: { family } },
  )
}

/** @throws SluiceError CONFIG_INVALID for an option that is not known, or a value it cannot have. */
export function checkOptions(family: string, options: object): Partial<FamilyOptions> {
  const checked: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    if (value === undefined) continue
    const rule = rules.get(name)
    if (rule === undefined) {
      throw invalid(
        family,
        `has no option ${quoteValue(name)}`,
        `options: ${optionNames.join(', ')}`,
      )
    }
    if (!rule.holds(value)) {
      throw invalid(family, `${name} ${quoteValue(textOf(value))} is not possible`, rule.says)
    }
    checked[name] = value
  }
  return checked
}

function invalid(family: string, what: string, fix: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `column family ${quoteValue(family)}: ${what}`, {
    fix,
    details: { family },
  })
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? `${value}` : typeof value
}

type Rule = { readonly says: string; readonly holds: (value: unknown) => boolean }

function whole(least: number, most: number): Rule {
  return {
    says: `a whole number from ${least} to ${most}`,
    holds: (value) =>
      Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most,
  }
}

const filters: readonly unknown[] = ['bloom', 'ribbon', 'none']

const ruleTable: Record<OptionName, Rule> = {
  writeBufferSize: whole(1_024, 2 ** 30),
  maxWriteBufferNumber: whole(2, 1_024),
  level0FileNumCompactionTrigger: whole(2, 1_024),
  blockSize: whole(512, 2 ** 26),
  filter: { says: 'bloom, ribbon or none', holds: (value) => filters.includes(value) },
}
const rules: ReadonlyMap<string, Rule> = new Map(Object.entries(ruleTable))

export const optionNames = Object.keys(ruleTable) as readonly OptionName[]

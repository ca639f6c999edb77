import { SluiceError } from '../core/errors.ts'
import { didYouMean } from '../core/suggest.ts'
import { quoteValue } from '../core/text.ts'
import type { Arguments } from './args.ts'
import type { Config, ConfigValue, Environment, TableConfig } from './config.ts'
import { environmentName, optionTable } from './option-table.ts'

/** Where a value came from; a flag beats the environment, that the configuration, that the default. */
export type Origin = 'flag' | 'environment' | 'config'

/** A value as text, with the words that messages begin with: `--buckets`, `sluice.yaml:3:9: …`. */
export type Given = { readonly text: string; readonly subject: string; readonly origin: Origin }

/** Looks options up by precedence. `undefined` means that the default holds. */
export type Settings = {
  get(option: string): Given | undefined
  /** Every value of an option that may be repeated. */
  all(option: string): readonly Given[]
  has(flag: string): boolean
}

/**
 * @param table What the configuration says about the table at hand; beats what it says in general.
 */
export function settingsOf(
  given: Arguments,
  environment: Environment,
  config: Config | undefined,
  table?: TableConfig,
): Settings {
  const all = (option: string): readonly Given[] =>
    (given.options.get(option) ?? []).map((text) => ({
      text,
      subject: `--${option}`,
      origin: 'flag',
    }))
  return {
    all,
    has: (flag) => given.options.has(flag),
    get: (option) => {
      const flag = all(option).at(-1)
      if (flag !== undefined) return flag
      const name = environmentName(option)
      const text = hasEnvironment(option) ? environment[name] : undefined
      if (text !== undefined && text !== '') return { text, subject: name, origin: 'environment' }
      return fromConfig(table?.options.get(option) ?? config?.options.get(option))
    },
  }
}

function fromConfig(value: ConfigValue | undefined): Given | undefined {
  if (value === undefined) return undefined
  return { text: value.text, subject: value.where, origin: 'config' }
}

const environmentOptions = new Set(
  optionTable.filter((option) => option.environment === true).map((option) => option.name),
)

function hasEnvironment(option: string): boolean {
  return environmentOptions.has(option)
}

/**
 * A whole number in a range.
 * @throws SluiceError CONFIG_INVALID
 */
export function wholeNumber(
  given: Given,
  limits: { readonly least: number; readonly most: number; readonly noun: string },
): number {
  const { least, most, noun } = limits
  if (!/^-?\d{1,30}$/.test(given.text)) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${given.subject} ${quoteValue(given.text)} is not a whole number`,
      { fix: `a number of ${noun}s from ${least} to ${most}` },
    )
  }
  const value = Number(given.text)
  const bound = value < least ? least : value > most ? most : undefined
  if (bound === undefined) return value
  const side = value < least ? 'at least' : 'at most'
  throw new SluiceError(
    'CONFIG_INVALID',
    `${given.subject} ${given.text}: ${side} ${bound} ${noun}${bound === 1 ? '' : 's'}`,
    { details: { value: given.text, least, most } },
  )
}

/**
 * One of the choices the option table names.
 * @throws SluiceError CONFIG_INVALID with the nearest choice
 */
export function choice<Choice extends string>(
  given: Given,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  const found = choices.find((each) => each === given.text)
  if (found !== undefined) return found
  const guess = didYouMean(given.text, choices)
  throw new SluiceError(
    'CONFIG_INVALID',
    `${given.subject} ${quoteValue(given.text)} is not known${guess}`,
    { fix: choices.join(', '), details: { value: given.text, accepted: choices } },
  )
}

/** Names of `SLUICE_*` variables that are set and mean nothing: most likely misspelt. */
export function unknownVariables(environment: Environment): readonly string[] {
  const known = new Set([...environmentOptions].map(environmentName))
  return Object.keys(environment).filter((name) => {
    return name.startsWith('SLUICE_') && !known.has(name) && !reserved.has(name)
  })
}

/** Variables of other commands and of secrets: none of them is a misspelt option. */
const reserved = new Set([
  ...['CATALOG_CREDENTIAL', 'CATALOG_TOKEN', 'FLUSS_USERNAME', 'FLUSS_PASSWORD'].flatMap((name) => [
    `SLUICE_${name}`,
    `SLUICE_${name}_FILE`,
  ]),
])

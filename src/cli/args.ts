import { isSecretName, looksLikeSecret } from '../core/secret.ts'
import { didYouMean, nearest } from '../core/suggest.ts'
import { quoteValue } from '../core/text.ts'
import { laterCommands, laterOptions } from './later.ts'
import { type CommandName, commandNames, type OptionSpec } from './option-spec.ts'
import { optionsOf, optionTable } from './option-table.ts'
import type { Problems } from './problems.ts'

/** A command line taken apart; the values are not read yet. */
export type Arguments = {
  /** Undefined when none was given, or one that does not exist. */
  readonly command: CommandName | undefined
  readonly positionals: readonly string[]
  /** Values of each option in the order given; a flag has the value `yes`. */
  readonly options: ReadonlyMap<string, readonly string[]>
}

/**
 * Takes `sluice COMMAND …` apart by the option table. Understands `--name value`, `--name=value`,
 * `-q`, `-qv` and `--`. Everything that is wrong goes to `problems`.
 */
export function parseArguments(argv: readonly string[], problems: Problems): Arguments {
  const options = new Map<string, string[]>()
  const words: string[] = []
  const state: State = { argv, at: 0, options, problems, command: commandIn(argv) }
  refuseSecrets(argv, problems)
  for (; state.at < argv.length; state.at += 1) {
    const word = argv[state.at] ?? ''
    if (word === '--') {
      words.push(...argv.slice(state.at + 1))
      break
    }
    if (word.startsWith('--')) readLong(word, state)
    else if (word.startsWith('-') && word !== '-') readShort(word, state)
    else words.push(word)
  }
  return { ...readCommand(words, options, problems), options }
}

type State = {
  readonly argv: readonly string[]
  at: number
  readonly options: Map<string, string[]>
  readonly problems: Problems
  readonly command: CommandName | undefined
}

const byShort: ReadonlyMap<string, OptionSpec> = new Map(
  optionTable.flatMap((option) => (option.short === undefined ? [] : [[option.short, option]])),
)
const byName: ReadonlyMap<string, OptionSpec> = new Map(
  optionTable.map((option) => [option.name, option]),
)

function isCommand(word: string): word is CommandName {
  return commandNames.some((name) => name === word)
}

/** The command is needed before its options can be judged; it is the first word that names one. */
function commandIn(argv: readonly string[]): CommandName | undefined {
  return argv.find((word) => isCommand(word))
}

function readCommand(
  words: readonly string[],
  options: ReadonlyMap<string, readonly string[]>,
  problems: Problems,
): Pick<Arguments, 'command' | 'positionals'> {
  const [word, ...positionals] = words
  if (word === undefined) return { command: undefined, positionals }
  if (isCommand(word)) return { command: word, positionals }
  const later = laterCommands.get(word)
  if (later !== undefined) {
    problems.add('CONFIG_INVALID', `sluice ${word} comes with ${later}, not in this version`, {
      fix: 'sluice --help lists what this version does',
    })
  } else if (!options.has('help') && !options.has('version')) {
    const shown = quoteIfOdd(word)
    const guess = didYouMean(word, commandNames)
    problems.add('CONFIG_INVALID', `unknown command ${shown}${guess}`, {
      fix: 'sluice --help lists the commands',
    })
  }
  return { command: undefined, positionals }
}

function readLong(word: string, state: State): void {
  const equals = word.indexOf('=')
  const name = word.slice(2, equals < 0 ? undefined : equals)
  const inline = equals < 0 ? undefined : word.slice(equals + 1)
  if (isSecretName(name)) {
    if (inline === undefined) skipValue(state)
    return // Told by refuseSecrets.
  }
  const later = laterOptions.get(name)
  if (later !== undefined) {
    if (later.value && inline === undefined) skipValue(state)
    state.problems.add(
      'CONFIG_INVALID',
      `--${name} comes with ${later.with}, not in this version`,
      {
        fix: later.fix,
      },
    )
    return
  }
  const option = byName.get(name)
  if (option === undefined) {
    refuseUnknown(`--${name}`, name, inline, state)
    return
  }
  if (option.value === undefined) {
    if (inline === undefined) keep(option, 'yes', state)
    else state.problems.add('CONFIG_INVALID', `--${name} takes no value`)
    return
  }
  const value = inline ?? nextValue(state)
  if (value === undefined) {
    state.problems.add('CONFIG_INVALID', `--${name} needs a value: --${name} ${option.value}`)
    return
  }
  keep(option, value, state)
}

function readShort(word: string, state: State): void {
  for (const letter of word.slice(1)) {
    const option = byShort.get(letter)
    if (option !== undefined) keep(option, 'yes', state)
    else state.problems.add('CONFIG_INVALID', `unknown option ${quoteIfOdd(`-${letter}`)}`)
    if (option === undefined) return
  }
}

function refuseUnknown(
  shown: string,
  name: string,
  inline: string | undefined,
  state: State,
): void {
  const known = state.command === undefined ? optionTable : optionsOf(state.command)
  const guess = nearest(name, [...known.map((option) => option.name), ...laterOptions.keys()])
  const meant = guess === undefined ? undefined : byName.get(guess)
  // The value of a misspelt option is not an argument of its own.
  if (meant?.value !== undefined && inline === undefined) skipValue(state)
  const hint = guess === undefined ? '' : `. Did you mean --${guess}?`
  state.problems.add('CONFIG_INVALID', `unknown option ${quoteIfOdd(shown)}${hint}`, {
    details: { option: shown },
  })
}

function keep(option: OptionSpec, value: string, state: State): void {
  if (state.command !== undefined && !option.commands.includes(state.command)) {
    const commands = option.commands.join(', ')
    state.problems.add(
      'CONFIG_INVALID',
      `--${option.name} is no option of sluice ${state.command}, but of: ${commands}`,
    )
    return
  }
  const values = state.options.get(option.name)
  if (values === undefined) {
    state.options.set(option.name, [value])
  } else if (option.repeated === true) {
    values.push(value)
  } else if (option.value !== undefined) {
    state.problems.add('CONFIG_INVALID', `--${option.name} is given more than once`)
  }
}

function nextValue(state: State): string | undefined {
  const next = state.argv[state.at + 1]
  if (next === undefined || next.startsWith('--') || byShort.has(next.slice(1, 2))) {
    if (next === undefined || next.startsWith('-')) return undefined
  }
  state.at += 1
  return next
}

function skipValue(state: State): void {
  void nextValue(state)
}

/** A secret in the arguments is in the shell's history and in every list of processes already. */
function refuseSecrets(argv: readonly string[], problems: Problems): void {
  argv.forEach((word, index) => {
    const name = /^--([^=]*)/.exec(word)?.[1]
    const previous = argv[index - 1]
    const property =
      previous === '--table-property' ? word : /^--table-property=(.*)/.exec(word)?.[1]
    const secretOption = name !== undefined && isSecretName(name)
    const secretProperty = property !== undefined && isSecretName(property.split('=')[0] ?? '')
    if (!secretOption && !secretProperty && !looksLikeSecret(word)) return
    const what = secretOption ? 'names a secret' : 'looks like a secret'
    problems.add('CONFIG_INVALID', `argument ${index + 1} ${what}; there is no option for one`, {
      fix: 'put secrets into the environment, for example AWS_SECRET_ACCESS_KEY, and replace this one',
    })
  })
}

function quoteIfOdd(text: string): string {
  return /^[\w.-]{1,40}$/.test(text) ? text : quoteValue(text)
}

import { errorCodes } from '../core/errors.ts'
import { type ConfigKeys, rootKeys, tableKeys } from './config-keys.ts'
import { commandHelp } from './help.ts'
import { laterCommands, laterOptions } from './later.ts'
import { type CommandName, commandNames, type OptionSpec } from './option-spec.ts'
import { environmentName, optionsOf, optionTable } from './option-table.ts'

/**
 * The pages of `docs/reference` that come from tables in the code. A test keeps the files equal;
 * `node scripts/reference.mjs` writes them.
 */
export const referencePages: Readonly<Record<string, () => string>> = {
  'cli.md': cliPage,
  'config.md': configPage,
  'errors.md': errorsPage,
}

const notice =
  '<!-- Made from the tables in src/ by `node scripts/reference.mjs`; edit those, not this. -->'

function cliPage(): string {
  const shared = optionTable.filter((option) => isShared(option))
  return lines(
    '# Command line',
    '',
    notice,
    '',
    'A flag beats `SLUICE_*`, that beats `sluice.yaml`, that beats the default. Results go to stdout,',
    'everything else to stderr. `--json` gives one JSON document on stdout, also on failure.',
    '',
    ...commandNames.flatMap((name) => commandSection(name)),
    '## Options of every command',
    '',
    ...optionRows(shared),
    '',
    '## Exit status',
    '',
    '| Exit | Meaning |',
    '|---|---|',
    ...exits.map(([exit, meaning]) => `| ${exit} | ${meaning} |`),
    '',
    'SIGINT and SIGTERM end a command cleanly; a second one, a second or more later, ends it at once.',
    '',
    '## Not in this version',
    '',
    'Known and refused with what they come with:',
    '',
    ...[...laterCommands].map(([name, what]) => `- \`sluice ${name}\`: ${what}`),
    ...[...laterOptions].map(([name, later]) => `- \`--${name}\`: ${later.with}`),
  )
}

function commandSection(name: CommandName): readonly string[] {
  const { usage, about, more, examples } = commandHelp[name]
  const own = optionsOf(name).filter((option) => !isShared(option))
  return [
    `## sluice ${name}`,
    '',
    `${capital(about)}.`,
    '',
    ...(more.length > 0 ? [...more, ''] : []),
    '```',
    ...usage,
    ...(examples.length > 0 ? ['', ...examples.map((example) => `$ ${example}`)] : []),
    '```',
    '',
    ...(own.length > 0 ? [...optionRows(own), ''] : []),
  ]
}

function isShared(option: OptionSpec): boolean {
  return option.commands.length === commandNames.length
}

function optionRows(options: readonly OptionSpec[]): readonly string[] {
  return [
    '| Option | Meaning | Default | Environment | `sluice.yaml` |',
    '|---|---|---|---|---|',
    ...options.map((option) => {
      const value = option.value === undefined ? '' : ` ${cell(option.value)}`
      const short = option.short === undefined ? '' : `\`-${option.short}\` `
      const repeated = option.repeated === true ? '; may be repeated' : ''
      const environment = option.environment === true ? `\`${environmentName(option.name)}\`` : ''
      const config = option.config === undefined ? '' : `\`${option.config}\``
      return (
        `| ${short}\`--${option.name}${value}\` | ${cell(option.about)}${repeated} ` +
        `| ${cell(option.standard ?? '')} | ${environment} | ${config} |`
      )
    }),
  ]
}

const exits = [
  ['0', 'done; also the clean stop of `--follow`'],
  ['1', 'looked and found a fault: `verify`, `progress`, the check of `demo`'],
  ['2', 'the command or the configuration is wrong; nothing was written'],
  ['3', 'data or lake said no; everything reported as committed is'],
  ['4', 'unknown whether the last commit landed; run again, it will find out'],
  ['5', 'something needed is not available or not safe'],
  ['70', 'a bug of ours; report it'],
  ['130, 143', 'interrupted before all input was in the lake'],
] as const

function configPage(): string {
  return lines(
    '# Configuration: sluice.yaml',
    '',
    notice,
    '',
    'Found by `--config`, by `SLUICE_CONFIG`, else `./sluice.yaml`. Keys with dots are written as they',
    'are. Unknown keys, keys that are there twice, tags and aliases are refused with file, line and',
    'column. In values `${NAME}` is the environment variable, `${NAME:-default}` has a default, and',
    '`$${` stands for `${`. Paths in the file start where the file is, except the warehouse, which',
    'starts where the command runs.',
    '',
    '```yaml',
    'version: 1',
    'warehouse: ./lake',
    'job: {readers: 8, memory: 1GiB}',
    'defaults: {table.datalake.freshness: 3min}',
    'tables:',
    '  web.clicks:',
    '    columns: {id: BIGINT NOT NULL, at: TIMESTAMP_LTZ(6), url: STRING}',
    '    bucket.num: 16',
    '    bucket.key: id',
    '    properties:',
    '      table.datalake.freshness: 1min',
    '      iceberg.write.target-file-size-bytes: 268435456',
    'log: {level: info}',
    's3: {s3.endpoint: "http://127.0.0.1:9000", s3.secret-access-key: "${LAKE_SECRET}"}',
    '```',
    '',
    '## Keys',
    '',
    ...keyRows(rootKeys, ''),
    '',
    '## Keys of a table',
    '',
    'Below `tables.<table>`; they hold for `sluice tier --table <table>`.',
    '',
    ...keyRows(tableKeys, ''),
    '',
    'Table properties pass through as in Fluss: `iceberg.X` becomes the property `X` of the Iceberg',
    'table, every other one `fluss.X`. A key that looks like a misspelt one that Sluice obeys is refused.',
  )
}

function keyRows(keys: ConfigKeys, prefix: string): readonly string[] {
  const rows = (of: ConfigKeys, before: string): readonly string[] =>
    [...of].flatMap(([name, key]) => {
      const full = `${before}${name}`
      if (key.keys !== undefined) return rows(key.keys, `${full}: `)
      const meaning =
        key.later !== undefined
          ? `comes with ${key.later}; refused in this version`
          : key.option !== undefined && key.about === undefined
            ? `as \`--${key.option}\``
            : (key.about ?? '')
      return [`| \`${full}\` | ${meaning} |`]
    })
  return ['| Key | Meaning |', '|---|---|', ...rows(keys, prefix)]
}

function errorsPage(): string {
  return lines(
    '# Errors',
    '',
    notice,
    '',
    'Every error of Sluice has one of these codes. Codes are stable, messages are not. Effect `none`',
    'is a proof that nothing happened; `unknown` means that it may have, or may still happen: run the',
    'same command again, it reads the lake and goes on from there. A single error may weaken `none` to',
    '`unknown`, never the other way round.',
    '',
    '| Code | Exit | Effect | What to do |',
    '|---|---|---|---|',
    ...Object.entries(errorCodes).map(
      ([code, { exit, effect, remedy }]) =>
        `| <a id="${code.toLowerCase()}"></a>${code} | ${exit.toString()} | ${effect} | ${cell(remedy)} |`,
    ),
    '',
    'STOPPED exits with 130 after SIGINT and with 143 after SIGTERM. With `--json` an error is the',
    'member `error` of the document: `code`, `message`, `effect`, `details`, `fix`, `exit`, and `where`',
    'and `state` if they are known.',
  )
}

function lines(...text: readonly string[]): string {
  return `${text.join('\n')}\n`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

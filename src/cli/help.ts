import type { CommandName, OptionSpec } from './option-spec.ts'
import { environmentName, optionsOf } from './option-table.ts'
import { type Style, styleOf } from './style.ts'

type CommandHelp = {
  readonly usage: readonly string[]
  readonly about: string
  readonly more: readonly string[]
  readonly examples: readonly string[]
}

/** What each command is for; options come from the option table. */
export const commandHelp: Readonly<Record<CommandName, CommandHelp>> = {
  tier: {
    usage: ['sluice tier INPUT… --warehouse LOCATION [--table IDENT] [options]'],
    about: 'tier inputs into one Iceberg table, each record exactly once',
    more: [
      'INPUT is a file, a glob in quotes, or - for stdin; NDJSON, CSV, Parquet or Arrow IPC, also',
      'as .gz and .zst. The same command again adds nothing, a grown file adds its tail.',
    ],
    examples: [
      'sluice tier flights.ndjson --warehouse ./lake --table demo.flights --buckets 4',
      "sluice tier 'logs/*.ndjson' --warehouse ./lake --table web.requests",
      'tail -F app.log | sluice tier - --follow --freshness 10s --warehouse ./lake --table web.log',
    ],
  },
  query: {
    usage: ['sluice query LAKE SQL [options]', 'sluice query SQL   (LAKE from --warehouse)'],
    about: 'run SQL over the tables of a lake with DuckDB',
    more: [
      'LAKE is a warehouse, a table folder or a metadata.json. Tables are views: namespace.table.',
      'SQL - reads stdin. Sluice reads the metadata and names the files, DuckDB reads the Parquet.',
    ],
    examples: [
      'sluice query ./lake "select count(*) from demo.flights"',
      'sluice query ./lake "select * from demo.flights limit 10" --csv > ten.csv',
      'sluice query ./lake "from demo.flights" --as-of 2026-11-30T14:02:00Z',
    ],
  },
  verify: {
    usage: [
      'sluice verify LAKE [TABLE] [options]',
      'sluice verify [TABLE]   (LAKE from --warehouse)',
    ],
    about: 'audit from the lake alone that each record is there exactly once',
    more: [
      'LAKE is a warehouse, a table folder or a metadata.json; without TABLE every table is audited.',
      'Nothing is written. Exit status: 0 clean, 1 faults found, 5 the audit could not finish.',
    ],
    examples: ['sluice verify ./lake', 'sluice verify ./lake demo.flights --level metadata'],
  },
  progress: {
    usage: [
      'sluice progress LAKE TABLE [options]',
      'sluice progress TABLE   (LAKE from --warehouse)',
    ],
    about:
      'show what lineage, properties and rows say of how far a table is; decide where it is lost',
    more: [
      'Exit status: 0 known, 1 lost or replaced. --set records a decision as a snapshot of its own,',
      'after which sluice tier goes on from there.',
    ],
    examples: [
      'sluice progress ./lake demo.flights',
      'sluice progress ./lake demo.flights --set 0=1928 --set 1=1024 --reason "expired by mistake"',
    ],
  },
  sweep: {
    usage: [
      'sluice sweep LAKE [TABLE] [options]',
      'sluice sweep [TABLE]   (LAKE from --warehouse)',
    ],
    about:
      'list files of tables that no retained snapshot refers to, and delete them with --delete',
    more: [
      'A file goes only if it lies in the data or metadata folder of its table, is older than',
      '--older-than on the clock of the store, and nothing refers to it. A read that fails ends it.',
    ],
    examples: ['sluice sweep ./lake', 'sluice sweep ./lake demo.flights --delete --older-than 7d'],
  },
  demo: {
    usage: ['sluice demo [options]'],
    about: 'play three tables and one tiering job on a fast clock, then check the lake with DuckDB',
    more: ['Writes into ./sluice-demo unless --warehouse names another folder.'],
    examples: ['sluice demo', 'sluice demo --speed 5 --seed 7'],
  },
  help: {
    usage: ['sluice help [COMMAND]'],
    about: 'show how a command is used',
    more: [],
    examples: ['sluice help tier'],
  },
  version: { usage: ['sluice version'], about: 'show the version', more: [], examples: [] },
}

/** The text of `--help`, for all commands or for one. */
export function helpText(command?: CommandName, style: Style = styleOf('plain')): string {
  return command === undefined ? overview(style) : commandText(command, style)
}

function overview(style: Style): string {
  const commands = Object.entries(commandHelp).map(
    ([name, { about }]) => `  ${style.bold(name.padEnd(9))}${about}`,
  )
  return [
    'sluice: log buckets into Iceberg tables, each record exactly once',
    '',
    `${style.bold('usage')}  sluice COMMAND [options]`,
    '',
    ...commands,
    '',
    'sluice help COMMAND, or COMMAND --help, shows its options.',
    'Exit status: 0 done, 1 a check failed, 2 wrong command, 3 data or lake said no,',
    '4 unknown: run again, 5 something is not available, 70 a bug, 130 interrupted.',
  ].join('\n')
}

function commandText(command: CommandName, style: Style): string {
  const { usage, about, more, examples } = commandHelp[command]
  const options = optionsOf(command)
  const width = Math.max(...options.map((option) => nameOf(option).length)) + 2
  const lines = [
    `sluice ${command}: ${about}`,
    '',
    ...usage.map((line, index) => `${index === 0 ? style.bold('usage') : '     '}  ${line}`),
  ]
  if (more.length > 0) lines.push('', ...more)
  if (examples.length > 0) lines.push('', ...examples.map((line) => `  ${style.dim('$')} ${line}`))
  lines.push('', style.bold('options'))
  for (const option of options) {
    const name = style.bold(nameOf(option).padEnd(width))
    lines.push(`  ${name}${option.about}${notesOf(option)}`)
  }
  return lines.join('\n')
}

function nameOf(option: OptionSpec): string {
  const short = option.short === undefined ? '    ' : `-${option.short}, `
  return `${short}--${option.name}${option.value === undefined ? '' : ` ${option.value}`}`
}

function notesOf(option: OptionSpec): string {
  const notes: string[] = []
  if (option.standard !== undefined) notes.push(`default: ${option.standard}`)
  if (option.environment === true) notes.push(environmentName(option.name))
  if (option.repeated === true) notes.push('may be repeated')
  return notes.length === 0 ? '' : ` (${notes.join('; ')})`
}

import type { OptionSpec } from './option-spec.ts'

/** Options that one or two commands have for themselves. */
export const commandOptions: readonly OptionSpec[] = [
  {
    name: 'snapshot',
    value: 'ID',
    commands: ['query'],
    about: 'query the one table the SQL names as of this snapshot',
    standard: 'current',
  },
  {
    name: 'as-of',
    value: 'TIME',
    commands: ['query'],
    about: 'query every table as of a time, such as 2026-11-30T14:02:00Z',
    standard: 'now',
  },
  { name: 'csv', commands: ['query'], about: 'print the rows as CSV' },
  {
    name: 'level',
    value: 'metadata|files|rows',
    choices: ['metadata', 'files', 'rows'],
    commands: ['verify'],
    about: 'read metadata only, also lengths and row counts of files, or every row',
    standard: 'rows',
  },
  {
    name: 'set',
    value: 'BUCKET=OFFSET',
    repeated: true,
    commands: ['progress'],
    about: 'record where a bucket ends, after PROGRESS_LOST; every bucket that has rows',
  },
  {
    name: 'reason',
    value: 'TEXT',
    commands: ['progress'],
    about: 'why the ends are set; written into the lake with your user name',
    standard: 'required with --set',
  },
  {
    name: 'skip-gap',
    value: 'BUCKET',
    commands: ['progress'],
    about: 'declare records lost that the source no longer has (sources with retention only)',
  },
  { name: 'delete', commands: ['sweep'], about: 'delete the files instead of listing them' },
  {
    name: 'older-than',
    value: 'DURATION',
    commands: ['sweep'],
    about: 'leave files alone that are younger; under 24h only with --force',
    standard: '3d',
  },
  {
    name: 'force',
    commands: ['progress', 'sweep'],
    about: 'progress: set ends the rows do not show; sweep: take files younger than 24h',
  },
  {
    name: 'speed',
    value: 'N',
    commands: ['demo'],
    about: 'how many times faster than the walkthrough the clock runs',
    standard: '20; more on a busy machine',
  },
  {
    name: 'seed',
    value: 'N',
    commands: ['demo'],
    about: 'seed of the produced records',
    standard: '1',
  },
  {
    name: 'duration',
    value: 'DURATION',
    commands: ['demo'],
    about: 'how long records are produced, in demo time',
    standard: '5min',
  },
]

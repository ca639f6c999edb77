import type { OptionSpec } from './option-spec.ts'

/** Options that say how inputs are read, and what becomes of records that do not fit. */
export const inputOptions: readonly OptionSpec[] = [
  {
    name: 'input-format',
    value: 'FORMAT',
    choices: ['ndjson', 'csv', 'parquet', 'arrow'],
    commands: ['tier'],
    about: 'format of the inputs',
    standard: 'by extension, then by the first bytes',
  },
  {
    name: 'input-id',
    value: 'ID',
    commands: ['tier'],
    about: 'names the input; known records of the same input are skipped',
    standard: 'from content; stdin: always new',
  },
  {
    name: 'sample-records',
    value: 'N|all',
    commands: ['tier'],
    about: 'records the schema is inferred from',
    standard: '10000',
  },
  {
    name: 'csv-delimiter',
    value: 'C',
    commands: ['tier'],
    about: 'one character between the fields of a CSV line',
    standard: ', (tab for .tsv)',
  },
  {
    name: 'csv-header',
    value: 'yes|no',
    choices: ['yes', 'no'],
    commands: ['tier'],
    about: 'whether the first CSV line names the columns',
    standard: 'yes',
  },
  {
    name: 'csv-null',
    value: 'TEXT',
    commands: ['tier'],
    about: 'unquoted CSV text that means null',
    standard: 'an empty field',
  },
  {
    name: 'on-bad-record',
    value: 'fail|quarantine',
    choices: ['fail', 'quarantine'],
    commands: ['tier'],
    about: 'stop at a bad record, or set it aside in a file beside the lake',
    standard: 'fail',
  },
  {
    name: 'bad-records-max',
    value: 'N',
    commands: ['tier'],
    about: 'bad records after which the run stops although quarantine is on',
    standard: '1000',
  },
  {
    name: 'on-unknown-field',
    value: 'fail|quarantine',
    choices: ['fail', 'quarantine', 'evolve'],
    commands: ['tier'],
    about: 'what a field means that the table does not have',
    standard: 'fail',
  },
]

import type { OptionSpec } from './option-spec.ts'

/** Options that say what table is made; of a table that exists they may only repeat it. */
export const tableOptions: readonly OptionSpec[] = [
  {
    name: 'table',
    value: 'IDENT',
    commands: ['tier'],
    about: 'namespace.table; quote a part that holds a dot: demo."a.b"',
    standard: 'default.<file stem> for one file',
  },
  {
    name: 'buckets',
    value: 'N',
    config: 'tables.<table>.bucket.num',
    commands: ['tier'],
    about: 'number of buckets of a new table, 1 to 4096; fixed from then on',
    standard: '4',
  },
  {
    name: 'bucket-key',
    value: 'COLUMN',
    config: 'tables.<table>.bucket.key',
    commands: ['tier'],
    about: 'column whose hash is the bucket; one of the primary key',
    standard: 'the primary key; log tables: 1,024 records in turn',
  },
  {
    name: 'primary-key',
    value: 'COL[,COL]',
    config: 'tables.<table>.primary-key',
    commands: ['tier'],
    about: 'makes a table with one row for each key; records change it',
    standard: 'none: a log table keeps every record',
  },
  {
    name: 'schema',
    value: 'FILE',
    config: 'tables.<table>.schema',
    commands: ['tier'],
    about: 'JSON file with columns and types of a new table, as docs/inputs.md has it',
    standard: 'inferred from the data',
  },
  {
    name: 'format-version',
    value: '2|3',
    choices: ['2', '3'],
    config: 'tables.<table>.format-version',
    commands: ['tier'],
    about: 'Iceberg format version of a new table; 3 has deletion vectors',
    standard: '2',
  },
  {
    name: 'lake-format',
    value: 'iceberg',
    commands: ['tier'],
    about: 'table format of the lake',
    standard: 'iceberg',
  },
  {
    name: 'table-property',
    value: 'KEY=VALUE',
    repeated: true,
    config: 'tables.<table>.properties',
    commands: ['tier'],
    about: 'property of the table',
  },
]

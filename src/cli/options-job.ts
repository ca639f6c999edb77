import type { OptionSpec } from './option-spec.ts'

/** Options of the tiering job: when rounds run, and what they may use. */
export const jobOptions: readonly OptionSpec[] = [
  { name: 'follow', commands: ['tier'], about: 'go on for ever as the inputs grow' },
  {
    name: 'freshness',
    value: 'DURATION',
    config: 'defaults, tables.<table>.properties: table.datalake.freshness',
    commands: ['tier'],
    about: 'target pause between rounds, and cap of one round',
    standard: '3min, or what the table says',
  },
  {
    name: 'readers',
    value: 'N',
    environment: true,
    config: 'job.readers',
    commands: ['tier', 'demo'],
    about: 'buckets read at the same time',
    standard: 'cores, at most 16; demo: 16',
  },
  {
    name: 'memory',
    value: 'SIZE',
    environment: true,
    config: 'job.memory',
    commands: ['tier'],
    about: 'for logs, writers and uploads together',
    standard: '512MiB',
  },
  {
    name: 'target-file-size',
    value: 'SIZE',
    config: 'tables.<table>.properties: iceberg.write.target-file-size-bytes',
    commands: ['tier'],
    about: 'data files are closed at this size',
    standard: '512MiB',
  },
  {
    name: 'encoder',
    value: 'NAME',
    choices: ['columnar', 'parquet-wasm', 'parquetjs-lite'],
    commands: ['tier'],
    about: 'what writes the Parquet: columnar, parquet-wasm or parquetjs-lite',
    standard: 'the fastest that handles the schema',
  },
  {
    name: 'shutdown-timeout',
    value: 'DURATION',
    environment: true,
    config: 'job.shutdown-timeout',
    commands: ['tier'],
    about: 'how long a stop may wait for the running round',
    standard: '30s',
  },
]

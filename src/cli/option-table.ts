/** Commands of this version, in the order help lists them. */
export const commandNames = [
  'tier',
  'query',
  'verify',
  'progress',
  'sweep',
  'demo',
  'help',
  'version',
] as const
export type CommandName = (typeof commandNames)[number]

export type OptionSpec = {
  readonly name: string
  readonly short?: string
  /** What stands for the value in help; a flag has none. */
  readonly value?: string
  readonly choices?: readonly string[]
  readonly repeated?: boolean
  /** Can also be given as `SLUICE_<NAME>`. */
  readonly environment?: boolean
  /** Where `sluice.yaml` has it. */
  readonly config?: string
  readonly commands: readonly CommandName[]
  readonly about: string
  /** The default, in words. */
  readonly standard?: string
}

const all = commandNames
/** Commands that open a lake anywhere; the demo has a folder of its own. */
const lakeCommands = ['tier', 'query', 'verify', 'progress', 'sweep'] as const

/** Every option of this version. Parser, help and `docs/reference/cli.md` come from this table. */
export const optionTable: readonly OptionSpec[] = [
  {
    name: 'warehouse',
    value: 'LOCATION',
    environment: true,
    config: 'warehouse',
    commands: [...lakeCommands, 'demo'],
    about: 'where the lake lies: a path, file:///…, s3://bucket/prefix',
    standard: 'required; demo: ./sluice-demo',
  },
  {
    name: 'catalog',
    value: 'file',
    environment: true,
    config: 'catalog',
    commands: lakeCommands,
    about: 'what names the current metadata of a table',
    standard: 'file',
  },
  {
    name: 's3-endpoint',
    value: 'URL',
    environment: true,
    config: 's3: s3.endpoint',
    commands: lakeCommands,
    about: 'URL of S3: http://127.0.0.1:9000',
    standard: 'as AWS tools: AWS_ENDPOINT_URL_S3, profile',
  },
  {
    name: 's3-region',
    value: 'REGION',
    environment: true,
    config: 's3: s3.region',
    commands: lakeCommands,
    about: 'region of the bucket',
    standard: 'as AWS tools: AWS_REGION, profile; us-east-1 with an endpoint',
  },
  {
    name: 's3-path-style',
    value: 'yes|no',
    choices: ['yes', 'no'],
    environment: true,
    config: 's3: s3.path-style-access',
    commands: lakeCommands,
    about: 'whether the bucket stands in the path of URLs',
    standard: 'yes with an endpoint, else no',
  },
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
    about: 'column whose hash is the bucket',
    standard: 'none: blocks of 1,024 records in turn',
  },
  {
    name: 'schema',
    value: 'FILE',
    config: 'tables.<table>.schema',
    commands: ['tier'],
    about: 'JSON file with columns and types of a new table',
    standard: 'inferred from the data',
  },
  {
    name: 'format-version',
    value: '2',
    commands: ['tier'],
    about: 'Iceberg format version',
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
    standard: '20',
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
  { name: 'json', commands: all, about: 'one JSON document on stdout, also on failure' },
  {
    name: 'json-bigint',
    value: 'number|string',
    choices: ['number', 'string'],
    commands: all,
    about: 'how integers beyond 2^53 stand in JSON',
    standard: 'number, with all digits',
  },
  { name: 'quiet', short: 'q', commands: all, about: 'only the result and errors' },
  { name: 'verbose', short: 'v', commands: all, about: 'more notes; stacks of errors' },
  { name: 'help', short: 'h', commands: all, about: 'show this help' },
  { name: 'version', short: 'V', commands: all, about: 'show the version' },
  {
    name: 'config',
    value: 'FILE',
    environment: true,
    commands: [...lakeCommands, 'demo'],
    about: 'configuration file',
    standard: './sluice.yaml if it is there',
  },
  {
    name: 'color',
    value: 'WHEN',
    choices: ['auto', 'always', 'never'],
    environment: true,
    config: 'color',
    commands: all,
    about: 'auto, always or never',
    standard: 'auto',
  },
  {
    name: 'log-format',
    value: 'text|json',
    choices: ['text', 'json'],
    environment: true,
    config: 'log.format',
    commands: [...lakeCommands, 'demo'],
    about: 'form of log lines',
    standard: 'text',
  },
  {
    name: 'log-level',
    value: 'LEVEL',
    choices: ['debug', 'info', 'warn', 'error'],
    environment: true,
    config: 'log.level',
    commands: [...lakeCommands, 'demo'],
    about: 'debug, info, warn or error',
    standard: 'warn',
  },
]

/** `bucket-key` → `SLUICE_BUCKET_KEY`. */
export function environmentName(option: string): string {
  return `SLUICE_${option.toUpperCase().replaceAll('-', '_')}`
}

export function optionsOf(command: CommandName): readonly OptionSpec[] {
  return optionTable.filter((option) => option.commands.includes(command))
}

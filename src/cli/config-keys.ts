/** What a key of `sluice.yaml` means. */
export type ConfigKey = {
  /** The option it sets. */
  readonly option?: string
  /** Known, but with a later version; says what it comes with. */
  readonly later?: string
  /** A credential: it may only be a reference to the environment, and is kept apart. */
  readonly secret?: string
  readonly keys?: ConfigKeys
  /** One value, or a list of values that stand for one with commas. */
  readonly list?: true
  readonly about?: string
}
export type ConfigKeys = ReadonlyMap<string, ConfigKey>

const laterServe = { later: 'sluice serve' } as const
const laterFluss = { later: 'the Fluss source' } as const

const sourceKeys: ConfigKeys = new Map<string, ConfigKey>([
  ['type', { about: '`embedded`' }],
  ['bootstrap.servers', laterFluss],
  ['log.memory.size', laterServe],
  ['log.dir', laterServe],
  ['kv.engine', { option: 'kv-engine' }],
  ['kv.dir', { option: 'state-dir' }],
  ['kv.memory.size', { option: 'kv-memory', about: 'of all key-value stores together; `440mb`' }],
])

const fromEnvironment = 'only as `${NAME}`'

/** Names as Iceberg's own configurations have them, so that they can be pasted. */
const s3Keys: ConfigKeys = new Map<string, ConfigKey>([
  ['s3.endpoint', { option: 's3-endpoint' }],
  ['s3.region', { option: 's3-region' }],
  ['s3.path-style-access', { option: 's3-path-style' }],
  ['s3.access-key-id', { secret: 'AWS_ACCESS_KEY_ID', about: fromEnvironment }],
  ['s3.secret-access-key', { secret: 'AWS_SECRET_ACCESS_KEY', about: fromEnvironment }],
  ['s3.session-token', { secret: 'AWS_SESSION_TOKEN', about: fromEnvironment }],
])

/** Keys at the top of the file. */
export const rootKeys: ConfigKeys = new Map<string, ConfigKey>([
  ['version', { about: 'of this format: `1`' }],
  ['warehouse', { option: 'warehouse' }],
  ['catalog', { option: 'catalog' }],
  ['catalogs', { later: 'REST catalogs' }],
  ['s3', { keys: s3Keys }],
  ['color', { option: 'color' }],
  [
    'job',
    {
      keys: new Map<string, ConfigKey>([
        ['readers', { option: 'readers' }],
        ['memory', { option: 'memory' }],
        ['shutdown-timeout', { option: 'shutdown-timeout' }],
        ['tiering.poll.table.interval', laterFluss],
      ]),
    },
  ],
  ['source', { keys: sourceKeys }],
  ['defaults', { about: 'properties for every table below `tables`' }],
  ['tables', { about: 'by table name' }],
  ['serve', laterServe],
  [
    'log',
    {
      keys: new Map<string, ConfigKey>([
        ['format', { option: 'log-format' }],
        ['level', { option: 'log-level' }],
      ]),
    },
  ],
])

/** Keys of one table. */
export const tableKeys: ConfigKeys = new Map<string, ConfigKey>([
  ['columns', { about: 'column name to type, in order' }],
  ['schema', { option: 'schema' }],
  ['bucket.num', { option: 'buckets' }],
  ['bucket.key', { option: 'bucket-key' }],
  ['properties', { about: 'table properties' }],
  ['format-version', { option: 'format-version' }],
  ['primary-key', { option: 'primary-key', list: true }],
  ['partitioned-by', { later: 'partitioned tables' }],
  ['inputs', laterServe],
])

/** Table properties are open: what Sluice does not know is stored for other engines. */
export const defaultsKeys: ConfigKeys | undefined = undefined

/** What a key of `sluice.yaml` means. */
export type ConfigKey = {
  /** The option it sets. */
  readonly option?: string
  /** Known, but with a later version; says what it comes with. */
  readonly later?: string
  readonly keys?: ConfigKeys
  readonly about?: string
}
export type ConfigKeys = ReadonlyMap<string, ConfigKey>

const laterKey = { later: 'primary-key tables' } as const
const laterServe = { later: 'sluice serve' } as const
const laterFluss = { later: 'the Fluss source' } as const

const sourceKeys: ConfigKeys = new Map<string, ConfigKey>([
  ['type', { about: '`embedded`' }],
  ['bootstrap.servers', laterFluss],
  ['log.memory.size', laterServe],
  ['log.dir', laterServe],
  ['kv.engine', laterKey],
  ['kv.dir', laterKey],
  ['kv.memory.size', laterKey],
])

/** Keys at the top of the file. */
export const rootKeys: ConfigKeys = new Map<string, ConfigKey>([
  ['version', { about: 'of this format: `1`' }],
  ['warehouse', { option: 'warehouse' }],
  ['catalog', { option: 'catalog' }],
  ['catalogs', { later: 'REST catalogs' }],
  ['s3', { later: 'S3 warehouses' }],
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
  ['primary-key', laterKey],
  ['partitioned-by', { later: 'partitioned tables' }],
  ['inputs', laterServe],
])

/** Table properties are open: what Sluice does not know is stored for other engines. */
export const defaultsKeys: ConfigKeys | undefined = undefined

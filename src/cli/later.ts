/** Options and commands that other versions have: refused with what they come with. */
export type LaterSpec = { readonly value: boolean; readonly with: string; readonly fix: string }

const laterKey = {
  value: true,
  with: 'primary-key tables',
  fix: 'leave it out: the table is then a log table',
} as const

export const laterOptions: ReadonlyMap<string, LaterSpec> = new Map([
  ['primary-key', laterKey],
  ['cdc', laterKey],
  ['op-column', laterKey],
  ['delete-mode', laterKey],
  ['kv-engine', laterKey],
  ['state-dir', laterKey],
  ['partition-by', { value: true, with: 'partitioned tables', fix: 'leave it out' }],
  ['fluss', { value: true, with: 'the Fluss source', fix: 'name a file or - as input' }],
  ['poll-interval', { value: true, with: 'the Fluss source', fix: 'leave it out' }],
  ['fresh', { value: false, with: 'union reads', fix: 'leave it out' }],
])

export const laterCommands: ReadonlyMap<string, string> = new Map([
  ['doctor', 'the checks of stores and engines'],
  ['plan', 'schema evolution'],
  ['tables', 'lists'],
  ['snapshots', 'lists'],
  ['files', 'lists'],
  ['explain', 'lists'],
  ['serve', 'the service for many tables'],
  ['maintain', 'the service for many tables'],
  ['tune', 'the what-if model'],
  ['config', 'the service for many tables'],
  ['completion', 'shell completion'],
])

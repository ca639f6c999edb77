/** Options and commands that other versions have: refused with what they come with. */
export type LaterSpec = { readonly value: boolean; readonly with: string; readonly fix: string }

export const laterOptions: ReadonlyMap<string, LaterSpec> = new Map([
  [
    'delete-mode',
    {
      value: true,
      with: 'equality deletes',
      fix: 'leave it out: rows are deleted by their position',
    },
  ],
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

/** Table properties about changes, by Fluss's names. */
export const changelogKeys = {
  image: 'table.changelog.image',
  engine: 'table.merge-engine',
  version: 'table.merge-engine.versioned.ver-column',
  deletes: 'table.delete.behavior',
} as const

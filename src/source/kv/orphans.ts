import { SluiceError } from '../../core/errors.ts'
import { formatBytes, quoteValue } from '../../core/text.ts'
import type { StoredFamily } from './engine.ts'
import { defaultFamily } from './family-name.ts'
import type { KvStoreOpening } from './ports.ts'

/**
 * The families of a store that is there which its opening does not name.
 * @throws SluiceError FAMILY_ORPHANED unless they are to be kept.
 */
export function findOrphans(
  stored: readonly StoredFamily[],
  { folder, from, families, orphans = 'refuse' }: KvStoreOpening,
): readonly string[] {
  const found = stored.filter(
    ({ name }) => name !== defaultFamily && !Object.hasOwn(families, name),
  )
  if (found.length === 0 || orphans === 'keep') return found.map(({ name }) => name)
  const wanted = Object.keys(families).filter((name) => stored.every((each) => each.name !== name))
  const one = found.length === 1
  const instead = wanted.length === 0 ? '' : `; ${wanted.map(quoteValue).join(', ')} would be empty`
  throw new SluiceError(
    'FAMILY_ORPHANED',
    `${from ?? folder}: column ${one ? 'family' : 'families'} ${found.map(describe).join(', ')} ` +
      `${one ? 'is' : 'are'} in the KV store and not named any more${instead}`,
    {
      state: 'nothing was opened or made',
      fix: "name it again, carry it over with migrateFamily, or open with orphans: 'keep'",
      details: { folder: from ?? folder, orphans: found, wanted },
    },
  )
}

function describe({ name, bytes }: StoredFamily): string {
  return bytes === undefined ? quoteValue(name) : `${quoteValue(name)} (${formatBytes(bytes)})`
}

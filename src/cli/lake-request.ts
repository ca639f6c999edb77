import { openStore, type OpenedStore } from '../catalog/store/open-store.ts'
import type { S3Options } from '../catalog/store/s3-client.ts'
import type { StorePorts } from '../catalog/store/s3-store.ts'
import { SluiceError } from '../core/errors.ts'
import { seededChance, systemClock, systemIds } from '../core/system.ts'
import { formatTableName, parseTableName } from '../core/table-name.ts'
import { quoteValue } from '../core/text.ts'
import type { CommandContext } from './command.ts'
import { type LakeEntry, tablesAt } from './lake-tables.ts'
import { isLocation, type Location, nameForLake, readLocation } from './location.ts'
import { readS3Options } from './s3-options.ts'
import { type Given, settingsOf } from './settings.ts'
import { refuseCatalog } from './tier-options.ts'

/** `LAKE [TABLE]` of a command, and how the lake is reached. */
export type LakeRequest = {
  readonly lake: Location
  readonly s3: S3Options
  /** Parts of the table's name; undefined: every table. */
  readonly table: readonly string[] | undefined
}

/**
 * Reads `LAKE [TABLE]`, or `[TABLE]` where the warehouse is named elsewhere. Everything that is wrong
 * goes to the problems of the context.
 * @returns undefined when something is wrong
 */
export function readLakeRequest(
  context: CommandContext,
  command: 'verify' | 'sweep' | 'progress',
): LakeRequest | undefined {
  const { given, found, around } = context
  const settings = settingsOf(given, around.environment, around.config)
  refuseCatalog(settings, found)
  const [first, ...rest] = given.positionals
  const isLake = first !== undefined && isLocation(first)
  const [name, second, ...more] = isLake ? rest : given.positionals
  const odd = isLake ? second : more[0]
  if (odd !== undefined) {
    const text = `${command} takes a lake and one table, not also ${quoteValue(odd)}`
    found.add('CONFIG_INVALID', text, { fix: `sluice ${command} ./lake demo.flights` })
  }
  const lake = found.attempt(() => {
    const warehouse = settings.get('warehouse')
    if (first !== undefined && !isLake && (second !== undefined || warehouse === undefined)) {
      throw nameForLake(first, { command, rest: second, folder: around.folder })
    }
    return readLake(warehouse, around.folder, isLake ? first : undefined, command)
  })
  const table = found.attempt(() => (name === undefined ? [] : parseTableName(name)))
  const s3 = readS3Options(settings, around, found)
  if (lake === undefined || table === undefined) return undefined
  return { lake, s3, table: table.length === 0 ? undefined : table }
}

/** Ports of this machine for commands that open a store by themselves. */
export function machinePorts(): StorePorts {
  const chance = seededChance(Number.parseInt(systemIds.bits128().slice(0, 7), 16))
  return { clock: systemClock, ids: systemIds, chance }
}

/**
 * Opens the store of a request and finds its tables.
 * @throws SluiceError TABLE_MISSING when there is none, or none of that name
 */
export async function openRequested(
  request: LakeRequest,
  ports: StorePorts,
): Promise<OpenedStore & { readonly entries: readonly LakeEntry[] }> {
  const { lake, s3, table } = request
  const opened = await openStore(lake.url, { ports, s3 })
  const entries = await tablesAt(opened.store, lake)
  if (table === undefined) return { ...opened, entries }
  const name = formatTableName(table)
  const named = entries.filter((entry) => formatTableName(entry.name) === name)
  if (named.length > 0) return { ...opened, entries: named }
  const some = entries.slice(0, 20).map((entry) => formatTableName(entry.name))
  throw new SluiceError('TABLE_MISSING', `${lake.shown}: no table ${name}`, {
    fix: `tables here: ${some.join(', ')}`,
  })
}

function readLake(
  warehouse: Given | undefined,
  folder: string,
  argument: string | undefined,
  command: string,
): Location {
  if (argument !== undefined) {
    return readLocation({ text: argument, subject: 'LAKE', origin: 'flag' }, folder)
  }
  if (warehouse !== undefined) return readLocation(warehouse, folder)
  throw new SluiceError(
    'CONFIG_INVALID',
    `${command} needs a lake: a warehouse or a table folder`,
    { fix: `sluice ${command} ./lake, or SLUICE_WAREHOUSE` },
  )
}

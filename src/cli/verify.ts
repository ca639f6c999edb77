import { openStore } from '../catalog/store/open-store.ts'
import type { S3Options } from '../catalog/store/s3-client.ts'
import { SluiceError } from '../core/errors.ts'
import { seededChance, systemClock, systemIds } from '../core/system.ts'
import { parseTableName } from '../core/table-name.ts'
import { quoteValue } from '../core/text.ts'
import { verifyLake } from '../verify/verify-lake.ts'
import { type Level, levels, type TableReport } from '../verify/verify-table.ts'
import type { Command, CommandContext } from './command.ts'
import { writeJson } from './json.ts'
import { isLocation, type Location, readLocation } from './location.ts'
import { renderTable, verifyJson } from './render-verify.ts'
import { readS3Options } from './s3-options.ts'
import { choice, type Settings, settingsOf } from './settings.ts'
import { refuseCatalog } from './tier-options.ts'

/** `sluice verify`. */
export const verifyCommand: Command = async (context) => {
  const request = readRequest(context)
  const { terminal, json, now } = context
  const startedAt = now()
  const chance = seededChance(Math.floor(now()))
  const ports = { clock: systemClock, ids: systemIds, chance }
  const { store, warehouse } = await openStore(request.lake.url, { ports, s3: request.s3 })
  const reports = await verifyLake(store, warehouse, {
    level: request.level,
    signal: context.stop.signal,
    ...(request.table === undefined ? {} : { table: request.table }),
    onTable: (table) => {
      if (context.verbose) terminal.note(`  reading ${table}`)
    },
  })
  const faults = reports.reduce((sum, report) => sum + report.faultCount, 0)
  if (json !== undefined) {
    const seconds = (now() - startedAt) / 1000
    terminal.result(writeJson(verifyJson(reports, seconds), json))
  } else show(reports, context)
  return faults === 0 ? 0 : 1
}

type VerifyRequest = {
  readonly lake: Location
  readonly s3: S3Options
  readonly table: readonly string[] | undefined
  readonly level: Level
}

function readRequest(context: CommandContext): VerifyRequest {
  const { given, found, around } = context
  const settings = settingsOf(given, around.environment, around.config)
  refuseCatalog(settings, found)
  const [first, ...rest] = given.positionals
  const isLake = first !== undefined && isLocation(first)
  const [name, ...more] = isLake ? rest : given.positionals
  if (more.length > 0) {
    const odd = isLake ? more[0] : first
    found.add(
      'CONFIG_INVALID',
      `verify takes a lake and one table, not also ${quoteValue(odd ?? '')}`,
      {
        fix: 'sluice verify ./lake demo.flights; a lake is a location, such as ./lake',
      },
    )
  }
  const lake = found.attempt(() => readLake(settings, around.folder, isLake ? first : undefined))
  const table = found.attempt(() => (name === undefined ? [] : parseTableName(name)))
  const level = found.attempt((): Level => {
    const value = settings.get('level')
    return value === undefined ? 'rows' : choice(value, [...levels])
  })
  const s3 = readS3Options(settings, around, found)
  found.settle()
  if (lake === undefined || table === undefined || level === undefined) {
    throw new SluiceError('INVARIANT_BROKEN', 'a request without problems is complete')
  }
  return { lake, s3, level, table: table.length === 0 ? undefined : table }
}

function readLake(settings: Settings, folder: string, argument: string | undefined): Location {
  if (argument !== undefined) {
    return readLocation({ text: argument, subject: 'LAKE', origin: 'flag' }, folder)
  }
  const warehouse = settings.get('warehouse')
  if (warehouse !== undefined) return readLocation(warehouse, folder)
  throw new SluiceError('CONFIG_INVALID', 'verify needs a lake: a warehouse or a table folder', {
    fix: 'sluice verify ./lake, or SLUICE_WAREHOUSE',
  })
}

function show(reports: readonly TableReport[], { terminal }: CommandContext): void {
  const view = { style: terminal.outStyle, marks: terminal.marks }
  for (const report of reports) terminal.result(renderTable(report, view))
}

import { openStore } from '../catalog/store/open-store.ts'
import { SluiceError } from '../core/errors.ts'
import { verifyLake } from '../verify/verify-lake.ts'
import { type Level, levels, type TableReport } from '../verify/verify-table.ts'
import type { Command, CommandContext } from './command.ts'
import { writeJson } from './json.ts'
import { type LakeRequest, machinePorts, readLakeRequest } from './lake-request.ts'
import { renderTable, verifyJson } from './render-verify.ts'
import { choice, settingsOf } from './settings.ts'

/** `sluice verify`. */
export const verifyCommand: Command = async (context) => {
  const request = readRequest(context)
  const { terminal, json, now } = context
  const startedAt = now()
  const ports = machinePorts()
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

type VerifyRequest = LakeRequest & { readonly level: Level }

function readRequest(context: CommandContext): VerifyRequest {
  const { given, found, around } = context
  const settings = settingsOf(given, around.environment, around.config)
  const request = readLakeRequest(context, 'verify')
  const level = found.attempt((): Level => {
    const value = settings.get('level')
    return value === undefined ? 'rows' : choice(value, [...levels])
  })
  found.settle()
  if (request === undefined || level === undefined) {
    throw new SluiceError('INVARIANT_BROKEN', 'a request without problems is complete')
  }
  return { ...request, level }
}

function show(reports: readonly TableReport[], { terminal }: CommandContext): void {
  const view = { style: terminal.outStyle, marks: terminal.marks }
  for (const report of reports) terminal.result(renderTable(report, view))
}

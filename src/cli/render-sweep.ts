import { shownLocation } from '../catalog/iceberg/location.ts'
import type { UploadEntry } from '../catalog/store/object-store.ts'
import type { JsonObject } from '../core/json64.ts'
import { counted, escapeText, formatBytes, formatCount } from '../core/text.ts'
import type { KeptReason, SweepPlan } from '../sink/sweeper/sweep-plan.ts'
import { jsonTime } from './json.ts'
import type { Style } from './style.ts'

export type TableSweep = SweepPlan & { readonly table: string; readonly folder: string }

export type SweepView = { readonly dryRun: boolean; readonly olderThan: string }

/** Files of one table that are listed; `--json` has them all. */
const shownMax = 50

/** What a sweep found or deleted, table by table. */
export function renderSweep(
  tables: readonly TableSweep[],
  view: SweepView & { readonly style: Style },
): string {
  return tables.flatMap((table) => tableLines(table, view)).join('\n')
}

/** `sluice.sweep/1`; `table` is null where there are several, which `tables` tells apart. */
export function sweepJson(tables: readonly TableSweep[], view: SweepView): JsonObject {
  const [only] = tables
  const orphans = tables.flatMap((table) => table.orphans)
  const uploads = tables.flatMap((table) => table.uploads)
  return {
    schema: 'sluice.sweep/1',
    ok: true,
    table: tables.length === 1 && only !== undefined ? only.table : null,
    dry_run: view.dryRun,
    files: orphans.map((orphan) => ({
      path: shownLocation(orphan.location),
      bytes: orphan.bytes,
      modified_at: jsonTime(orphan.modifiedAt),
      reason: orphan.reason,
    })),
    file_count: orphans.length,
    bytes: bytesOf(orphans),
    uploads: uploads.map(uploadJson),
    upload_count: uploads.length,
    upload_bytes: bytesOf(uploads),
    kept: keptJson(tables),
    tables: tables.map((table) => ({
      table: table.table,
      file_count: table.orphans.length,
      bytes: bytesOf(table.orphans),
      upload_count: table.uploads.length,
      upload_bytes: bytesOf(table.uploads),
      kept: keptJson([table]),
    })),
  }
}

function uploadJson({ location, id, bytes, activeAt }: UploadEntry): JsonObject {
  return {
    path: shownLocation(location),
    upload_id: id,
    bytes,
    active_at: activeAt === undefined ? null : jsonTime(activeAt),
  }
}

function tableLines(
  table: TableSweep,
  { dryRun, olderThan, style }: SweepView & { readonly style: Style },
): readonly string[] {
  const { orphans, folder } = table
  const files = `${counted(orphans.length, 'file')}, ${formatBytes(bytesOf(orphans))}`
  const what = dryRun ? 'that nothing refers to' : 'deleted'
  const name = style.bold(escapeText(table.table))
  const head =
    orphans.length === 0
      ? `${name}: no file older than ${olderThan} that nothing refers to`
      : `${name}: ${files} ${what}, older than ${olderThan}`
  const shown = orphans.slice(0, shownMax).map((orphan) => {
    const path = escapeText(orphan.location.slice(folder.length + 1))
    const about = `${formatBytes(orphan.bytes)}  ${jsonTime(orphan.modifiedAt)}  ${orphan.reason}`
    return `  ${path}  ${style.dim(about)}`
  })
  const rest = orphans.length - shown.length
  return [
    head,
    ...shown,
    ...(rest > 0 ? [`  and ${formatCount(rest)} more; --json lists them all`] : []),
    ...uploadLines(table, { dryRun, olderThan }),
    `  kept: ${keptText(table.kept)}`,
  ]
}

/** One line: their names say nothing to anybody. */
function uploadLines({ uploads }: TableSweep, view: SweepView): readonly string[] {
  if (uploads.length === 0) return []
  const what = `${counted(uploads.length, 'unfinished upload')}, ${formatBytes(bytesOf(uploads))}`
  return [`  ${what}${view.dryRun ? '' : ' ended'}, older than ${view.olderThan}`]
}

const keptWords: Readonly<Record<KeptReason, string>> = {
  referenced: 'referenced',
  version: 'metadata versions',
  young: 'too young',
  hidden: 'hidden',
  'other-table': 'of a table inside',
  outside: 'outside of data and metadata',
  changed: 'not the files they were',
  spared: 'referenced meanwhile',
  upload: 'unfinished uploads',
}

function keptText(kept: SweepPlan['kept']): string {
  const parts = [...kept].map(([reason, count]) => `${formatCount(count)} ${keptWords[reason]}`)
  return parts.length === 0 ? 'nothing' : parts.join(', ')
}

function keptJson(tables: readonly TableSweep[]): JsonObject {
  const sums = new Map<string, number>()
  for (const { kept } of tables) {
    for (const [reason, count] of kept) {
      const key = reason.replace('-', '_')
      sums.set(key, (sums.get(key) ?? 0) + count)
    }
  }
  return Object.fromEntries(sums)
}

function bytesOf(all: readonly { readonly bytes: number }[]): number {
  return all.reduce((sum, { bytes }) => sum + bytes, 0)
}

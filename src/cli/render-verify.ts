import type { JsonObject } from '../core/json64.ts'
import { counted, escapeText, formatCount } from '../core/text.ts'
import type { Finding } from '../verify/findings.ts'
import type { TableReport } from '../verify/verify-table.ts'
import type { Marks, Style } from './style.ts'

/** Findings of one kind that are shown; the JSON form has more of them. */
const shownMax = 10

/** What an audit found in one table: a line when it is clean, else a block for each fault. */
export function renderTable(
  report: TableReport,
  view: { readonly style: Style; readonly marks: Marks },
): string {
  const { style, marks } = view
  const { table, faults, faultCount } = report
  const lines: string[] = []
  if (faultCount === 0) {
    const what = report.isUntouched ? 'no round yet' : `${sizeText(report)}: ${cleanText(report)}`
    lines.push(`${style.green(marks.ok)} ${style.bold(escapeText(table))}: ${what}`)
  } else {
    const snapshots = counted(report.snapshotsChecked, 'snapshot')
    lines.push(
      `${style.red(marks.fail)} ${style.bold(escapeText(table))}: ${counted(faultCount, 'fault')} in ${snapshots}`,
    )
  }
  const warnings = report.warnings.filter(({ kind }) => kind !== 'EXPIRED')
  const width = Math.max(0, ...[...faults, ...warnings].map(({ kind }) => kind.length)) + 2
  lines.push(
    ...findingLines(faults, width, style.red),
    ...findingLines(warnings, width, style.yellow),
  )
  for (const { bucket, from, to, reason, by } of report.declaredGaps) {
    const range = `bucket ${bucket}, offsets [${formatCount(from)}, ${formatCount(to)})`
    lines.push(escapeText(`  declared: ${range} are in no file: ${reason} (${by})`))
  }
  for (const { snapshotId, kind, reason, by } of report.decisions) {
    const text = `snapshot ${snapshotId.toString()} is an operator's ${kind}: ${reason} (${by})`
    lines.push(escapeText(`  decided: ${text}`))
  }
  for (const { kind, detail } of report.warnings) {
    if (kind === 'EXPIRED') lines.push(`  not checked: ${escapeText(detail)}`)
  }
  return lines.join('\n')
}

/** `sluice.verify/1`. Snapshot ids are strings, because they use all bits of an int64. */
export function verifyJson(reports: readonly TableReport[], seconds: number): JsonObject {
  return {
    schema: 'sluice.verify/1',
    ok: reports.every(({ faultCount }) => faultCount === 0),
    tables: reports.map((report) => ({
      table: report.table,
      level: report.level,
      snapshot_id: report.snapshotId?.toString() ?? null,
      snapshots_checked: report.snapshotsChecked,
      snapshots_skipped: report.snapshotsSkipped,
      files: report.files,
      rows: report.rows,
      lake_ends: report.lakeEnds.map(({ bucket, end }) => ({ bucket, end })),
      declared_gaps: report.declaredGaps.map((gap) => ({ ...gap })),
      decisions: report.decisions.map(({ snapshotId, ...said }) => ({
        snapshot_id: snapshotId.toString(),
        ...said,
      })),
      fault_count: report.faultCount,
      faults: report.faults.map(findingJson),
      warnings: report.warnings.map(findingJson),
    })),
    seconds: Number(seconds.toFixed(3)),
  }
}

function findingJson(finding: Finding): JsonObject {
  const { detail, also } = finding
  return {
    kind: finding.kind,
    bucket: finding.bucket ?? null,
    start: finding.start ?? null,
    end: finding.end ?? null,
    snapshot_ids: (finding.snapshotIds ?? []).map(String),
    paths: finding.paths ?? [],
    column: finding.column ?? null,
    expected: finding.expected ?? null,
    found: finding.found ?? null,
    detail: also === undefined ? detail : `${detail}; ${also}`,
  }
}

function sizeText(report: TableReport): string {
  const rows = counted(report.rows, 'row')
  const snapshots = counted(report.snapshotsChecked, 'snapshot')
  if (!report.isTiered) return `${rows}, ${snapshots}, none of Sluice`
  return `${counted(report.lakeEnds.length, 'bucket')}, ${rows}, ${snapshots}`
}

function cleanText({ level, isTiered }: TableReport): string {
  const once = isTiered ? 'no gap, no overlap, no file twice' : 'no file twice'
  switch (level) {
    case 'rows':
      return `${once}, statistics right`
    case 'files':
      return `${once}, every file there; rows not read`
    default:
      return `${once} by the manifests; files not read`
  }
}

function findingLines(
  findings: readonly Finding[],
  width: number,
  paint: (text: string) => string,
): readonly string[] {
  const shown = new Map<string, number>()
  const lines: string[] = []
  for (const finding of findings) {
    const count = (shown.get(finding.kind) ?? 0) + 1
    shown.set(finding.kind, count)
    if (count > shownMax) continue
    const place = placeText(finding)
    const text = escapeText(`${place}${place === '' ? '' : ': '}${finding.detail}`)
    lines.push(`  ${paint(finding.kind.padEnd(width))}${text}`)
    if (finding.also !== undefined) {
      lines.push(`${' '.repeat(width + 2)}${escapeText(finding.also)}`)
    }
  }
  for (const [kind, count] of shown) {
    if (count > shownMax) lines.push(`  ${paint(kind.padEnd(width))}and more: --json lists them`)
  }
  return lines
}

function placeText({ kind, bucket, start, end, paths = [], snapshotIds = [] }: Finding): string {
  const snapshot = snapshotIds.at(-1)
  const inSnapshot = snapshot === undefined ? '' : `snapshot ${snapshot.toString()}`
  if (kind === 'GAP' || kind === 'OVERLAP') {
    const range =
      start === undefined || end === undefined
        ? ''
        : `, offsets [${formatCount(start)}, ${formatCount(end)})`
    return `bucket ${bucket ?? 0}${range}`
  }
  if (kind === 'REWIND') return `bucket ${bucket ?? 0}, ${inSnapshot}`
  return paths.length === 1 ? (paths[0] ?? '') : inSnapshot
}

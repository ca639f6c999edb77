import type { Bucket } from '../core/ids.ts'
import type { JsonObject, JsonValue } from '../core/json64.ts'
import { unreachable } from '../core/never.ts'
import { counted, escapeText, formatCount } from '../core/text.ts'
import { lineageEnds, type ProgressReport } from '../library/progress-report.ts'
import type { RecordedDecision } from '../sink/committer/override.ts'
import { showToken } from '../sink/committer/token.ts'
import { summaryKeys } from '../sink/committer/lineage.ts'
import { errorJson } from './render-error.ts'
import { renderBox } from './render-table.ts'
import type { Marks, Style } from './style.ts'

type View = { readonly marks: Marks; readonly style: Style }

/** Buckets of a table that are listed; `--json` has them all. */
const bucketsMax = 64

/** What lineage, property and rows say, side by side, and what follows from it. */
export function renderProgress(name: string, report: ProgressReport, view: View): string {
  const { style } = view
  const lines = [
    `${style.bold(escapeText(name))}: ${verdictText(report, style)}`,
    `  head      ${report.head === undefined ? 'none' : String(report.head)}`,
    `  lineage   ${lineageText(report)}`,
    `  property  ${propertyText(report)}`,
    `  rows      ${rowsText(report)}`,
    `  token     ${report.claim === undefined ? 'none' : showToken(report.claim.token)}`,
  ]
  const buckets = bucketRows(report)
  if (buckets.length > 0) {
    const shown = buckets.slice(0, bucketsMax).map((each) => [
      String(each.bucket),
      ...[each.lineage, each.property, each.rows].map((end) => {
        return end === undefined ? view.marks.dash : formatCount(end)
      }),
    ])
    const titles = ['bucket', 'lineage', 'property', 'rows'] as const
    const columns = titles.map((title) => ({ title, kind: 'number' as const }))
    lines.push(renderBox(columns, shown, { ...view, width: undefined }))
    const rest = buckets.length - shown.length
    if (rest > 0) lines.push(`  and ${counted(rest, 'more bucket')}; --json lists them all`)
  }
  for (const [id, input] of report.inputs) {
    const at = `${counted(input.records, 'record')} before position ${input.position}`
    lines.push(escapeText(`  input     ${input.name} (${id}): ${at}`))
  }
  const { verdict } = report
  if (verdict.kind === 'lost' || verdict.kind === 'replaced') lines.push(...adviceLines(report))
  return lines.join('\n')
}

/** What was recorded by `--set`. */
export function decisionText(name: string, recorded: RecordedDecision): string {
  const lines = [`recorded in ${escapeText(name)} as snapshot ${String(recorded.snapshotId)}`]
  if (recorded.inputs.size === 0) {
    lines.push(
      '  note  inputs will be taken as new: a file that was tiered before adds its records again',
    )
  }
  for (const { bucket, from, to } of recorded.gaps) {
    const range = `[${formatCount(from)}, ${formatCount(to)})`
    lines.push(`  note  bucket ${String(bucket)}: offsets ${range} are declared to be in no row`)
  }
  return lines.join('\n')
}

/** `sluice.progress/1`. */
export function progressJson(
  name: string,
  report: ProgressReport,
  recorded: RecordedDecision | undefined,
): JsonObject {
  const { verdict, own, copy, claim, foreign, missing } = report
  const isLost = verdict.kind === 'lost' || verdict.kind === 'replaced'
  return {
    schema: 'sluice.progress/1',
    ok: !isLost,
    table: name,
    table_uuid: report.uuid,
    snapshot_id: idText(report.head),
    verdict: verdict.kind,
    ...(verdict.kind === 'found' ? { by: verdict.by } : {}),
    ...(verdict.kind === 'rolled-back' ? { rolled_back_from: idText(verdict.from) } : {}),
    ...(isLost ? { reason: verdict.reason, error: errorJson(verdict.error) } : {}),
    token: claim === undefined ? null : showToken(claim.token),
    lineage: {
      snapshot_id: idText(own?.id),
      kind: own?.summary.get(summaryKeys.kind) ?? null,
      round: report.ledger?.round ?? null,
      commit_id: own?.summary.get(summaryKeys.commitId) ?? null,
      by: own?.summary.get(summaryKeys.by) ?? null,
      reason: own?.summary.get(summaryKeys.reason) ?? null,
      foreign_snapshot_ids: foreign.map(({ id }) => String(id)),
      missing_snapshot_id: idText(missing),
    },
    property:
      copy === undefined
        ? null
        : {
            snapshot_id: String(copy.snapshot),
            sequence: copy.sequence,
            proof: copy.proof ?? null,
            has_inputs: copy.ledger !== undefined,
          },
    buckets: bucketRows(report).map(({ bucket, lineage, property, rows }) => ({
      bucket,
      lineage: lineage ?? null,
      property: property ?? null,
      rows: rows ?? null,
    })),
    rows_known: report.rows !== undefined,
    inputs: [...report.inputs].map(([id, { name: shown, position, records }]) => ({
      id,
      name: shown,
      position,
      records,
    })),
    recorded: recorded === undefined ? null : recordedJson(recorded),
  }
}

function recordedJson({ snapshotId, inputs, gaps }: RecordedDecision): JsonValue {
  return {
    snapshot_id: String(snapshotId),
    inputs: [...inputs.keys()],
    gaps: gaps.map(({ bucket, from, to }) => ({ bucket, from, to })),
  }
}

type BucketRow = {
  readonly bucket: Bucket
  readonly lineage: bigint | undefined
  readonly property: bigint | undefined
  readonly rows: bigint | undefined
}

function bucketRows(report: ProgressReport): readonly BucketRow[] {
  const ends = lineageEnds(report)
  const all = [ends, report.copy?.ends, report.rows].flatMap((each) => [...(each?.keys() ?? [])])
  return [...new Set(all)]
    .sort((a, b) => a - b)
    .map((bucket) => ({
      bucket,
      lineage: ends?.get(bucket),
      property: report.copy?.ends?.get(bucket),
      rows: report.rows?.get(bucket),
    }))
}

function verdictText({ verdict }: ProgressReport, style: Style): string {
  switch (verdict.kind) {
    case 'found':
      if (verdict.by === 'lineage') return style.green('found in the lineage')
      return style.green(`found in the property, proven by ${proofWords[verdict.by]}`)
    case 'rolled-back':
      return style.yellow(`found in the lineage, rolled back from snapshot ${String(verdict.from)}`)
    case 'fresh':
      return style.green('never tiered')
    case 'lost':
      return style.red(`PROGRESS_LOST (${verdict.reason})`)
    case 'replaced':
      return style.red(`TABLE_REPLACED (${verdict.reason})`)
    default:
      return unreachable(verdict)
  }
}

const proofWords = {
  'parent-expired': 'the parent that has expired',
  rows: 'the rows',
} as const

function lineageText({ own, foreign, missing, ledger }: ProgressReport): string {
  const above =
    foreign.length === 0 ? '' : `, ${counted(foreign.length, 'snapshot')} of others above`
  if (own !== undefined) {
    const kind = own.summary.get(summaryKeys.kind) ?? 'round'
    const round = ledger === undefined ? '' : ` after round ${String(ledger.round)}`
    const what = kind === 'round' ? `round ${String(ledger?.round ?? '')}` : `${kind}${round}`
    const by = own.summary.get(summaryKeys.by)
    const who =
      by === undefined ? '' : ` by ${escapeText(by)}: ${own.summary.get(summaryKeys.reason) ?? ''}`
    return `snapshot ${String(own.id)} (${what}${escapeText(who)})${above}`
  }
  if (missing !== undefined) return `no snapshot of ours; ${String(missing)} has expired${above}`
  return `no snapshot of ours${above}`
}

function propertyText({ copy }: ProgressReport): string {
  if (copy === undefined) return 'none'
  const inputs =
    copy.ledger === undefined ? 'without positions of inputs' : 'with positions of inputs'
  const proof = copy.proof === undefined ? '' : `; proven by ${proofWords[copy.proof]}`
  return `of snapshot ${String(copy.snapshot)}, ${inputs}${proof}`
}

function rowsText({ rows }: ProgressReport): string {
  if (rows === undefined) return 'some file does not say how far its rows reach'
  return rows.size === 0 ? 'none' : `in ${counted(rows.size, 'bucket')}`
}

function adviceLines({ rows, bucketCount }: ProgressReport): readonly string[] {
  if (rows === undefined) {
    return [`  fix       roll back, or --set all ${String(bucketCount)} buckets with --force`]
  }
  const ends = [...rows].sort(([a], [b]) => a - b)
  const sets = (ends.length === 0 ? [[0, 0n] as const] : ends).slice(0, bucketsMax)
  const text = sets.map(([bucket, end]) => `--set ${String(bucket)}=${String(end)}`).join(' ')
  return [`  fix       roll back, or go by the rows: ${text} --reason TEXT`]
}

function idText(id: bigint | undefined): string | null {
  return id === undefined ? null : String(id)
}

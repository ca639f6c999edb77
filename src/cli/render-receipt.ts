import type { JsonObject, JsonValue } from '../core/json64.ts'
import { counted, formatBytes, formatCount, formatSeconds } from '../core/text.ts'
import { errorJson } from './render-error.ts'
import type { Marks, Style } from './style.ts'
import type { ChangeCounts, InputReport, Receipt, RoundReport } from './tier-request.ts'

/** More buckets than this are told as least, median and most. */
const bucketsShownMax = 8

/** A receipt for people. The error of a run that stopped is rendered after it, not here. */
export function renderReceipt(
  receipt: Receipt,
  view: { readonly style: Style; readonly marks: Marks },
): string {
  const { style, marks } = view
  const mark = receipt.ok ? style.green(marks.ok) : style.red(marks.fail)
  const lines: string[] = []
  if (
    receipt.ok &&
    receipt.rows === 0n &&
    receipt.rounds.length === 0 &&
    receipt.quarantined === 0
  ) {
    lines.push(`${mark} ${nothingToDo(receipt)}`)
    return lines.concat(notes(receipt, style)).join('\n')
  }
  const inputs = receipt.inputs.length > 1 ? ` of ${formatCount(receipt.inputs.length)} inputs` : ''
  const were = receipt.rowsBefore === 1n ? 'was' : 'were'
  const before =
    receipt.rowsBefore > 0n ? ` (${formatCount(receipt.rowsBefore)} ${were} there)` : ''
  const amount = `${style.bold(amountOf(receipt))}${inputs}`
  const where = `${marks.arrow} ${style.bold(receipt.table)}`
  lines.push(`${mark} ${amount} ${where} in ${formatSeconds(receipt.seconds)}${before}`)
  const add = (name: string, text: string): void => {
    lines.push(`  ${style.dim(name.padEnd(9))} ${text}`)
  }
  const last = receipt.rounds.at(-1)
  if (receipt.snapshotId !== undefined) {
    const round = last === undefined ? '' : `   round ${last.round}, epoch ${epochOf(last)}`
    add('snapshot', `${receipt.snapshotId.toString()}${round}`)
  }
  if (receipt.kind === 'primary-key') {
    add('changes', changesText(receipt))
    const gone = counted(receipt.rowsDeleted, 'row')
    add('rows', `${formatCount(receipt.rows)} written, ${gone} deleted or replaced`)
  }
  if (receipt.files > 0 || receipt.deleteFiles > 0) {
    const from = receipt.inputBytes > 0 ? ` (from ${formatBytes(receipt.inputBytes)})` : ''
    const deletes =
      receipt.deleteFiles > 0 ? `, ${counted(receipt.deleteFiles, 'delete file')}` : ''
    const size = `${formatBytes(receipt.bytes)}${deletes}${from}`
    add('files', `${counted(receipt.files, 'data file')}, ${size}`)
  }
  if (receipt.buckets.length > 0) add('buckets', bucketsText(receipt))
  if (receipt.rounds.length > 1) add('rounds', roundsText(receipt))
  if (receipt.quarantined > 0) {
    const { quarantined, quarantineFile: folder } = receipt
    const files = quarantined === 1 ? ', a file in' : ', a file each in'
    const where = folder === undefined ? '' : `${files} ${folder}`
    add('set aside', `${counted(quarantined, 'bad record')}${where}`)
  }
  const cut = receipt.inputs.reduce((sum, input) => sum + input.valuesCut, 0)
  if (cut > 0) add('cut', `${counted(cut, 'value')} to microseconds, as declared`)
  if (receipt.rows > 0n) {
    const { upserts, deletes } = changesOf(receipt)
    const changes = Math.round((upserts + deletes) / Math.max(receipt.seconds, 0.001))
    const rate =
      receipt.kind === 'log'
        ? `${formatCount(rowsPerSecond(receipt))} rows/s`
        : `${formatCount(changes)} changes/s`
    const bytes = receipt.inputBytes > 0 ? `, ${formatBytes(bytesPerSecond(receipt))}/s` : ''
    add('rate', `${rate}${bytes}`)
  }
  return lines.concat(notes(receipt, style)).join('\n')
}

/** `sluice.receipt/1`. Snapshot ids are strings, because they use all bits of an int64. */
export function receiptJson(receipt: Receipt, signal?: 'SIGINT' | 'SIGTERM'): JsonObject {
  return {
    schema: 'sluice.receipt/1',
    ok: receipt.ok,
    table: receipt.table,
    table_uuid: receipt.tableUuid ?? null,
    created: receipt.created,
    warehouse: receipt.warehouse,
    snapshot_id: receipt.snapshotId?.toString() ?? null,
    rows: receipt.rows,
    rows_before: receipt.rowsBefore,
    rows_deleted: receipt.rowsDeleted,
    quarantined: receipt.quarantined,
    quarantine_file: receipt.quarantineFile ?? null,
    inputs: receipt.inputs.map(inputJson),
    buckets: receipt.buckets.map(({ bucket, start, end }) => ({ bucket, start, end })),
    files: receipt.files,
    delete_files: receipt.deleteFiles,
    bytes: receipt.bytes,
    input_bytes: receipt.inputBytes,
    rounds: receipt.rounds.map(roundJson),
    seconds: rounded(receipt.seconds, 3),
    rows_per_second: rowsPerSecond(receipt),
    mb_per_second: rounded(bytesPerSecond(receipt) / 1e6, 3),
    peak_memory_bytes: receipt.peakMemoryBytes,
    notes: receipt.notes,
    error: receipt.error === undefined ? null : errorJson(receipt.error, signal),
  }
}

/** One round, as it stands in a receipt and in the event of its commit. */
export function roundJson(round: RoundReport): JsonObject {
  return {
    round: round.round,
    incarnation: round.incarnation,
    epoch: round.epoch,
    snapshot_id: round.snapshotId?.toString() ?? null,
    commit_id: round.commitId,
    rows: round.rows,
    rows_deleted: round.rowsDeleted,
    delete_files: round.deleteFiles,
    force_finished: round.forceFinished,
    attempts: round.attempts,
    outcome: round.outcome,
    seconds: rounded(round.seconds, 3),
  }
}

/** Epochs are only compared within one incarnation, so both are shown: `1.3`. */
export function epochOf(round: { readonly incarnation: number; readonly epoch: number }): string {
  return `${round.incarnation}.${round.epoch}`
}

function inputJson(input: InputReport): JsonValue {
  return {
    id: input.id,
    name: input.name,
    records: input.records,
    bytes: input.bytes,
    position: input.position,
    already_there: input.alreadyThere,
    values_cut: input.valuesCut,
    ...(input.changes === undefined
      ? {}
      : {
          upserts: input.changes.upserts,
          deletes: input.changes.deletes,
          tombstones: input.changes.tombstones,
        }),
    exactly_once: input.exactlyOnce,
  }
}

/** Changes for a primary-key table: what they come to in rows is said below. */
function amountOf(receipt: Receipt): string {
  if (receipt.kind === 'log') return counted(receipt.rows, 'record')
  const { upserts, deletes } = changesOf(receipt)
  return counted(upserts + deletes, 'change')
}

function changesText(receipt: Receipt): string {
  const { upserts, deletes, tombstones } = changesOf(receipt)
  const parts = [counted(upserts, 'upsert'), counted(deletes, 'delete')]
  if (tombstones > 0) parts.push(counted(tombstones, 'tombstone'))
  return parts.join(', ')
}

function changesOf(receipt: Receipt): ChangeCounts {
  const sum = { upserts: 0, deletes: 0, tombstones: 0 }
  for (const { changes } of receipt.inputs) {
    sum.upserts += changes?.upserts ?? 0
    sum.deletes += changes?.deletes ?? 0
    sum.tombstones += changes?.tombstones ?? 0
  }
  return sum
}

function nothingToDo(receipt: Receipt): string {
  const [first] = receipt.inputs
  const snapshot =
    receipt.snapshotId === undefined ? '' : ` (snapshot ${receipt.snapshotId.toString()})`
  if (receipt.created) return `${receipt.table} is made; there are no records yet${snapshot}`
  const held = receipt.inputs.reduce((sum, input) => sum + input.alreadyThere, 0n)
  if (first === undefined || held === 0n) return `nothing to do: no records for ${receipt.table}`
  const of = receipt.inputs.length === 1 ? first.name : `${receipt.inputs.length} inputs`
  return `nothing to do: ${receipt.table} holds all ${counted(held, 'record')} of ${of}${snapshot}`
}

function bucketsText(receipt: Receipt): string {
  const counts = receipt.buckets.map(({ bucket, start, end }) => ({ bucket, rows: end - start }))
  if (counts.length <= bucketsShownMax) {
    return counts.map(({ bucket, rows }) => `${bucket}: ${formatCount(rows)}`).join('  ')
  }
  const sorted = counts.map(({ rows }) => rows).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  const at = (index: number): string => formatCount(sorted[index] ?? 0n)
  const middle = Math.floor((sorted.length - 1) / 2)
  return `${counts.length}: min ${at(0)}, median ${at(middle)}, max ${at(sorted.length - 1)}`
}

function roundsText(receipt: Receipt): string {
  const forced = receipt.rounds.filter((round) => round.forceFinished).length
  const lost = receipt.rounds.filter(({ outcome }) => !isIn(outcome))
  const parts = [counted(receipt.rounds.length, 'round').replace(/ rounds?$/, '')]
  if (forced > 0) parts.push(`${forced} force-finished`)
  if (lost.length > 0) parts.push(`${lost.length} ${lost[0]?.outcome ?? ''}`)
  return parts.join(', ')
}

function isIn(outcome: RoundReport['outcome']): boolean {
  return outcome === 'committed' || outcome === 'already_applied'
}

function notes(receipt: Receipt, style: Style): readonly string[] {
  return receipt.inputs
    .filter((input) => !input.exactlyOnce)
    .map((input) => style.dim(`  note      ${input.name} has no id: again would append it again`))
}

function rowsPerSecond(receipt: Receipt): number {
  return receipt.seconds > 0 ? Math.round(Number(receipt.rows) / receipt.seconds) : 0
}

function bytesPerSecond(receipt: Receipt): number {
  return receipt.seconds > 0 ? receipt.inputBytes / receipt.seconds : 0
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

import { isSluiceError } from '../../core/errors.ts'
import { formatTableName } from '../../core/table-name.ts'
import { type OpenedLake, openWarehouse } from '../open-lake.ts'
import type { SessionPorts } from '../tiering-session.ts'
import { Attempt } from './attempt.ts'
import { explainError, explainThrown, type Reached } from './explain-error.ts'
import { orStopped } from './or-stopped.ts'
import { ReceiptBuilder } from './receipt-builder.ts'
import { openTarget, type Target } from './target.ts'
import type { Receipt, TierHooks, TierRequest } from './tier-types.ts'

/** How often a run may start over because another process committed while it was starting. */
const restartsMax = 3

/**
 * Tiers inputs into one table, as `sluice tier` does. Rounds run while inputs are still being read.
 * @param opened The request's warehouse, where it is open already.
 * @returns a receipt; `ok` is false and `error` set when it stopped after the table was opened
 * @throws SluiceError when nothing was written
 */
export async function tierInputs(
  request: TierRequest,
  hooks: TierHooks,
  ports: SessionPorts,
  opened?: OpenedLake,
): Promise<Receipt> {
  const startedAt = ports.clock.monotonic()
  const seconds = (): number => (ports.clock.monotonic() - startedAt) / 1000
  const s3 = request.s3 === undefined ? {} : { s3: request.s3 }
  const lake = opened ?? (await openWarehouse(request.warehouse, ports, s3))
  const receipt = new ReceiptBuilder()
  const reached: Reached = {
    warehouse: request.warehouse,
    table: formatTableName(request.table),
    rounds: receipt.rounds,
    isCreated: false,
    records: undefined,
    snapshotId: undefined,
    diskNeeded: undefined,
  }
  let target: Target
  try {
    target = await orStopped(openTarget(request, hooks, lake, ports), hooks.signal)
  } catch (error) {
    // Being told to stop is how a run that follows its input ends.
    if (request.follow && isSluiceError(error, 'STOPPED')) {
      const kind = request.primaryKey === undefined ? 'log' : 'primary-key'
      return nothingCame(reached, kind, seconds())
    }
    throw await explainThrown(error, reached)
  }
  receipt.created = target.created
  receipt.notes.push(...target.notes)
  if (target.created) tellCreated(target, hooks)
  for (const message of target.notes) hooks.onEvent({ event: 'note', message })

  for (let start = 1; ; start += 1) {
    const attempt = new Attempt(request, hooks, ports, lake, target, receipt)
    const error = await attempt.toTheEnd()
    const isRestart =
      isSluiceError(error, 'COMMIT_STALE') &&
      receipt.rounds.length === 0 &&
      start < restartsMax &&
      !request.inputs.includes('-')
    if (isRestart) {
      receipt.inputs.length = 0
      continue
    }
    const end = attempt.receipt(error, seconds())
    if (error === undefined) return end
    const { snapshotId } = end
    const records = end.rowsBefore + end.rows
    const diskNeeded = await attempt.diskNeeded()
    const at = { ...reached, isCreated: end.created, records, snapshotId, diskNeeded }
    return { ...end, error: await explainError(error, at) }
  }
}

/** Of a run that ended before there was a byte to tier, or to learn columns from. */
function nothingCame(
  { table, warehouse }: Reached,
  kind: Receipt['kind'],
  seconds: number,
): Receipt {
  return {
    ok: true,
    table,
    kind,
    tableUuid: undefined,
    created: false,
    warehouse,
    snapshotId: undefined,
    rows: 0n,
    rowsBefore: 0n,
    rowsDeleted: 0n,
    quarantined: 0,
    quarantineFile: undefined,
    inputs: [],
    buckets: [],
    files: 0,
    deleteFiles: 0,
    bytes: 0,
    inputBytes: 0,
    rounds: [],
    seconds,
    peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
    notes: [],
    error: undefined,
  }
}

function tellCreated(target: Target, hooks: TierHooks): void {
  hooks.onEvent({
    event: 'created',
    table: target.name,
    buckets: target.definition.bucketCount,
    columns: target.columns,
  })
}

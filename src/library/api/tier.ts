import { Readable } from 'node:stream'
import { availableParallelism } from 'node:os'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { silentJournal } from '../../core/ports.ts'
import { seededChance, systemClock, systemIds } from '../../core/system.ts'
import { parseTableName } from '../../core/table-name.ts'
import { tierInputs } from '../tier/run.ts'
import type { Receipt, TierRequest } from '../tier/tier-types.ts'
import { checkMembers, definitionMembers, refuseLater } from './check-options.ts'
import { durationMs } from './duration.ts'
import type { TableDefinition } from './embedded-source.ts'
import { type Cancel, type Lake, partsOf } from './lake.ts'

export type TierOptions = Partial<TableDefinition> &
  Cancel & {
    readonly lake: Lake
    /** `namespace.table`; made if it is not there, from `columns` or from the first records. */
    readonly table: string
    /** By extension and first bytes unless given. */
    readonly inputFormat?: 'ndjson' | 'csv' | 'parquet' | 'arrow'
    /** Names the input; by default a file is told by its content. */
    readonly inputId?: string
    readonly onBadRecord?: 'fail' | 'quarantine'
  }

/**
 * What `sluice tier` does: files into a table of a lake, each record once however often it is called.
 * A path is relative to the working directory.
 * @throws SluiceError as the receipt of a run that ended early has it; what was committed before stays
 */
export async function tier(
  inputs: string | readonly string[] | AsyncIterable<Uint8Array>,
  options: TierOptions,
): Promise<Receipt> {
  checkMembers('tier', options, tierMembers)
  const isStream = typeof inputs !== 'string' && Symbol.asyncIterator in inputs
  const paths = isStream ? ['-'] : typeof inputs === 'string' ? [inputs] : inputs
  if (paths.length === 0) throw new SluiceError('CONFIG_INVALID', 'there is no input')
  if (options.inputId !== undefined && paths.length > 1) {
    throw new SluiceError('CONFIG_INVALID', `there are ${paths.length} inputs for one inputId`)
  }
  const receipt = await tierInputs(
    requestOf(paths, options),
    {
      signal: options.signal ?? new AbortController().signal,
      stdin: isStream ? Readable.from(inputs, { objectMode: true }) : process.stdin,
      onEvent: () => undefined,
    },
    {
      clock: systemClock,
      ids: systemIds,
      chance: seededChance(Number.parseInt(systemIds.bits128().slice(0, 8), 16)),
      journal: silentJournal,
    },
    partsOf(options.lake),
  )
  if (receipt.error === undefined) return receipt
  if (isSluiceError(receipt.error)) throw receipt.error
  throw new SluiceError('INVARIANT_BROKEN', receipt.error.message, { cause: receipt.error })
}

const tierMembers = [
  'lake',
  'table',
  'inputFormat',
  'inputId',
  'onBadRecord',
  'signal',
  ...definitionMembers,
]

function requestOf(inputs: readonly string[], options: TierOptions): TierRequest {
  refuseLater(options.table, options)
  const { lake, buckets, bucketKey, columns, freshness, inputFormat, inputId } = options
  return {
    inputs,
    warehouse: lake.warehouse,
    table: parseTableName(options.table),
    properties: new Map(Object.entries(options.properties ?? {})),
    sampleRecords: 10_000,
    csv: { hasHeader: true },
    onBadRecord: options.onBadRecord ?? 'fail',
    badRecordsMax: 1000,
    onUnknownField: 'fail',
    follow: false,
    readers: Math.min(16, availableParallelism()),
    memoryBytes: 512 * 1024 ** 2,
    shutdownTimeoutMs: 30_000,
    ...(buckets === undefined ? {} : { buckets }),
    ...(bucketKey === undefined ? {} : { bucketKey }),
    ...(columns === undefined ? {} : { columns: new Map(Object.entries(columns)) }),
    ...(freshness === undefined ? {} : { freshnessMs: durationMs(freshness, 'freshness') }),
    ...(inputFormat === undefined ? {} : { inputFormat }),
    ...(inputId === undefined ? {} : { inputId }),
  }
}

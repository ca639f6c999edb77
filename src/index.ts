/** The library: what a Node program needs to fill a lake and to read it back. */
export type { S3Credentials, S3Options } from './catalog/store/s3-client.ts'
export { type ErrorCode, isSluiceError, SluiceError } from './core/errors.ts'
export type { Duration } from './library/api/duration.ts'
export {
  type EmbeddedSource,
  type EmbeddedSourceOptions,
  openEmbeddedSource,
  type Source,
  type TableDefinition,
} from './library/api/embedded-source.ts'
export {
  type Cancel,
  type Lake,
  type LakeOptions,
  type LakeTable,
  openLake,
  type Progress,
  type ScanOptions,
  type Snapshot,
  type TableSummary,
} from './library/api/lake.ts'
export { tier, type TierOptions } from './library/api/tier.ts'
export {
  type JobReceipt,
  startTiering,
  type TieringJob,
  type TieringOptions,
} from './library/api/tiering-job.ts'
export type { Receipt, RoundReport } from './library/tier/tier-types.ts'
export type { TieringEvent } from './sink/job/events.ts'
export type { Row, Value } from './core/columns/rows.ts'
export type { LogTable, Position, Records, WriteOptions } from './source/index.ts'

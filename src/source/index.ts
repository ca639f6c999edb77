export {
  type AppendOptions,
  type ChangeKind,
  EmbeddedSource,
  type EmbeddedSourceOptions,
} from './embedded/embedded-source.ts'
export type { EmbeddedTableDefinition } from './embedded/check-table.ts'
export type { AppendInput, AppendResult, TableResume } from './embedded/embedded-table.ts'
export {
  logTable,
  type LogTable,
  type Position,
  type Records,
  type WriteOptions,
} from './embedded/log-table.ts'
export type {
  BucketEnds,
  BucketRange,
  InputProgress,
  InputsProgress,
  LogBatch,
  LogSource,
  SourceTable,
} from './ports.ts'

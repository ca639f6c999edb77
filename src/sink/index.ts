/** Ports and parts of the sink, for those who put their own process together. */
export { lakeCommitter, type LakeCommitterPorts } from './committer/lake-committer.ts'
export { type HeldTable, holdTable } from './committer/held-table.ts'
export { decodeLedger, encodeLedger, type Ledger } from './committer/ledger.ts'
export { readVersion, type Progress, type ReadVersion } from './committer/progress.ts'
export type { RoundReport, TieringEvent } from './job/events.ts'
export { startJob } from './job/job.ts'
export type { JobOptions, RunningJob, StopReport } from './job/options.ts'
export type { JobView } from './job/job-view.ts'
export type {
  ByteSink,
  EncoderOptions,
  FileEncoder,
  FileSummary,
  ParquetEncoder,
} from './parquet/encoder.ts'
export { chooseEncoder } from './parquet/index.ts'
export type {
  Assignment,
  CommitResult,
  LogSplit,
  RoundCommitter,
  RoundPlan,
  RoundPlanner,
  SplitResult,
  SplitRunner,
  StopSignal,
} from './ports.ts'
export { splitRunner, type SplitRunnerPorts } from './reader/split-runner.ts'
export { WriterBudget } from './writer/writer-budget.ts'

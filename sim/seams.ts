import type { LakeTable } from '../src/catalog/ports.ts'
import type { ObjectStore } from '../src/catalog/store/object-store.ts'
import type { IdSource } from '../src/core/ports.ts'
import type { CommitPorts } from '../src/sink/committer/commit.ts'
import type { HeldTable } from '../src/sink/committer/held-table.ts'
import type { ReadVersion } from '../src/sink/committer/progress.ts'
import type { RoundCommitter, RoundPlanner } from '../src/sink/ports.ts'
import type { TableResume } from '../src/source/embedded/embedded-table.ts'
import type { LogSource } from '../src/source/ports.ts'

/** Where a planted bug gets in: each part of a process can be put in other hands. */
export type Seams = {
  readonly store?: (store: ObjectStore) => ObjectStore
  readonly lake?: (lake: LakeTable, store: ObjectStore) => LakeTable
  readonly judge?: NonNullable<CommitPorts['judge']>
  readonly readVersion?: NonNullable<CommitPorts['readVersion']>
  /** What the table is held with. */
  readonly held?: (held: HeldTable, version: ReadVersion) => HeldTable
  /** Ids of commits; those of files are not concerned. */
  readonly commitIds?: (ids: IdSource, held: () => HeldTable | undefined) => IdSource
  readonly fileIds?: (ids: IdSource) => IdSource
  readonly committer?: (
    committer: RoundPlanner & RoundCommitter,
    parts: { readonly source: LogSource },
  ) => RoundPlanner & RoundCommitter
  readonly source?: (source: LogSource) => LogSource
  readonly resume?: (resume: TableResume) => TableResume
}

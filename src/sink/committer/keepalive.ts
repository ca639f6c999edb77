import type { Millis } from '../../core/ids.ts'
import type { IdSource } from '../../core/ports.ts'
import { drawCommit, ledgerChange, snapshotOf } from './changes.ts'
import { type CommitPorts, commit } from './commit.ts'
import { type HeldTable, ledgerOf } from './held-table.ts'
import type { ReadVersion } from './progress.ts'
import type { Token } from './token.ts'

const ageKey = 'history.expire.max-snapshot-age-ms'
/** Iceberg's default: five days. */
const ageDefaultMs = 432_000_000

/**
 * Whether our newest snapshot lies below the commits of others and is so old that their expiry may
 * soon take it, and our progress with it.
 */
export function isKeepaliveDue(version: ReadVersion, now: Millis): boolean {
  if (version.progress.kind !== 'found') return false
  const { snapshot } = version.progress
  const { head, properties } = version.table
  // Expired already, and only the proven copy is left: say it again while it can be proven.
  if (snapshot === undefined) return true
  if (snapshot.id === head) return false
  const text = properties.get(ageKey) ?? ''
  const ageMs = /^\d{1,15}$/.test(text) ? Number.parseInt(text, 10) : ageDefaultMs
  return now - snapshot.committedAt > ageMs / 2
}

/** Repeats the newest ledger in an empty snapshot at the head. */
export async function keepalive(
  held: HeldTable,
  token: Token,
  planned: ReadVersion,
  ports: CommitPorts & { readonly ids: IdSource },
): Promise<void> {
  const before = ledgerOf(planned)
  if (before === undefined) return
  const id = drawCommit(ports.ids)
  const ledger = { ...before, kind: 'keepalive', token, commit: id, final: false } as const
  const end = await commit(
    {
      held,
      claim: {
        commit: id,
        snapshotId: snapshotOf(id),
        token,
        tableUuid: planned.table.uuid,
        planHead: planned.table.head,
        schemaId: planned.table.schemaId,
        specId: planned.table.specId,
        ranges: [],
        follows: before.commit,
        drawn: held.drawn,
      },
      planned,
      build: (base) => ledgerChange(base, ledger, { files: [], forceFinished: false }),
    },
    ports,
  )
  if (end.kind !== 'committed') throw end.error
  held.landed.push(id)
}

import { createHash } from 'node:crypto'
import type { LakeTable, LoadedTable, SnapshotEntry } from '../../catalog/ports.ts'
import { SluiceError } from '../../core/errors.ts'
import type { SnapshotId } from '../../core/ids.ts'
import { unreachable } from '../../core/never.ts'
import { decodeLedger, type Ledger } from './ledger.ts'
import { findOwn, lineage, type LostReason, propertyKeys, summaryKeys } from './lineage.ts'
import { prove, readCopy } from './progress-copy.ts'
import { compareTokens, decodeClaim, type TokenClaim } from './token.ts'

/** What one version of a table says about our progress. */
export type Progress =
  | { readonly kind: 'fresh' }
  | {
      readonly kind: 'found'
      readonly ledger: Ledger
      /** Absent when it was expired by another tool and the table property's copy is proven. */
      readonly snapshot: SnapshotEntry | undefined
      /** The property's copy is of a later commit: the branch was rolled back from it. */
      readonly rolledBackFrom?: bigint
    }
  | { readonly kind: 'lost'; readonly reason: LostReason; readonly error: SluiceError }

/** A version together with what the judge asks about it. */
export type ReadVersion = {
  readonly table: LoadedTable
  readonly progress: Progress
  /** The highest token ever written, to the lineage or to the properties. */
  readonly claim: TokenClaim | undefined
}

/**
 * Loads the newest version and reads its ledger.
 * @throws SluiceError TABLE_EXISTS when another source feeds the table; DATA_CORRUPT.
 */
export async function readVersion(lake: LakeTable, source: string): Promise<ReadVersion> {
  return interpretVersion(lake, await lake.load(), source)
}

/** Reads what a loaded version says; asks the store only for a ledger that is not inline. */
export async function interpretVersion(
  lake: LakeTable,
  table: LoadedTable,
  source: string,
): Promise<ReadVersion> {
  const name = lake.name.join('.')
  const progress = await readProgress(lake, table, source, name)
  return { table, progress, claim: highestClaim(table, progress, name) }
}

async function readProgress(
  lake: LakeTable,
  table: LoadedTable,
  source: string,
  name: string,
): Promise<Progress> {
  const finding = findOwn(table, source)
  switch (finding.kind) {
    case 'fresh':
      return { kind: 'fresh' }
    case 'other-source':
      throw new SluiceError('TABLE_EXISTS', `${name}: the table is fed by ${finding.source}`, {
        details: { table: name, source: finding.source },
        fix: 'tier into another table',
      })
    case 'lost': {
      const proven = await provenCopy(lake, table, finding)
      if (proven !== undefined) return { kind: 'found', ledger: proven, snapshot: undefined }
      return { kind: 'lost', reason: finding.reason, error: lostError(table, finding, name) }
    }
    case 'found': {
      const where = `${name} snapshot ${String(finding.snapshot.id)}`
      const inline = finding.snapshot.summary.get(summaryKeys.ledger)
      const inHeader = inline === undefined || inline.startsWith('manifest-list')
      const text = inHeader ? await lake.headerLedger(finding.snapshot) : inline
      const expected = /sha256=([0-9a-f]{64})/.exec(inline ?? '')?.[1]
      if (inHeader && expected !== createHash('sha256').update(text).digest('hex')) {
        throw new SluiceError(
          'DATA_CORRUPT',
          `${where}: its ledger is not the one it was made with`,
        )
      }
      const ledger = decodeLedger(text, where)
      if (ledger.table !== table.uuid) {
        throw new SluiceError('TABLE_REPLACED', `${where}: its ledger is of another table`, {
          details: { table: name, expected: ledger.table, found: table.uuid },
        })
      }
      return {
        kind: 'found',
        ledger,
        snapshot: finding.snapshot,
        ...rolledBack(table, finding.snapshot),
      }
    }
    default:
      return unreachable(finding)
  }
}

/** A copy whose whole ledger is there and which is proven to belong to this lineage. */
async function provenCopy(
  lake: LakeTable,
  table: LoadedTable,
  finding: { readonly reason: LostReason; readonly missing?: SnapshotId },
): Promise<Ledger | undefined> {
  if (finding.reason !== 'chain-broken') return undefined
  const copy = readCopy(table)
  if (copy?.ledger?.table !== table.uuid) return undefined
  if (prove(copy, finding.missing, undefined) !== undefined) return copy.ledger
  return prove(copy, undefined, await lake.dataEnds(table)) === undefined ? undefined : copy.ledger
}

/** Properties stay where they are when a branch goes back, so they tell that it did. */
function rolledBack(
  table: LoadedTable,
  newest: SnapshotEntry,
): { readonly rolledBackFrom?: bigint } {
  const copy = readCopy(table)
  if (copy === undefined || copy.snapshot === newest.id) return {}
  const isOutside = [...lineage(table)].every((each) => each.id !== copy.snapshot)
  const isListed = [...table.snapshots.keys()].some((id) => id === copy.snapshot)
  if (copy.sequence <= newest.sequence && !(isListed && isOutside)) return {}
  return { rolledBackFrom: copy.snapshot }
}

function highestClaim(
  table: LoadedTable,
  progress: Progress,
  name: string,
): TokenClaim | undefined {
  const text = table.properties.get(propertyKeys.token)
  const written = text === undefined ? undefined : decodeClaim(text)
  if (text !== undefined && written === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${name}: table property sluice.token is damaged`, {
      details: { table: name, value: text },
    })
  }
  if (progress.kind !== 'found') return written
  const inLineage = { token: progress.ledger.token, commit: progress.ledger.commit }
  if (written === undefined) return inLineage
  return compareTokens(inLineage.token, written.token) > 0 ? inLineage : written
}

function lostError(
  table: LoadedTable,
  finding: { readonly reason: LostReason; readonly missing?: bigint },
  name: string,
): SluiceError {
  if (finding.reason === 'branch-missing') {
    return new SluiceError(
      'TABLE_REPLACED',
      `${name}: its branch is gone although it was tiered before (replaced, or main was dropped)`,
      { details: { table: name, progress: table.properties.get(propertyKeys.progress) } },
    )
  }
  const why = {
    'chain-broken': `snapshot ${String(finding.missing)} of its history was expired by another tool`,
    'cherry-picked': 'a snapshot of ours was cherry-picked, so rows are there without their ledger',
    'before-first-commit': 'its history no longer holds any commit of ours',
  }[finding.reason]
  return new SluiceError('PROGRESS_LOST', `${name}: how far it is in cannot be proven; ${why}`, {
    details: {
      table: name,
      reason: finding.reason,
      head: table.head,
      progress: table.properties.get(propertyKeys.progress),
    },
    state: 'nothing was changed',
    fix: `sluice progress LAKE ${name} shows what is known; roll back, or decide there (docs/operations.md)`,
  })
}

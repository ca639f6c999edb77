import { counted } from '../../core/text.ts'
import { foreignSnapshots } from '../progress-report.ts'
import type { SessionTable } from '../tiering-session.ts'

/** What a person should know of what happened to a table since the last round of ours. */
export function lakeNotes(
  name: string,
  { version, resumed }: Pick<SessionTable, 'version' | 'resumed'>,
): readonly string[] {
  const { progress, table } = version
  const notes: string[] = []
  if (progress.kind === 'found' && progress.rolledBackFrom !== undefined) {
    const from = String(progress.rolledBackFrom)
    const after = `it goes on after round ${String(resumed?.round)}`
    notes.push(`${name} was rolled back from snapshot ${from}: ${after}`)
  }
  const foreign = foreignSnapshots(table).length
  if (foreign > 0) {
    notes.push(
      `${name} has ${counted(foreign, 'newer snapshot')} of other writers. Without a catalog only ` +
        'writers that create each version if it is absent are safe beside Sluice; others may ' +
        'overwrite commits (docs/operations.md#other-writers)',
    )
  }
  return notes
}

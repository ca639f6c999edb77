import { unreachable } from '../../core/never.ts'
import type { Journal, JournalEntry } from '../../core/ports.ts'
import type { TieringEvent } from './events.ts'

/** What a job tells, as lines for operators. */
export function noteEvent(journal: Journal, event: TieringEvent): void {
  journal.note(entryOf(event))
}

function entryOf(event: TieringEvent): JournalEntry {
  const { table, incarnation, epoch } = event
  const round = { table, incarnation, epoch }
  switch (event.event) {
    case 'state':
      return {
        level: 'debug',
        event: 'table.state',
        message: `${table} is ${event.state}`,
        fields: { ...round, state: event.state },
      }
    case 'committed':
      return {
        level: 'info',
        event: 'round.committed',
        message: `round ${event.round} of ${table} is in the lake`,
        fields: {
          ...round,
          round: event.round,
          snapshot_id: event.snapshotId,
          commit_id: event.commitId,
          attempt: event.attempts,
          rows: event.rows,
          files: event.files,
          bytes: event.bytes,
          duration_ms: Math.round(event.seconds * 1000),
        },
      }
    case 'rejected':
      return {
        level: 'info',
        event: 'round.given_up',
        message: event.error.message,
        fields: { ...round, error_code: event.error.code, effect: event.error.effect },
      }
    default:
      return unreachable(event)
  }
}

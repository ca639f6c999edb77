import type { CoordinatorPort } from '../../coordinator/ports.ts'
import type {
  FailedReport,
  FinishedReport,
  HeartbeatResponse,
  RoundToken,
  TableAssignment,
} from '../../coordinator/protocol.ts'
import type { Journal } from '../../core/ports.ts'

/** The one line on which a job talks to its coordinator: one beat at a time, in order. */
export interface Beats {
  /** Tells what is in flight, and hands out what the coordinator assigns if asked to. */
  send(options: { readonly requestTable: boolean }): Promise<TableAssignment | undefined>
  /** Tells the end of a round at once, and again with each beat until one is answered. */
  finished(report: FinishedReport): Promise<void>
  failed(report: FailedReport): Promise<void>
}

export function createBeats(options: {
  readonly coordinator: CoordinatorPort
  readonly journal: Journal
  readonly inFlight: () => readonly RoundToken[]
  readonly answered: (response: HeartbeatResponse) => void
}): Beats {
  let finished: readonly FinishedReport[] = []
  let failed: readonly FailedReport[] = []
  let last: Promise<unknown> = Promise.resolve()

  /** Says no more than it must: a report may have gone out with a beat that was sent before. */
  async function report(): Promise<void> {
    await inTurn(async () => {
      if (finished.length + failed.length > 0) await beat(false)
    })
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work)
    last = turn.catch(() => undefined)
    return turn
  }

  async function beat(requestTable: boolean): Promise<TableAssignment | undefined> {
    const request = { failed, inFlight: options.inFlight(), finished, requestTable }
    let response: HeartbeatResponse
    try {
      response = await options.coordinator.heartbeat(request)
    } catch (error) {
      options.journal.note({
        level: 'warn',
        event: 'heartbeat.lost',
        message: `the coordinator did not answer (${String(error)}); the next beat says it again`,
      })
      return undefined
    }
    finished = finished.filter((row) => !request.finished.includes(row))
    failed = failed.filter((row) => !request.failed.includes(row))
    options.answered(response)
    return response.assignment
  }

  return {
    send: ({ requestTable }) => inTurn(() => beat(requestTable)),
    finished: (row) => {
      finished = [...finished, row]
      return report()
    },
    failed: (row) => {
      failed = [...failed, row]
      return report()
    },
  }
}

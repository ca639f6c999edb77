import type {
  HeartbeatRequest,
  HeartbeatResponse,
  TableStatus,
  TableTransition,
} from './protocol.ts'

/** What a tiering job needs from a coordinator, in this process or another. */
export interface CoordinatorPort {
  /** Throws when there is no answer; the job then says the same again with its next beat. */
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatResponse>
  /**
   * Tells every move of a table until the returned function is called. A coordinator elsewhere may
   * tell nothing: a job that waits then learns of pending tables by its next poll.
   */
  watch(listener: (transition: TableTransition) => void): () => void
  /** What is known here, in order of table ids; nothing from a coordinator elsewhere. */
  tables(): readonly TableStatus[]
}

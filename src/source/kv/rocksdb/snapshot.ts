import type { EngineSnapshot } from '../engine.ts'
import type { Session, SnapshotSession } from './binding.ts'

/** All families at one moment, with a session for each that is read. */
export class StoreSnapshot implements EngineSnapshot {
  readonly #root: SnapshotSession
  readonly #sessions = new Map<string, Session>()
  readonly #released: () => void

  constructor(root: SnapshotSession, released: () => void) {
    this.#root = root
    this.#released = released
  }

  session(name: string): Session {
    const session = this.#sessions.get(name) ?? this.#root.columnFamily(name)
    this.#sessions.set(name, session)
    return session
  }

  async release(): Promise<void> {
    this.#released()
    await Promise.all([...this.#sessions.values()].map((session) => session.close()))
    await this.#root.close()
  }
}

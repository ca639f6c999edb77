import type { EmbeddedCoordinator } from '../src/coordinator/embedded-coordinator.ts'
import type { CoordinatorPort } from '../src/coordinator/ports.ts'
import type { TableTransition } from '../src/coordinator/protocol.ts'
import { SluiceError } from '../src/core/errors.ts'
import type { Random } from './random.ts'
import type { Pid, World } from './world.ts'

/**
 * The line between a job and its coordinator. It can be cut, on the way there or on the way back, and
 * the coordinator at its end can be replaced by another.
 */
export class CoordinatorLink implements CoordinatorPort {
  readonly #world: World
  readonly #pid: Pid
  readonly #random: Random
  readonly #isRemote: boolean
  readonly #listeners = new Set<(transition: TableTransition) => void>()
  #coordinator: EmbeddedCoordinator
  #unwatch: () => void
  #cutUntil = 0

  constructor(
    coordinator: EmbeddedCoordinator,
    options: {
      readonly world: World
      readonly pid: Pid
      readonly random: Random
      readonly isRemote: boolean
    },
  ) {
    this.#coordinator = coordinator
    this.#world = options.world
    this.#pid = options.pid
    this.#random = options.random
    this.#isRemote = options.isRemote
    this.#unwatch = this.#follow(coordinator)
  }

  /** The one that answers now. */
  get current(): EmbeddedCoordinator {
    return this.#coordinator
  }

  cut(duration: number): void {
    this.#cutUntil = this.#world.now + duration
  }

  heal(): void {
    this.#cutUntil = 0
  }

  replace(coordinator: EmbeddedCoordinator): void {
    this.#unwatch()
    this.#coordinator.close()
    this.#coordinator = coordinator
    this.#unwatch = this.#follow(coordinator)
  }

  async heartbeat(
    request: Parameters<CoordinatorPort['heartbeat']>[0],
  ): ReturnType<CoordinatorPort['heartbeat']> {
    if (!this.#isRemote) return this.#coordinator.heartbeat(request)
    await this.#travel()
    const response = await this.#coordinator.heartbeat(request)
    await this.#travel()
    return response
  }

  watch(listener: (transition: TableTransition) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  tables(): ReturnType<CoordinatorPort['tables']> {
    return this.#coordinator.tables()
  }

  #follow(coordinator: EmbeddedCoordinator): () => void {
    return coordinator.watch((transition) => {
      for (const listener of this.#listeners) listener(transition)
    })
  }

  async #travel(): Promise<void> {
    const isLost = this.#world.now < this.#cutUntil
    const delay = isLost ? 5_000 : 1 + this.#random.below(20)
    await new Promise<void>((resolve) => {
      this.#world.later(this.#pid, delay, resolve)
    })
    if (isLost) throw new SluiceError('STORE_UNAVAILABLE', 'no answer from the coordinator')
  }
}

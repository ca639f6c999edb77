import { SluiceError } from '../src/core/errors.ts'
import { type Millis, millis } from '../src/core/ids.ts'
import { type Clock, type Order, order } from '../src/core/ports.ts'
import { Random } from './random.ts'

/** Number of a process. What belongs to nobody, such as the effect of a request, has 0. */
export type Pid = number

export const nobody: Pid = 0

type Delivery = {
  at: number
  readonly order: Order
  readonly tie: number
  readonly place: number
  readonly pid: Pid
  readonly fire: () => void
  isCanceled: boolean
}

/** Wall time at the start of each world. */
const wallStart = 1_700_000_000_000

/**
 * One queue, one clock, one seed. Nothing happens but what is taken from the queue, and every promise
 * reaction runs dry before the next thing is. A killed process gets no delivery any more, which is a
 * crash at exactly that await; a paused one gets them later, which makes a zombie of it.
 */
export class World {
  readonly random: Random
  #now = 0
  #places = 0
  #pids: Pid = nobody
  #deliveries = 0
  #hash = 0x811c9dc5
  readonly #heap: Delivery[] = []
  readonly #dead = new Set<Pid>()
  readonly #pausedUntil = new Map<Pid, number>()
  readonly #wallShift = new Map<Pid, number>()
  readonly #counts = new Map<Pid, number>()
  readonly #killAt = new Map<Pid, number>()
  readonly #lines: string[] | undefined
  /** Told of a process that died in the place of a delivery. */
  onKilled: (pid: Pid) => void = () => undefined

  /** @param recording Keeps what is said, for a report. */
  constructor(seed: number, recording = false) {
    this.random = new Random(seed)
    this.#lines = recording ? [] : undefined
  }

  /** Milliseconds since the start. */
  get now(): number {
    return this.#now
  }

  get deliveries(): number {
    return this.#deliveries
  }

  /** Of everything that has happened, in order. Equal for equal runs. */
  get traceHash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0')
  }

  get lines(): readonly string[] {
    return this.#lines ?? []
  }

  get isRecording(): boolean {
    return this.#lines !== undefined
  }

  say(line: string): void {
    this.#lines?.push(`t=${(this.#now / 1000).toFixed(3)} s  ${line}`)
  }

  spawn(): Pid {
    this.#pids += 1
    return this.#pids
  }

  kill(pid: Pid): void {
    this.#dead.add(pid)
  }

  /** Kills a process in the place of its delivery number `count`, from 1. */
  killAtDelivery(pid: Pid, count: number): void {
    this.#killAt.set(pid, count)
  }

  isAlive(pid: Pid): boolean {
    return !this.#dead.has(pid)
  }

  /** Deliveries a process has had. */
  deliveriesOf(pid: Pid): number {
    return this.#counts.get(pid) ?? 0
  }

  pause(pid: Pid, duration: number): void {
    this.#pausedUntil.set(pid, Math.max(this.#pausedUntil.get(pid) ?? 0, this.#now + duration))
  }

  shiftWall(pid: Pid, by: number): void {
    this.#wallShift.set(pid, (this.#wallShift.get(pid) ?? 0) + by)
  }

  /** Does something later in the name of a process. @returns what calls it off */
  later(pid: Pid, delay: number, fire: () => void, at: Order = order.result): () => void {
    const delivery: Delivery = {
      at: this.#now + Math.max(0, delay),
      order: at,
      tie: this.random.next(),
      place: this.#places,
      pid,
      fire,
      isCanceled: false,
    }
    this.#places += 1
    this.#push(delivery)
    return () => {
      delivery.isCanceled = true
    }
  }

  clockOf(pid: Pid): Clock {
    return {
      now: (): Millis => millis(wallStart + this.#now + (this.#wallShift.get(pid) ?? 0)),
      monotonic: (): Millis => millis(this.#now),
      sleep: (duration, { signal, order: at = order.result } = {}) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted === true) {
            reject(waitEnded())
            return
          }
          // Clocks count whole milliseconds, so that a timer never rings before it is due.
          const whole = Math.ceil(duration)
          if (signal === undefined) {
            this.later(pid, whole, resolve, at)
            return
          }
          const stop = (): void => {
            cancel()
            reject(waitEnded())
          }
          const wake = (): void => {
            signal.removeEventListener('abort', stop)
            resolve()
          }
          const cancel = this.later(pid, whole, wake, at)
          signal.addEventListener('abort', stop, { once: true })
        }),
    }
  }

  /**
   * Lets things happen until `until`, or until `isOver`, or until nothing is left.
   * @param settled Runs after each delivery, once all reactions have run.
   */
  async run(
    until: number,
    settled: () => Promise<void> | undefined,
    isOver: () => boolean,
  ): Promise<void> {
    await quiescence()
    while (!isOver() && this.#deliver(until)) {
      await quiescence()
      const waiting = settled()
      if (waiting !== undefined) await waiting
    }
  }

  /** Lets the next thing happen. @returns false when there is none until `until` */
  #deliver(until: number): boolean {
    for (let next = this.#pop(); next !== undefined; next = this.#pop()) {
      if (next.at > until) {
        this.#push(next)
        this.#now = until
        return false
      }
      this.#now = Math.max(this.#now, next.at)
      if (!this.#mayHappen(next)) continue
      this.#deliveries += 1
      this.mix(this.#now)
      this.mix(next.pid)
      next.fire()
      return true
    }
    return false
  }

  /** Takes a number into the hash of the trace. */
  mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ (value | 0), 0x01000193)
  }

  mixText(text: string): void {
    for (let at = 0; at < text.length; at += 1) this.mix(text.charCodeAt(at))
  }

  #mayHappen(next: Delivery): boolean {
    const { pid } = next
    if (next.isCanceled || this.#dead.has(pid)) return false
    if (pid === nobody) return true
    const until = this.#pausedUntil.get(pid) ?? 0
    if (until > this.#now) {
      next.at = until
      this.#push(next)
      return false
    }
    const count = (this.#counts.get(pid) ?? 0) + 1
    this.#counts.set(pid, count)
    if (this.#killAt.get(pid) !== count) return true
    this.say(`process ${pid} is killed at its delivery ${count}`)
    this.#dead.add(pid)
    this.onKilled(pid)
    return false
  }

  #push(delivery: Delivery): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(delivery)
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = heap[above]
      if (parent === undefined || isBefore(parent, delivery)) break
      heap[at] = parent
      at = above
    }
    heap[at] = delivery
  }

  #pop(): Delivery | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      let child = heap[below]
      const right = heap[below + 1]
      if (child !== undefined && right !== undefined && isBefore(right, child)) {
        below += 1
        child = right
      }
      if (child === undefined || isBefore(last, child)) break
      heap[at] = child
      at = below
    }
    heap[at] = last
    return first
  }
}

function isBefore(a: Delivery, b: Delivery): boolean {
  if (a.at !== b.at) return a.at < b.at
  if (a.order !== b.order) return a.order < b.order
  return a.tie !== b.tie ? a.tie < b.tie : a.place < b.place
}

/** Resolves once every promise reaction that is queued, and all that they queue, has run. */
function quiescence(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve)
  })
}

function waitEnded(): SluiceError {
  return new SluiceError('STOPPED', 'a wait was ended')
}

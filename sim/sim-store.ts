import type { CreateOutcome, ObjectStore, ObjectWriter } from '../src/catalog/store/object-store.ts'
import { SluiceError } from '../src/core/errors.ts'
import { type Millis, millis } from '../src/core/ids.ts'
import type { FaultKind, StoreFault } from './plan.ts'
import { drawAt } from './random.ts'
import { nobody, type Pid, type World } from './world.ts'

type SimObject = { readonly body: Uint8Array; readonly modifiedAt: Millis; readonly bornAt: number }

type Operation = 'create' | 'put' | 'hint' | 'read' | 'size' | 'list' | 'remove'

/** What watches the store from outside. */
export type StoreWatcher = {
  /** An object came into being; `before` is what it replaced, if the store let that happen. */
  wrote(location: string, body: Uint8Array, before: Uint8Array | undefined): void
  removed(location: string): void
  fault(kind: string): void
}

/** How long a client waits for a reply. */
const timeoutMs = 10_000
/** A stale reader does not see what is younger. */
const staleMs = 60_000

const faultsOf: Readonly<Record<Operation, readonly FaultKind[]>> = {
  create: ['reject-before', 'lost-reply', 'delayed-apply', 'contended', 'doubled', 'slow'],
  put: ['reject-before', 'lost-reply', 'delayed-apply', 'slow'],
  hint: ['reject-before', 'lost-reply', 'slow'],
  read: ['reject-before', 'lost-reply', 'slow', 'short-read', 'corrupt-read', 'stale-read'],
  size: ['reject-before', 'lost-reply', 'slow', 'stale-read'],
  list: ['reject-before', 'lost-reply', 'slow', 'stale-list'],
  remove: ['reject-before', 'lost-reply', 'delayed-apply', 'slow'],
}

/**
 * Objects behind a network that lies. A request travels, has its effect in the store, and a reply
 * travels back; the effect belongs to the store, so that the death of who asked does not undo it.
 */
export class SimStore {
  readonly #world: World
  readonly #seed: number
  readonly #watcher: StoreWatcher
  readonly #faults: ReadonlyMap<number, StoreFault>
  readonly #objects = new Map<string, SimObject>()
  readonly #stormUntil = { time: 0 }
  readonly #fullUntil = { time: 0 }
  readonly #createFaults: ReadonlyMap<number, StoreFault>
  /** What becomes of the next requests of a process. */
  readonly #following = new Map<Pid, FaultKind[]>()
  #calls = 0
  #creates = 0
  #isHealed = false

  constructor(
    world: World,
    options: {
      readonly seed: number
      readonly faults: readonly StoreFault[]
      readonly watcher: StoreWatcher
    },
  ) {
    this.#world = world
    this.#seed = options.seed
    this.#watcher = options.watcher
    const byCall = (ofCreates: boolean): ReadonlyMap<number, StoreFault> =>
      new Map(
        options.faults
          .filter((fault) => (fault.ofCreates ?? false) === ofCreates)
          .map((fault) => [fault.call, fault]),
      )
    this.#faults = byCall(false)
    this.#createFaults = byCall(true)
  }

  get objects(): ReadonlyMap<string, { readonly body: Uint8Array }> {
    return this.#objects
  }

  get calls(): number {
    return this.#calls
  }

  storm(duration: number): void {
    this.#stormUntil.time = this.#world.now + duration
  }

  fillDisk(duration: number): void {
    this.#fullUntil.time = this.#world.now + duration
  }

  /** From now on nothing new goes wrong; what is under way still may. */
  heal(): void {
    this.#isHealed = true
    this.#stormUntil.time = 0
    this.#fullUntil.time = 0
  }

  /** Writes without a network in between, in the name of an operator. @returns false if taken */
  createNow(location: string, body: Uint8Array): boolean {
    if (this.#objects.has(location)) return false
    this.#put(location, body)
    return true
  }

  removeNow(location: string): void {
    if (this.#objects.delete(location)) this.#watcher.removed(location)
  }

  /** The store as one process sees it. */
  client(pid: Pid): ObjectStore {
    return {
      createIfAbsent: (location, body, options) =>
        this.#create(pid, location, body, options?.makeFolders ?? false),
      putHint: async (location, body) => {
        // A hint that is not written is not missed.
        await this.#call(pid, 'hint', location, () => {
          this.#put(location, Buffer.from(body))
        }).catch(() => undefined)
      },
      open: (location) => Promise.resolve(this.#writer(pid, location)),
      read: (location) => this.#read(pid, location, (body) => body),
      readRange: (location, start, end) =>
        this.#read(pid, location, (body) => body.subarray(start, end)),
      size: (location) =>
        this.#call(pid, 'size', location, (fault) => this.#seen(location, fault)?.body.length),
      list: (prefix) =>
        this.#call(pid, 'list', prefix, (fault) =>
          [...this.#objects]
            .filter(([location, { bornAt }]) => {
              const isNew = bornAt > this.#world.now - staleMs
              return location.startsWith(prefix) && !(fault === 'stale-list' && isNew)
            })
            .map(([location, { body, modifiedAt }]) => ({
              location,
              bytes: body.length,
              modifiedAt,
            }))
            .sort((a, b) => (a.location < b.location ? -1 : 1)),
        ),
      remove: async (location) => {
        await this.#call(pid, 'remove', location, () => {
          this.removeNow(location)
        })
      },
    }
  }

  async #create(
    pid: Pid,
    location: string,
    body: Uint8Array,
    makeFolders: boolean,
  ): Promise<CreateOutcome> {
    try {
      return await this.#call<CreateOutcome>(pid, 'create', location, (fault) => {
        this.#refuseFull(location)
        if (fault === 'contended') return { kind: 'rejected', reason: 'contended' }
        if (this.#objects.has(location)) return { kind: 'rejected', reason: 'exists' }
        if (!makeFolders && !this.#objects.has(firstVersionBeside(location))) {
          throw new SluiceError('TABLE_MISSING', `${location}: its folder is gone`)
        }
        this.#put(location, Buffer.from(body))
        // The request was sent twice below the caller, and the second answer is the one that came.
        if (fault === 'doubled') return { kind: 'rejected', reason: 'exists' }
        return { kind: 'applied' }
      })
    } catch (cause) {
      if (!(cause instanceof SluiceError) || cause.code !== 'STORE_UNAVAILABLE') throw cause
      return { kind: 'unknown', cause }
    }
  }

  #writer(pid: Pid, location: string): ObjectWriter {
    const chunks: Uint8Array[] = []
    return {
      write: (bytes) => {
        chunks.push(Buffer.from(bytes))
        return Promise.resolve()
      },
      finish: () =>
        this.#call(pid, 'put', location, () => {
          this.#refuseFull(location)
          const body = Buffer.concat(chunks)
          this.#put(location, body)
          return body.length
        }),
      abandon: () => Promise.resolve(),
    }
  }

  #read(
    pid: Pid,
    location: string,
    part: (body: Uint8Array) => Uint8Array,
  ): Promise<Uint8Array | undefined> {
    return this.#call(pid, 'read', location, (fault, number) => {
      const found = this.#seen(location, fault)
      if (found === undefined) return undefined
      const body = part(found.body)
      if (fault === 'short-read') return cut(body, drawAt(this.#seed, number))
      if (fault === 'corrupt-read') return garbled(body)
      return body
    })
  }

  #seen(location: string, fault: FaultKind | undefined): SimObject | undefined {
    const found = this.#objects.get(location)
    const isNew = found !== undefined && found.bornAt > this.#world.now - staleMs
    return fault === 'stale-read' && isNew && isOfRegister(location) ? undefined : found
  }

  #call<T>(
    pid: Pid,
    operation: Operation,
    location: string,
    effect: (fault: FaultKind | undefined, number: number) => T,
  ): Promise<T> {
    const world = this.#world
    const number = this.#calls
    this.#calls += 1
    const up = 1 + (drawAt(this.#seed, 2 * number) % 12)
    const down = 1 + (drawAt(this.#seed, 2 * number + 1) % 12)
    const { fault, ms } = this.#faultOf(pid, operation, number)
    if (fault !== undefined) this.#note(fault, pid, operation, location)
    return new Promise<T>((resolve, reject) => {
      const noAnswer = (delay: number): void => {
        world.later(pid, delay, () => {
          reject(new SluiceError('STORE_UNAVAILABLE', `${location}: no answer`))
        })
      }
      const inStore = (delay: number, reply: (answer: () => void) => void): void => {
        world.later(nobody, delay, () => {
          try {
            const value = effect(fault, number)
            reply(() => {
              resolve(value)
            })
          } catch (error) {
            reply(() => {
              reject(error instanceof Error ? error : new Error(String(error)))
            })
          }
        })
      }
      if (world.now < this.#stormUntil.time && drawAt(this.#seed, 7919 + number) % 10 < 7) {
        this.#note('503', pid, operation, location)
        noAnswer(up + down)
        return
      }
      switch (fault) {
        case 'reject-before':
          noAnswer(up + down)
          return
        case 'lost-reply':
        case 'delayed-apply':
          inStore(fault === 'lost-reply' ? up : timeoutMs + ms, () => undefined)
          noAnswer(timeoutMs)
          return
        default:
          inStore(up + (fault === 'slow' ? Math.floor(ms / 4) : 0), (answer) => {
            world.later(pid, down, answer)
          })
      }
    })
  }

  #faultOf(
    pid: Pid,
    operation: Operation,
    number: number,
  ): { readonly fault: FaultKind | undefined; readonly ms: number } {
    if (operation === 'create') this.#creates += 1
    if (this.#isHealed) return { fault: undefined, ms: 0 }
    const ofCreate = operation === 'create' ? this.#createFaults.get(this.#creates) : undefined
    const planned = ofCreate ?? this.#faults.get(number)
    const next = this.#following.get(pid)?.shift()
    if (ofCreate?.then !== undefined) this.#following.set(pid, [...ofCreate.then])
    const kind = planned?.kind ?? next
    const isMeant = kind !== undefined && faultsOf[operation].includes(kind)
    return { fault: isMeant ? kind : undefined, ms: planned?.ms ?? 1_000 }
  }

  #put(location: string, body: Uint8Array): void {
    const before = this.#objects.get(location)?.body
    const { now } = this.#world
    this.#objects.set(location, { body, modifiedAt: millis(now), bornAt: now })
    this.#watcher.wrote(location, body, before)
  }

  #refuseFull(location: string): void {
    if (this.#world.now >= this.#fullUntil.time) return
    this.#watcher.fault('disk-full')
    throw new SluiceError('DISK_FULL', `${location}: no space left`)
  }

  #note(kind: string, pid: Pid, operation: Operation, location: string): void {
    this.#watcher.fault(kind)
    if (this.#world.isRecording) {
      this.#world.say(`process ${pid}  ${operation} ${shown(location)}  ${kind}`)
    }
  }
}

/** Only what steers the swap is read stale: data is asked for by names nobody else used. */
function isOfRegister(location: string): boolean {
  return /\/metadata\/v[^/]*$/.test(location)
}

function firstVersionBeside(location: string): string {
  return location.replace(/\/[^/]*$/, '/v1.metadata.json')
}

function shown(location: string): string {
  return location.replace(/^.*\/(?=[^/]*$)/, '')
}

/** A cut that its reader can see: no store may hand out fewer bytes than it announced. */
function cut(body: Uint8Array, chance: number): Uint8Array {
  return body.subarray(0, Math.min(Math.max(0, body.length - 1), 3 + (chance % 60)))
}

/** Bytes that are no JSON, no Avro and no number any more. */
function garbled(body: Uint8Array): Uint8Array {
  const copy = new Uint8Array(body)
  copy.fill(0xff, 0, Math.min(3, copy.length))
  return copy
}

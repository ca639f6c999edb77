import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { formatTableName } from '../../core/table-name.ts'
import type { TieringEvent } from '../../sink/job/events.ts'
import type { RunningJob } from '../../sink/job/options.ts'
import type { OpenedLake } from '../open-lake.ts'
import {
  dividedMemory,
  isPassing,
  type SessionPorts,
  type SessionTable,
  TieringSession,
} from '../tiering-session.ts'
import { diskNeeded } from './disk-need.ts'
import type { IngestContext } from './ingest-input.ts'
import { lakeNotes } from './lake-notes.ts'
import { Quarantine } from './quarantine.ts'
import { readInputs } from './read-inputs.ts'
import { type ReceiptBuilder, recordsBefore } from './receipt-builder.ts'
import { kvSession } from './kv-session.ts'
import type { Target } from './target.ts'
import type { Receipt, TierHooks, TierRequest } from './tier-types.ts'

/** Rounds of one table that may fail in a row, by causes that pass, before the run ends. */
const failuresMax = 3

/** One attempt: a session, its job, and the inputs appended one after the other. */
export class Attempt {
  readonly #request: TierRequest
  readonly #hooks: TierHooks
  readonly #target: Target
  readonly #receipt: ReceiptBuilder
  readonly #ports: SessionPorts
  readonly #session: TieringSession
  readonly #quarantine: Quarantine
  readonly #name: string
  /** Ends reading and waiting appends: the user's signal, or a failure of the table. */
  readonly #stop = new AbortController()
  #opened: SessionTable | undefined
  #job: RunningJob | undefined
  #inputsEnded = false
  #isResumingTold = false
  #failures = 0
  #failure: SluiceError | undefined
  #wake: () => void = () => undefined

  constructor(
    request: TierRequest,
    hooks: TierHooks,
    ports: SessionPorts,
    lake: OpenedLake,
    target: Target,
    receipt: ReceiptBuilder,
  ) {
    this.#request = request
    this.#hooks = hooks
    this.#ports = ports
    this.#target = target
    this.#receipt = receipt
    this.#name = formatTableName(request.table)
    this.#session = new TieringSession(
      {
        lake,
        ...dividedMemory(request.memoryBytes),
        readers: request.readers,
        ...(request.encoder === undefined ? {} : { encoder: request.encoder }),
        ...(request.kv === undefined ? {} : { kv: kvSession(request.kv) }),
      },
      ports,
    )
    this.#quarantine = new Quarantine(lake.store, lake.warehouse, target.folder)
  }

  /** @returns what ended it early, or undefined when everything is in the lake. */
  async toTheEnd(): Promise<SluiceError | undefined> {
    const { signal } = this.#hooks
    const onAbort = (): void => {
      this.#stop.abort()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      const opened = await this.#open()
      const refused = await readInputs({
        context: this.#ingest(opened),
        receipt: this.#receipt,
        stop: this.#stop,
      })
      this.#inputsEnded = true
      if (signal.aborted) return await this.#stopEarly(opened)
      await this.#drain(opened)
      return this.#failure ?? refused
    } catch (error) {
      if (!isSluiceError(error)) throw error
      return this.#failure ?? error
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#stop.abort()
      await this.#job?.stop(0)
      this.#session.close()
      await this.#session.closeStores()
    }
  }

  receipt(error: SluiceError | undefined, seconds: number): Receipt {
    const opened = this.#opened
    if (opened === undefined)
      throw error ?? new SluiceError('INVARIANT_BROKEN', 'nothing was opened')
    return this.#receipt.build({
      opened,
      name: this.#name,
      warehouse: this.#request.warehouse,
      ends: this.#session.source.committedEnds(opened.table.id),
      seconds,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      quarantined: this.#quarantine.count,
      quarantineFolder: this.#quarantine.folder,
      error,
    })
  }

  /** What tiering the rest of the log takes on a disk at most; undefined when nothing was opened. */
  async diskNeeded(): Promise<number | undefined> {
    return this.#opened && (await diskNeeded(this.#session.source, this.#opened))
  }

  async #open(): Promise<SessionTable> {
    const { definition, lake, freshnessMs } = this.#target
    const opened = await this.#session.openTable({
      name: this.#name,
      lake,
      definition: { ...definition, freshnessMs },
      start: this.#request.follow ? 'goes-on' : 'waits-one-freshness',
    })
    this.#opened = opened
    this.#tellNotes(lakeNotes(this.#name, opened))
    this.#session.listen((event) => {
      this.#hear(event, opened)
    })
    this.#session.source.onGrown(() => {
      this.#tellResuming(opened)
      this.#wantRound(opened)
    })
    this.#job = this.#session.start(() => this.#inputsEnded)
    this.#job.done.catch((error: unknown) => {
      this.#fail(
        isSluiceError(error)
          ? error
          : new SluiceError('INVARIANT_BROKEN', String(error), { cause: error }),
      )
    })
    return opened
  }

  #ingest(opened: SessionTable): IngestContext {
    return {
      request: this.#request,
      hooks: this.#hooks,
      clock: this.#ports.clock,
      name: this.#name,
      opened,
      source: this.#session.source,
      quarantine: this.#quarantine,
      signal: this.#stop.signal,
      known: new Map(opened.resumed?.inputs),
      waiting: this.#target.waiting,
      fields: this.#target.definition.schema.fields,
      bucketKey: this.#target.definition.bucketKey,
      primaryKey: this.#target.definition.primaryKey,
      progress: () => ({
        committed: this.#receipt.rows,
        round: this.#receipt.rounds.at(-1)?.round ?? opened.resumed?.round ?? 0,
      }),
    }
  }

  /** Asks for rounds until the lake holds everything that was appended. */
  async #drain(opened: SessionTable): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined) return
      if (this.#session.source.endsAt(opened.table.id, new Map())) return
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#session.coordinator.trigger(opened.table.id)
      await woken
    }
  }

  async #stopEarly(opened: SessionTable): Promise<SluiceError | undefined> {
    if (!this.#session.source.endsAt(opened.table.id, new Map())) {
      this.#session.coordinator.trigger(opened.table.id)
    }
    const time = this.#request.shutdownTimeoutMs
    const waited = new AbortController()
    const timeout = this.#ports.clock.sleep(time, { signal: waited.signal }).catch(() => undefined)
    await Promise.race([this.#drain(opened), timeout])
    waited.abort()
    const report = await this.#job?.stop(0)
    if (this.#failure !== undefined) return this.#failure
    const isWhole = this.#session.source.endsAt(opened.table.id, new Map())
    if (isWhole && this.#request.follow) return undefined
    const abandoned = report?.abandoned.some((round) => round.effect === 'unknown') === true
    if (abandoned) {
      return new SluiceError('COMMIT_UNKNOWN', `${this.#name}: stopped while a commit was out`, {
        fix: 'run again: it reads the lake and goes on from the truth',
      })
    }
    return new SluiceError(
      'STOPPED',
      `${this.#name}: interrupted before all input was in the lake`,
      {
        fix: 'run again: it goes on where it stopped',
      },
    )
  }

  #hear(event: TieringEvent, opened: SessionTable): void {
    switch (event.event) {
      case 'committed':
        this.#failures = 0
        this.#hooks.onEvent({
          event: 'committed',
          table: this.#name,
          ...this.#receipt.addRound(event),
        })
        this.#wantRound(opened)
        this.#wake()
        break
      case 'rejected':
        this.#failures += 1
        if (!isPassing(event.error) || this.#failures >= failuresMax) this.#fail(event.error)
        break
      case 'state':
        // A round that found nothing new is over as well.
        if (event.state === 'Tiered' || event.state === 'Scheduled') this.#wake()
        break
      default:
    }
  }

  /** Each once, also when the run starts over. */
  #tellNotes(messages: readonly string[]): void {
    for (const message of messages) {
      if (this.#receipt.notes.includes(message)) continue
      this.#receipt.notes.push(message)
      this.#hooks.onEvent({ event: 'note', message })
    }
  }

  /** Said once there is something new: a run that adds nothing fences nobody. */
  #tellResuming(opened: SessionTable): void {
    const { held, resumed, version } = opened
    if (this.#isResumingTold || !held.fenceFirst || resumed === undefined) return
    this.#isResumingTold = true
    const records = recordsBefore(opened)
    const fenced = version.claim?.token.incarnation
    this.#hooks.onEvent({
      event: 'resuming',
      table: this.#name,
      records,
      round: resumed.round,
      ...(fenced === undefined ? {} : { fenced }),
    })
  }

  /** Memory that runs short starts a round, whatever freshness says. */
  #wantRound(opened: SessionTable): void {
    if (this.#session.source.isHalfFull(opened.table.id)) {
      this.#session.coordinator.trigger(opened.table.id)
    }
  }

  #fail(error: SluiceError): void {
    this.#failure ??= error
    this.#stop.abort()
    this.#wake()
  }
}

import { SluiceError } from '../../core/errors.ts'
import { BadRecords, type BadRecordRules, type Before } from './bad-records.ts'
import { endsEarly, orDamage } from './damage.ts'
import { BatchText } from './batch-text.ts'
import type {
  BadLine,
  InputBatch,
  InputChanges,
  InputFormat,
  InputLimits,
  InputReader,
} from './input.ts'
import type { InputBytes } from './input-bytes.ts'
import type { PrefixHash } from './prefix-hash.ts'
import { countLines, type ParseStop, type RecordParser } from './record-parser.ts'
import { TextWindow } from './text-window.ts'

/** Bytes of one record, unless something else is asked for. */
export const recordBytesDefault = 64 * 1024 * 1024
/** What is kept of a record that is too long to be held. */
const keptBytes = 4096

export type TextReaderOptions = BadRecordRules & {
  readonly bytes: InputBytes
  readonly format: InputFormat
  readonly parser: RecordParser
  readonly limits: InputLimits
  /** A growing input: its last line waits for the newline. */
  readonly follow: boolean
  /** The text of a batch is kept with it, since its records may be refused later. */
  readonly keepsText?: boolean
  /** Line 1 names the columns. */
  readonly hasHeader?: boolean
  /** Where reading goes on: everything before is in `hash`. */
  readonly start: {
    readonly position: bigint
    readonly records: bigint
    readonly lines: bigint
    readonly hash: PrefixHash
    /** Bytes of the input behind `position` that are read already. */
    readonly rest: Uint8Array
    readonly awaitsNewline: boolean
  }
}

/**
 * Reads text from its start or from a resume point, batch after batch. The end of a batch depends on
 * the text alone, never on how it arrives, except under `follow`, where what is there is handed out.
 */
export class TextReader implements InputReader {
  readonly name: string
  readonly format: InputFormat
  readonly #options: TextReaderOptions
  readonly #recordBytesMax: number
  readonly #window: TextWindow
  readonly #badRecords: BadRecords
  /** Over everything before `#position`. */
  #hash: PrefixHash
  #position: bigint
  #records: bigint
  #lines: bigint
  #awaitsNewline: boolean
  #endedWithoutNewline = false
  #done = false
  /** Said once everything before it was handed out. */
  #failure: SluiceError | undefined
  #isTold = false
  /** Of the batch being read, where its records may be refused after all. */
  #text: BatchText | undefined

  constructor(options: TextReaderOptions) {
    const { start, bytes } = options
    this.#options = options
    this.name = bytes.name
    this.format = options.format
    this.#recordBytesMax = options.limits.recordBytesMax ?? recordBytesDefault
    this.#window = new TextWindow(bytes, start.rest, options.follow)
    this.#badRecords = new BadRecords(this.name, options)
    this.#hash = start.hash
    this.#position = start.position
    this.#records = start.records
    this.#lines = start.lines
    this.#awaitsNewline = start.awaitsNewline
  }

  progress(): { bytesRead: number; bytesTotal: number | undefined } {
    const { bytesRead, bytesTotal } = this.#options.bytes
    return { bytesRead, bytesTotal }
  }

  async next(): Promise<InputBatch | undefined> {
    if (this.#failure !== undefined) throw await this.#told(this.#failure)
    if (this.#done) return undefined
    const startPosition = this.#position
    const startRecord = this.#records
    const bad: BadLine[] = []
    await this.#begin()
    this.#keepText()
    const failure = await this.#read(bad, startPosition)
    this.#failure = failure
    const hasSome = this.#records > startRecord || bad.length > 0
    if (failure !== undefined && !hasSome) throw await this.#told(failure)
    return this.#batch(startPosition, startRecord, bad)
  }

  async close(): Promise<void> {
    this.#done = true
    await this.#options.bytes.close()
  }

  /** Reads one batch. @returns what ends reading behind it, if anything does */
  async #read(bad: BadLine[], startPosition: bigint): Promise<SluiceError | undefined> {
    const { limits, parser } = this.#options
    const window = this.#window
    const startRecord = this.#records
    let room = limits.batchRecordsMax ?? 8192
    const endAt = startPosition + BigInt(limits.batchBytesMax ?? 4 * 1024 * 1024)
    for (;;) {
      const { stop, isCapped } = this.#parse(room, endAt)
      room -= stop.records
      const failure = stop.bad === undefined ? undefined : this.#setAside(stop.bad, stop, bad)
      if (failure !== undefined) {
        this.#consume(stop.bad?.from ?? stop.at, stop.records, 0)
        return failure
      }
      const isStuck = stop.at === window.from
      this.#consume(stop.at, stop.records, stop.lines)
      const isOpen = parser.isOpen === true
      if ((room <= 0 || this.#position >= endAt) && !isOpen) return undefined
      if (stop.why !== 'more' || (isCapped && !isStuck)) continue
      const hasSome = this.#records > startRecord || bad.length > 0
      if (isCapped) {
        // What is before it is handed out first: until its end is found, nothing of it counts.
        if (hasSome) return undefined
        const tooLong = await this.#passOver(bad)
        if (tooLong !== undefined || this.#position >= endAt) return tooLong
        continue
      }
      if (window.end !== 'none') return this.#ended()
      if (window.isIdle && hasSome && !isOpen) return undefined
      await window.fill()
    }
  }

  /** Parses what is there, but never more of one record than it may have. */
  #parse(room: number, endAt: bigint): { readonly stop: ParseStop; readonly isCapped: boolean } {
    const window = this.#window
    window.checkText()
    const to = Math.min(window.to, window.from + this.#recordBytesMax + 1)
    const isCapped = to < window.to
    const stop = this.#options.parser.parse(window.data, {
      from: window.from,
      to,
      final: window.end === 'whole' && !isCapped,
      recordsMax: Math.max(1, room),
      stopAt: window.from + Number(endAt - this.#position),
      line: Number(this.#lines) + 1,
      doubtful: window.isDoubtful,
    })
    return { stop, isCapped }
  }

  /** No whole record is left, and nothing more comes. */
  #ended(): SluiceError | undefined {
    const { failure } = this.#window
    if (failure === undefined) {
      this.#done = true
      return undefined
    }
    const place = { line: this.#lines + 1n, column: 1, byte: this.#position }
    return endsEarly(this.#options.bytes, failure, place, this.#before(0))
  }

  /** The failure, once it was found out whether something else is behind it. */
  async #told(failure: SluiceError): Promise<SluiceError> {
    if (!this.#isTold && this.#window.failure === undefined) {
      this.#failure = await orDamage(this.#options.bytes, failure)
    }
    this.#isTold = true
    return this.#failure ?? failure
  }

  #before(records: number): Before {
    const { hasHeader, keepsText } = this.#options
    return {
      // A record may be several changes, or none, which is what is counted then.
      records: keepsText === true ? undefined : this.#records + BigInt(records),
      firstLine: hasHeader === true ? 2n : 1n,
    }
  }

  #keepText(): void {
    if (this.#options.keepsText !== true) return
    this.#text = new BatchText(this.#position, this.#lines, this.#hash.copy())
  }

  #batch(startPosition: bigint, startRecord: bigint, bad: readonly BadLine[]): InputBatch {
    const { digest, blocks } = this.#hash.here()
    const { records, precisionLosses, changes } = this.#options.parser.take()
    const text = this.#text
    this.#text = undefined
    return {
      records,
      precisionLosses,
      ...(changes === undefined || text === undefined
        ? {}
        : { changes: { ...changes, refuse: this.#refuserOf(changes.lines, text) } }),
      startRecord,
      startPosition,
      endPosition: this.#position,
      digest,
      blocks,
      bad,
      ended: this.#done,
      endedWithoutNewline: this.#done && this.#endedWithoutNewline,
    }
  }

  #refuserOf(lines: Uint32Array, text: BatchText): InputChanges['refuse'] {
    return (row, reason) => {
      const refused = text.recordOf(lines, row, reason)
      const error = this.#badRecords.judge(refused.bad, 'value', this.#before(0))
      return { ...refused, error }
    }
  }

  /** Drops a byte order mark at the start, and the newline that an unended line was waiting for. */
  async #begin(): Promise<void> {
    const window = this.#window
    if (this.#position === 0n) {
      while (window.size < 3 && window.end === 'none') await window.fill()
      const [a, b, c] = window.data.subarray(window.from, window.to)
      if (a === 0xef && b === 0xbb && c === 0xbf) this.#consume(window.from + 3, 0, 0)
      this.#endedWithoutNewline = false
    }
    if (!this.#awaitsNewline) return
    while (window.size < 2 && window.end === 'none') await window.fill()
    if (window.size === 0) {
      this.#endedWithoutNewline = true
      return
    }
    const at = window.data[window.from] === 13 ? window.from + 1 : window.from
    if (at < window.to && window.data[at] !== 10) {
      const place = this.#position.toLocaleString('en-US')
      throw new SluiceError(
        'INPUT_CHANGED',
        `${this.name}: the last record was still being written when it was tiered; it goes on at byte ${place}`,
        { fix: 'tier it as another input: --input-id NAME', details: { byte: this.#position } },
      )
    }
    this.#awaitsNewline = false
    this.#consume(Math.min(at + 1, window.to), 0, at < window.to ? 1 : 0)
  }

  #consume(at: number, records: number, lines: number): void {
    const window = this.#window
    if (at > window.from) {
      const text = window.data.subarray(window.from, at)
      this.#hash.update(text)
      this.#text?.add(text)
      this.#endedWithoutNewline = window.data[at - 1] !== 10
    }
    this.#position += BigInt(at - window.from)
    this.#records += BigInt(records)
    this.#lines += BigInt(lines)
    window.from = at
  }

  #setAside(
    { fault, from, to }: NonNullable<ParseStop['bad']>,
    stop: ParseStop,
    bad: BadLine[],
  ): SluiceError | undefined {
    const { data, from: first } = this.#window
    const before = this.#lines + BigInt(stop.lines)
    const inside = countLines(data, from, to)
    const ended = data[stop.at - 1] === 10 && stop.at > to ? 1 : 0
    const line = before - BigInt(inside + ended) + 1n
    const lineStart = fault.at > from ? data.lastIndexOf(10, fault.at - 1) + 1 : from
    const start = Math.max(from, lineStart)
    const byteAt = (index: number): bigint => this.#position + BigInt(index - first)
    const record: BadLine = {
      kind: 'line',
      line,
      place: {
        line: line + BigInt(countLines(data, from, fault.at)),
        column: Array.from(data.toString('utf8', start, fault.at)).length + 1,
        byte: byteAt(fault.at),
      },
      byte: byteAt(from),
      code: 'RECORD_REFUSED',
      reason: fault.message,
      ...(fault.fix === undefined ? {} : { fix: fault.fix }),
      raw: Uint8Array.from(data.subarray(from, to)),
    }
    const failure = this.#badRecords.judge(record, fault.kind, this.#before(stop.records))
    if (failure === undefined) bad.push(record)
    return failure
  }

  /**
   * Passes over a record that is too long, up to the end of its line, if such records are set aside.
   * @returns the error for it if they are not
   */
  async #passOver(bad: BadLine[]): Promise<SluiceError | undefined> {
    const window = this.#window
    const { data, from } = window
    const line = this.#lines + 1n
    const limit = this.#recordBytesMax.toLocaleString('en-US')
    const kept = wholeCharacters(data, from, from + Math.min(keptBytes, this.#recordBytesMax))
    const reason = `a record of more than ${limit} bytes`
    const record: BadLine = {
      kind: 'line',
      line,
      place: { line, column: 1, byte: this.#position },
      byte: this.#position,
      code: 'RECORD_REFUSED',
      reason: this.#badRecords.isSetAside('value')
        ? `${reason}, of which the first ${kept.length.toLocaleString('en-US')} are kept`
        : reason,
      raw: kept,
    }
    const failure = this.#badRecords.judge(record, 'value', this.#before(0))
    if (failure !== undefined) return failure
    if (await this.#skipLine(from + this.#recordBytesMax)) bad.push(record)
    return undefined
  }

  /**
   * Consumes up to the first newline at or behind `search`, or up to the end of the text: false if
   * neither comes. Then nothing was consumed.
   */
  async #skipLine(search: number): Promise<boolean> {
    const window = this.#window
    const hash = this.#hash.copy()
    let bytes = 0n
    let lines = 0
    let from = search
    for (;;) {
      const found = window.data.indexOf(10, from)
      const isFound = found !== -1 && found < window.to
      const to = isFound ? found + 1 : window.to
      hash.update(window.data.subarray(window.from, to))
      bytes += BigInt(to - window.from)
      lines += countLines(window.data, window.from, to)
      window.from = to
      if (isFound || window.end === 'whole') {
        this.#hash = hash
        this.#position += bytes
        this.#lines += BigInt(lines)
        this.#endedWithoutNewline = !isFound
        this.#keepText()
        return true
      }
      if (window.end === 'open') return false
      await window.fill()
      from = window.from
    }
  }
}

/** Bytes from `from` on, up to `to` or a little less, so that they do not end inside a character. */
function wholeCharacters(data: Buffer, from: number, to: number): Uint8Array {
  let end = to
  while (end > to - 3 && ((data[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return Uint8Array.from(data.subarray(from, end))
}

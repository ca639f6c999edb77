import { isUtf8 } from 'node:buffer'
import { SluiceError } from '../../core/errors.ts'
import type {
  BadRecord,
  InputBatch,
  InputFormat,
  InputLimits,
  InputReader,
  RecordPolicy,
} from './input.ts'
import { type InputBytes, idle } from './input-bytes.ts'
import { countLines, type ParseStop, type RecordParser } from './record-parser.ts'
import { BatchText } from './batch-text.ts'
import type { PrefixHash } from './prefix-hash.ts'
import { placeText, recordRefused } from './refused.ts'

export type TextReaderOptions = {
  readonly bytes: InputBytes
  readonly format: InputFormat
  readonly parser: RecordParser
  readonly onBadRecord: RecordPolicy
  readonly onUnknownField: RecordPolicy
  /** Quarantined records after which the run stops. */
  readonly badRecordsMax: number
  readonly limits: InputLimits
  /** The text of a batch is kept with it, since its records may be refused later. */
  readonly keepsText?: boolean
  /** A growing input: its last line waits for the newline. */
  readonly follow: boolean
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
  #data: Buffer
  #from = 0
  #to = 0
  /** Text up to here has been looked at for bytes that are not UTF-8. */
  #checkedTo = 0
  #doubtful = false
  #final = false
  #idle = false
  #position: bigint
  #records: bigint
  #lines: bigint
  #badCount = 0
  #awaitsNewline: boolean
  #endedWithoutNewline = false
  #done = false
  #failure: SluiceError | undefined
  /** Of the batch being read, where its records may be refused after all. */
  #text: BatchText | undefined

  constructor(options: TextReaderOptions) {
    const { start } = options
    this.#options = options
    this.name = options.bytes.name
    this.format = options.format
    this.#recordBytesMax = options.limits.recordBytesMax ?? 64 * 1024 * 1024
    this.#data = Buffer.allocUnsafeSlow(Math.max(start.rest.length + 1, 1024 * 1024))
    this.#data.set(start.rest)
    this.#to = start.rest.length
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
    if (this.#failure !== undefined) throw this.#failure
    if (this.#done) return undefined
    const { limits, parser } = this.#options
    const startPosition = this.#position
    const startRecord = this.#records
    const bad: BadRecord[] = []
    let room = limits.batchRecordsMax ?? 8192
    const endAt = startPosition + BigInt(limits.batchBytesMax ?? 4 * 1024 * 1024)
    await this.#begin()
    if (this.#options.keepsText === true) {
      this.#text = new BatchText(this.#position, this.#lines, this.#options.start.hash.copy())
    }
    for (;;) {
      this.#checkText()
      const stop = parser.parse(this.#data, {
        from: this.#from,
        to: this.#to,
        final: this.#final,
        recordsMax: Math.max(1, room),
        stopAt: this.#from + Number(endAt - this.#position),
        doubtful: this.#doubtful,
      })
      room -= stop.records
      if (stop.bad !== undefined) this.#setAside(stop, bad)
      const failure = this.#failureSoFar()
      if (failure !== undefined) {
        if (this.#records + BigInt(stop.records) === startRecord && bad.length === 0) {
          throw failure
        }
        this.#consume(stop.bad?.from ?? stop.at, stop.records, 0)
        break
      }
      this.#consume(stop.at, stop.records, stop.lines)
      const isOpen = parser.isOpen === true
      if ((room <= 0 || this.#position >= endAt) && !isOpen) break
      if (stop.why !== 'more') continue
      if (this.#final) {
        this.#done = true
        break
      }
      const hasSome = this.#records > startRecord || bad.length > 0
      if (this.#idle && hasSome && !isOpen) break
      if (this.#to - this.#from > this.#recordBytesMax) {
        this.#failure = this.#tooLong()
        if (hasSome) break
        throw this.#failure
      }
      await this.#fill()
    }
    return this.#batch(startPosition, startRecord, bad)
  }

  async close(): Promise<void> {
    this.#done = true
    await this.#options.bytes.close()
  }

  #failureSoFar(): SluiceError | undefined {
    return this.#failure
  }

  #batch(startPosition: bigint, startRecord: bigint, bad: readonly BadRecord[]): InputBatch {
    const { digest, blocks } = this.#options.start.hash.here()
    const { records, precisionLosses, changes } = this.#options.parser.take()
    const text = this.#text
    this.#text = undefined
    return {
      records,
      precisionLosses,
      ...(changes === undefined || text === undefined
        ? {}
        : {
            changes: {
              ...changes,
              refuse: (row: number, reason: string) => {
                const refused = text.recordOf(changes.lines, row, reason)
                const error = this.#limited(refused.bad, 'value')
                return { ...refused, error }
              },
            },
          }),
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

  /** Drops a byte order mark at the start, and the newline that an unended line was waiting for. */
  async #begin(): Promise<void> {
    if (this.#position === 0n) {
      while (this.#to - this.#from < 3 && !this.#final) await this.#fill()
      const [a, b, c] = this.#data.subarray(this.#from, this.#to)
      if (a === 0xef && b === 0xbb && c === 0xbf) this.#consume(this.#from + 3, 0, 0)
      this.#endedWithoutNewline = false
    }
    if (!this.#awaitsNewline) return
    while (this.#to - this.#from < 2 && !this.#final) await this.#fill()
    if (this.#from === this.#to) {
      this.#endedWithoutNewline = true
      return
    }
    const at = this.#data[this.#from] === 13 ? this.#from + 1 : this.#from
    if (at < this.#to && this.#data[at] !== 10) {
      const place = this.#position.toLocaleString('en-US')
      throw new SluiceError(
        'INPUT_CHANGED',
        `${this.name}: the last record was still being written when it was tiered; it goes on at byte ${place}`,
        { fix: 'tier it as another input: --input-id NAME', details: { byte: this.#position } },
      )
    }
    this.#awaitsNewline = false
    this.#consume(Math.min(at + 1, this.#to), 0, at < this.#to ? 1 : 0)
  }

  #consume(at: number, records: number, lines: number): void {
    if (at > this.#from) {
      const text = this.#data.subarray(this.#from, at)
      this.#options.start.hash.update(text)
      this.#text?.add(text)
      this.#endedWithoutNewline = this.#data[at - 1] !== 10
    }
    this.#position += BigInt(at - this.#from)
    this.#records += BigInt(records)
    this.#lines += BigInt(lines)
    this.#from = at
  }

  #setAside(stop: ParseStop, bad: BadRecord[]): void {
    const { bad: found } = stop
    if (found === undefined) return
    const { fault, from, to } = found
    const before = this.#lines + BigInt(stop.lines)
    const inside = countLines(this.#data, from, to)
    const ended = this.#data[stop.at - 1] === 10 && stop.at > to ? 1 : 0
    const line = before - BigInt(inside + ended) + 1n
    const lineStart = fault.at > from ? this.#data.lastIndexOf(10, fault.at - 1) + 1 : from
    const start = Math.max(from, lineStart)
    const byteAt = (index: number): bigint => this.#position + BigInt(index - this.#from)
    const record: BadRecord = {
      line,
      place: {
        line: line + BigInt(countLines(this.#data, from, fault.at)),
        column: Array.from(this.#data.toString('utf8', start, fault.at)).length + 1,
        byte: byteAt(fault.at),
      },
      byte: byteAt(from),
      code: 'RECORD_REFUSED',
      reason: fault.message,
      ...(fault.fix === undefined ? {} : { fix: fault.fix }),
      raw: Uint8Array.from(this.#data.subarray(from, to)),
    }
    this.#failure = this.#limited(record, fault.kind)
    if (this.#failure === undefined) bad.push(record)
  }

  /** What a run ends with at a bad record; undefined where it is set aside. */
  #limited(record: BadRecord, kind: 'value' | 'unknown-field'): SluiceError | undefined {
    const { onBadRecord, onUnknownField, badRecordsMax } = this.#options
    const policy = kind === 'unknown-field' ? onUnknownField : onBadRecord
    this.#badCount += 1
    if (policy === 'fail') return recordRefused(this.name, record, kind)
    if (this.#badCount <= badRecordsMax) return undefined
    const { line } = record
    const count = badRecordsMax.toLocaleString('en-US')
    return new SluiceError(
      'LIMIT_EXCEEDED',
      `${this.name} line ${String(line)}: over ${count} bad records, the last: ${record.reason}`,
      { fix: 'correct the input, or raise --bad-records-max', details: { line } },
    )
  }

  /** What is before the record is handed out first; it cannot be set aside, since its end is not known. */
  #tooLong(): SluiceError {
    const line = this.#lines + 1n
    const at = `${this.name} line ${String(line)}`
    const place = { line, column: 1, byte: this.#position }
    return new SluiceError(
      'RECORD_REFUSED',
      `${at}: a record of more than ${this.#recordBytesMax.toLocaleString('en-US')} bytes`,
      {
        where: placeText(this.name, place),
        fix: 'shorten the record or take it out, and run the same command again',
        details: { input: this.name, recordLine: line, ...place },
      },
    )
  }

  /** Looks once at all whole lines for bytes that are not UTF-8. */
  #checkText(): void {
    if (this.#from >= this.#checkedTo) this.#doubtful = false
    const from = Math.max(this.#from, this.#checkedTo)
    const last = this.#to > from ? this.#data.lastIndexOf(10, this.#to - 1) + 1 : from
    const to = this.#final ? this.#to : Math.max(from, last)
    if (to > from && !isUtf8(this.#data.subarray(from, to))) this.#doubtful = true
    this.#checkedTo = to
  }

  async #fill(): Promise<void> {
    const chunk = await this.#options.bytes.read()
    this.#idle = chunk === idle
    if (chunk === undefined) {
      // What was cut off under `follow` stays for the next run.
      this.#final = true
      if (this.#options.follow) this.#to = this.#from
      return
    }
    this.#makeRoom(chunk.length)
    this.#data.set(chunk, this.#to)
    this.#to += chunk.length
  }

  /** Room for `size` more bytes and one sentinel. */
  #makeRoom(size: number): void {
    if (this.#to + size + 1 <= this.#data.length) return
    const kept = this.#to - this.#from
    const need = kept + size + 1
    const target =
      need <= this.#data.length
        ? this.#data
        : Buffer.allocUnsafeSlow(Math.max(need, 2 * this.#data.length))
    target.set(this.#data.subarray(this.#from, this.#to))
    this.#data = target
    this.#checkedTo = Math.max(0, this.#checkedTo - this.#from)
    this.#from = 0
    this.#to = kept
  }
}

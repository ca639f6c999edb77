import { RecordFault } from './record-fault.ts'

const quote = 34
const newline = 10
const carriage = 13

/**
 * Cuts one record of RFC 4180 text into fields, without copying. `bounds` has three numbers a field:
 * first byte, end, and 0 for unquoted, 1 for quoted, 2 for quoted with doubled quotes inside.
 */
export class CsvScanner {
  readonly delimiter: number
  bounds = new Int32Array(96)
  fields = 0
  /** After `scan`: where the record's text ends, and where the next record begins. */
  end = 0
  next = 0
  /** Newlines in `[from, next)`, after a scan that found a record. */
  lines = 0

  /** @param delimiter One ASCII character; see `checkedCsv`. */
  constructor(delimiter: string) {
    this.delimiter = delimiter.charCodeAt(0)
  }

  /**
   * Scans the record at `from`: false when the text up to `to` does not hold all of it. `final` says
   * that nothing follows; the last line then ends with `to`.
   * @throws RecordFault, with `end` and `next` set, for a quote that is out of place
   */
  scan(data: Buffer, from: number, to: number, final: boolean): boolean {
    this.fields = 0
    this.lines = 0
    let at = from
    for (;;) {
      const first = at
      if (data[at] === quote && at < to) {
        at = this.#quoted(data, at, to, final)
        if (at === -1) return false
      } else {
        let byte = newline
        while (at < to) {
          byte = data[at] ?? newline
          if (byte === this.delimiter || byte === newline || byte === quote) break
          at += 1
        }
        if (at < to && byte === quote) {
          if (!final && !hasNewline(data, at, to)) return false
          throw this.#fault(data, at, to, 'a quote inside a field that does not begin with one')
        }
        if (at === to && !final) return false
        const isLast = at === to || byte === newline
        const cut = isLast && at > first && data[at - 1] === carriage ? at - 1 : at
        this.#add(first, cut, 0)
      }
      if (at >= to || data[at] === newline) {
        this.end = at > from && data[at - 1] === carriage ? at - 1 : at
        this.next = Math.min(at + 1, to)
        if (at < to) this.lines += 1
        return true
      }
      at += 1
    }
  }

  /** Index of the delimiter or newline after the quoted field at `at`, or -1: not there yet. */
  #quoted(data: Buffer, start: number, to: number, final: boolean): number {
    let kind = 1
    let at = start + 1
    for (;;) {
      let close = at
      for (; close < to; close += 1) {
        const byte = data[close]
        if (byte === quote) break
        if (byte === newline) this.lines += 1
      }
      if (close === to) {
        if (!final) return -1
        this.end = to
        this.next = to
        throw new RecordFault(start, 'a quoted field is not closed')
      }
      if (close + 1 >= to && !final) return -1
      if (close + 1 < to && data[close + 1] === quote) {
        kind = 2
        at = close + 2
        continue
      }
      this.#add(start + 1, close, kind)
      at = close + 1
      if (at >= to) return to
      if (data[at] === carriage) {
        if (at + 1 >= to) return final ? to : -1
        if (data[at + 1] === newline) return at + 1
      }
      if (data[at] === this.delimiter || data[at] === newline) return at
      // The record's end is only a guess now: the end of the line that the fault is in.
      if (!final && !hasNewline(data, at, to)) return -1
      throw this.#fault(data, at, to, 'text after a closing quote')
    }
  }

  #add(from: number, to: number, kind: number): void {
    const base = this.fields * 3
    if (base + 3 > this.bounds.length) {
      const grown = new Int32Array(this.bounds.length * 2)
      grown.set(this.bounds)
      this.bounds = grown
    }
    this.bounds[base] = from
    this.bounds[base + 1] = to
    this.bounds[base + 2] = kind
    this.fields += 1
  }

  #fault(data: Buffer, at: number, to: number, reason: string): RecordFault {
    const found = data.indexOf(newline, at)
    const line = found === -1 || found >= to ? to : found
    this.end = line
    this.next = Math.min(line + 1, to)
    return new RecordFault(at, reason)
  }
}

function hasNewline(data: Buffer, from: number, to: number): boolean {
  const line = data.indexOf(newline, from)
  return line !== -1 && line < to
}

/** The field's text; doubled quotes become one. */
export function fieldText(data: Buffer, from: number, to: number, kind: number): string {
  const text = data.toString('utf8', from, to)
  return kind === 2 ? text.replaceAll('""', '"') : text
}

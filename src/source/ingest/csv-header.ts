import { isUtf8 } from 'node:buffer'
import { SluiceError } from '../../core/errors.ts'
import { didYouMean } from '../../core/suggest.ts'
import { CsvScanner, fieldText } from './csv-scanner.ts'
import type { CsvOptions, InputTarget, RecordPolicy } from './input.ts'
import type { InputBytes } from './input-bytes.ts'
import { defaultDelimiter } from './input-format.ts'
import { RecordFault, shown } from './record-fault.ts'

/** A header must lie within this many bytes. */
const headerBytesMax = 1024 * 1024

export type CsvShape = {
  readonly delimiter: string
  readonly hasHeader: boolean
  readonly nullText: string
  /** Names of the columns; absent when there is no header and the input's width is not known. */
  readonly names: readonly string[] | undefined
}

/**
 * Looks at the first record of a CSV input without taking it.
 * @throws SluiceError CONFIG_INVALID for a delimiter that cannot be one, INPUT_UNREADABLE for a
 * header that cannot be read or was written with another delimiter
 */
export async function csvShape(bytes: InputBytes, options: CsvOptions): Promise<CsvShape> {
  const delimiter = checkedDelimiter(options.delimiter ?? defaultDelimiter(bytes.name))
  const hasHeader = options.header ?? true
  const nullText = options.nullText ?? ''
  const first = await firstRecord(bytes, delimiter)
  if (!hasHeader) {
    const names = first?.map((_, index) => `column${index + 1}`)
    return { delimiter, hasHeader, nullText, names }
  }
  if (first === undefined) return { delimiter, hasHeader, nullText, names: undefined }
  refuseHeader(bytes.name, first, options)
  return { delimiter, hasHeader, nullText, names: first }
}

function checkedDelimiter(delimiter: string): string {
  if (/^[\t -~]$/.test(delimiter) && !/[A-Za-z0-9"+.-]/.test(delimiter)) return delimiter
  throw new SluiceError(
    'CONFIG_INVALID',
    `--csv-delimiter ${JSON.stringify(delimiter)}: not a delimiter`,
    { fix: 'one character such as , ; | or a tab' },
  )
}

async function firstRecord(
  bytes: InputBytes,
  delimiter: string,
): Promise<readonly string[] | undefined> {
  const scanner = new CsvScanner(delimiter)
  for (let size = 65_536; ; size *= 4) {
    const head = await bytes.head(size)
    const final = head.length < size && bytes.failure === undefined
    let from = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0
    while (from < head.length && (head[from] === 10 || head[from] === 13)) from += 1
    if (from === head.length && final) return undefined
    try {
      if (scanner.scan(head, from, head.length, final)) {
        if (!isUtf8(head.subarray(from, scanner.end))) throw unreadable(bytes.name, 'not UTF-8')
        return namesOf(scanner, head)
      }
    } catch (error) {
      if (error instanceof RecordFault) throw unreadable(bytes.name, error.message)
      throw error
    }
    if (bytes.failure !== undefined) throw bytes.failure
    if (size >= headerBytesMax) throw unreadable(bytes.name, 'longer than 1 MiB')
  }
}

function namesOf(scanner: CsvScanner, head: Buffer): readonly string[] {
  return Array.from({ length: scanner.fields }, (_, index) => {
    const [from = 0, to = 0, kind = 0] = scanner.bounds.subarray(3 * index, 3 * index + 3)
    return fieldText(head, from, to, kind)
  })
}

function unreadable(name: string, why: string): SluiceError {
  return new SluiceError('INPUT_UNREADABLE', `${name}: its first record is ${why}`)
}

function refuseHeader(name: string, names: readonly string[], options: CsvOptions): void {
  const [only = ''] = names
  const other = [';', '\t', '|', ','].find((sign) => only.includes(sign))
  if (names.length === 1 && other !== undefined && options.delimiter === undefined) {
    throw new SluiceError(
      'INPUT_UNREADABLE',
      `${name}: its header is one column, "${shown(only)}"`,
      {
        fix: other === '\t' ? "--csv-delimiter $'\\t'" : `--csv-delimiter '${other}'`,
      },
    )
  }
  const seen = new Map<string, string>()
  names.forEach((column, index) => {
    if (column === '') {
      throw new SluiceError(
        'INPUT_UNREADABLE',
        `${name}: column ${index + 1} of its header has no name`,
        {
          fix: 'name every column, or --csv-header no',
        },
      )
    }
    const earlier = seen.get(column.toLowerCase())
    if (earlier === column) {
      throw new SluiceError(
        'INPUT_UNREADABLE',
        `${name}: its header names "${shown(column)}" twice`,
      )
    }
    if (earlier !== undefined) {
      const both = `"${shown(earlier)}" and "${shown(column)}"`
      throw new SluiceError('INPUT_UNREADABLE', `${name}: its header's ${both} differ only by case`)
    }
    seen.set(column.toLowerCase(), column)
  })
}

/**
 * Which column of the table each field of a record belongs to; -1 for none, which a record may have
 * as long as it is null there. Without a header fields are the table's columns in order.
 * @throws SluiceError RECORD_REFUSED for a NOT NULL column, or the bucket key, that the header lacks,
 * and for a name that the table lacks unless records with a value there are set aside
 */
export function csvColumns(
  shape: CsvShape,
  target: InputTarget,
  name: string,
  onUnknownField: RecordPolicy,
): readonly number[] {
  const { fields, table } = target
  if (!shape.hasHeader) return fields.map((_, index) => index)
  const names = shape.names ?? []
  const byName = new Map(fields.map((field, index) => [field.name, index]))
  const place = { where: `${name}:1:1 (byte 0)`, details: { input: name, line: 1n } }
  for (const field of fields) {
    const isKey = field.name === target.bucketKey
    const mayLack = field.type.nullable && !isKey
    if (mayLack || names.includes(field.name) || shape.names === undefined) continue
    const is = isKey ? 'the bucket key' : 'NOT NULL'
    throw new SluiceError(
      'RECORD_REFUSED',
      `${name} line 1: ${field.name} is missing, column ${field.name} of ${table} is ${is}`,
      { ...place, fix: `add the column ${field.name}` },
    )
  }
  const unknown = names.find((column) => !byName.has(column))
  if (unknown !== undefined && onUnknownField === 'fail') {
    const near = didYouMean(unknown, byName.keys())
    throw new SluiceError(
      'RECORD_REFUSED',
      `${name} line 1: field "${shown(unknown)}" is not a column of ${table}${near}`,
      {
        ...place,
        fix: 'take the field out, or set records with a value there aside: --on-unknown-field quarantine',
      },
    )
  }
  return names.map((column) => byName.get(column) ?? -1)
}

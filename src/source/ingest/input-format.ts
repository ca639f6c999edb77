import { SluiceError } from '../../core/errors.ts'
import type { InputFormat } from './input.ts'
import type { InputBytes } from './input-bytes.ts'

const extensions: Readonly<Record<string, InputFormat>> = {
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'ndjson',
  log: 'ndjson',
  csv: 'csv',
  tsv: 'csv',
  parquet: 'parquet',
  arrow: 'arrow',
  arrows: 'arrow',
  feather: 'arrow',
  ipc: 'arrow',
}

/**
 * The format of an input: what the user says, else its extension (without `.gz` and `.zst`), else its
 * first bytes.
 * @throws SluiceError INPUT_UNREADABLE when the bytes are none of the formats, one JSON array, or text
 * in another encoding or with other line ends; DATA_CORRUPT when they cannot be unfolded
 */
export async function detectFormat(bytes: InputBytes, given?: InputFormat): Promise<InputFormat> {
  const head = await bytes.head(4096)
  const format = given ?? magic(head) ?? extensionFormat(bytes.name) ?? guess(head)
  if (format === undefined || isText(format)) refuseEncoding(bytes, head)
  if (format === undefined) {
    throw new SluiceError('INPUT_UNREADABLE', `${bytes.name}: the format cannot be told`, {
      fix: '--input-format ndjson|csv|parquet|arrow',
    })
  }
  if (format === 'ndjson') refuseArray(bytes.name, head)
  if (isText(format)) refuseLineEnds(bytes, head, format)
  return format
}

/** @throws SluiceError CONFIG_INVALID for a file that is read as a whole */
export function refuseFollowing(name: string, format: InputFormat): void {
  if (isText(format)) return
  throw new SluiceError(
    'CONFIG_INVALID',
    `${name}: ${format === 'arrow' ? 'an Arrow' : 'a Parquet'} file cannot be followed`,
    {
      fix: 'leave --follow out',
    },
  )
}

/** True for the formats that are read record by record, with bytes as positions. */
export function isText(format: InputFormat): format is 'ndjson' | 'csv' {
  return format === 'ndjson' || format === 'csv'
}

/** The tab of `.tsv`, else a comma. */
export function defaultDelimiter(name: string): string {
  return extensionOf(name) === 'tsv' ? '\t' : ','
}

function extensionFormat(name: string): InputFormat | undefined {
  return extensions[extensionOf(name)]
}

function extensionOf(name: string): string {
  const plain = name.toLowerCase().replace(/\.(gz|gzip|zst|zstd)$/, '')
  return /\.([a-z0-9]+)$/.exec(plain)?.[1] ?? ''
}

/** Bytes that nothing but Parquet or Arrow begins with win over a wrong extension. */
function magic(head: Buffer): InputFormat | undefined {
  const text = head.toString('latin1', 0, 6)
  if (text.startsWith('PAR1')) return 'parquet'
  if (text === 'ARROW1') return 'arrow'
  return head.length >= 8 && head.readUInt32LE(0) === 0xffffffff ? 'arrow' : undefined
}

function guess(head: Buffer): InputFormat | undefined {
  const first = /^\ufeff?\s*(\S)/.exec(head.toString('utf8'))?.[1]
  if (first === undefined || first === '{' || first === '[') return 'ndjson'
  return /^[^\0]*$/.test(head.toString('latin1')) ? 'csv' : undefined
}

function refuseArray(name: string, head: Buffer): void {
  if (!/^\ufeff?\s*\[/.test(head.toString('utf8', 0, 256))) return
  throw new SluiceError(
    'INPUT_UNREADABLE',
    `${name} is one JSON array; tier wants one record per line`,
    { fix: `jq -c '.[]' ${name} | npx sluice tier - --input-id ${stemOf(name)} …` },
  )
}

function refuseEncoding(bytes: InputBytes, head: Buffer): void {
  const encoding = encodingOf(head)
  if (encoding === undefined) return
  throw new SluiceError(
    'INPUT_UNREADABLE',
    `${bytes.name} is ${encoding.replace(/[LB]E$/, '')}; tier wants UTF-8`,
    { fix: converted(bytes, `iconv -f ${encoding} -t UTF-8`, 'utf8') },
  )
}

/** By its byte order mark, else by the zero bytes that text in UTF-8 does not have. */
function encodingOf(head: Buffer): string | undefined {
  const [a = 1, b = 1, c = 1, d = 1] = head
  if (a === 0xff && b === 0xfe) return c === 0 && d === 0 && head.length > 3 ? 'UTF-32' : 'UTF-16'
  if (a === 0xfe && b === 0xff) return 'UTF-16'
  if (a === 0 && b === 0 && c === 0xfe && d === 0xff) return 'UTF-32'
  if (a !== 0 && b === 0 && c !== 0 && d === 0) return 'UTF-16LE'
  return a === 0 && b !== 0 && c === 0 && d !== 0 ? 'UTF-16BE' : undefined
}

/** Lines as Macs once ended them would all be one. */
function refuseLineEnds(bytes: InputBytes, head: Buffer, format: 'ndjson' | 'csv'): void {
  if (head.includes(10)) return
  const text = head.toString('latin1')
  // A quoted field may hold any line end; between the tokens of JSON a CR is a space.
  const isEnd =
    format === 'csv' ? /\r./.test(text.replace(/"[^"]*"/g, '')) : /\}\s*\r\s*\{/.test(text)
  if (!isEnd) return
  throw new SluiceError(
    'INPUT_UNREADABLE',
    `${bytes.name}: its lines end in CR alone; tier wants LF or CRLF`,
    { fix: converted(bytes, String.raw`tr '\r' '\n'`, 'lf') },
  )
}

/** A command that makes a readable file of an input. */
function converted(bytes: InputBytes, filter: string, mark: string): string {
  const { name, location, compression } = bytes
  if (location.kind === 'stream') return `… | ${filter} | npx sluice tier - …`
  const plain = name.replace(/\.(gz|gzip|zst|zstd)$/i, '')
  const [, stem = plain, extension = ''] = /^(.*?)(\.[^./]*)?$/.exec(plain) ?? []
  const target = `${stem}-${mark}${extension}`
  if (compression === 'none') return `${filter} < ${name} > ${target}`
  return `${compression} -dc ${name} | ${filter} > ${target}`
}

/** The name of an input without folders and extension. */
export function stemOf(name: string): string {
  return /([^/]*?)(\.[^/]*)?$/.exec(name)?.[1] ?? 'input'
}

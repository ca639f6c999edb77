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
 * @throws SluiceError INPUT_UNREADABLE when the bytes are none of the formats, or one JSON array.
 */
export async function detectFormat(bytes: InputBytes, given?: InputFormat): Promise<InputFormat> {
  const head = await bytes.head(4096)
  const format = given ?? magic(head) ?? extensionFormat(bytes.name) ?? guess(head)
  if (format === undefined) {
    throw new SluiceError('INPUT_UNREADABLE', `${bytes.name}: the format cannot be told`, {
      fix: '--input-format ndjson|csv|parquet|arrow',
    })
  }
  if (format === 'ndjson') refuseArray(bytes.name, head)
  return format
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

/** The name of an input without folders and extension. */
export function stemOf(name: string): string {
  return /([^/]*?)(\.[^/]*)?$/.exec(name)?.[1] ?? 'input'
}

import type { JsonCursor } from './json-cursor.ts'
import type { ValueNode } from './value-node.ts'

/** What Debezium writes for a large value that did not change, by default. */
const marker = '__debezium_unavailable_value'

const asText = Buffer.from(JSON.stringify(marker))
const asBytes = Buffer.from(JSON.stringify(Buffer.from(marker).toString('base64')))

/** Whether the value at the cursor says that the value is not there because it did not change. */
export function isUnavailable(cursor: JsonCursor, node: Pick<ValueNode, 'kind'>): boolean {
  const { data, at } = cursor
  if (data[at] === 34) {
    return startsWith(data, at, asText) || (node.kind === 'bytes' && startsWith(data, at, asBytes))
  }
  if (data[at] !== 91 || node.kind !== 'array') return false
  const { length } = asText
  return startsWith(data, at + 1, asText) && data[at + 1 + length] === 93
}

/** The same, where the column's type is not known yet. */
export function isUnavailableText(cursor: JsonCursor): boolean {
  const { data, at } = cursor
  return startsWith(data, data[at] === 91 ? at + 1 : at, asText)
}

function startsWith(data: Buffer, at: number, text: Buffer): boolean {
  if (data[at + 1] !== text[1]) return false
  return text.equals(data.subarray(at, at + text.length))
}

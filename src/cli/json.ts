import { SluiceError } from '../core/errors.ts'
import { isJsonArray, isJsonObject, type JsonValue, stringifyJson } from '../core/json64.ts'
import { Secret } from '../core/secret.ts'

export type JsonIntegers = 'number' | 'string'

/**
 * Writes a document on one line. Integers keep all their digits; with `string`, those of 64 bits
 * stand in quotes, for readers that would round them.
 */
export function writeJson(value: JsonValue, integers: JsonIntegers): string {
  return stringifyJson(integers === 'string' ? quoteIntegers(value) : value)
}

function quoteIntegers(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return value.toString()
  if (isJsonArray(value)) return value.map(quoteIntegers)
  if (isJsonObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [
        key,
        member === undefined ? undefined : quoteIntegers(member),
      ]),
    )
  }
  return value
}

/**
 * Anything as JSON: what has no JSON form is shown as text, what is deep is cut. For `details`, whose
 * names are those of the library; keys of a map are data.
 */
export function asJson(value: unknown, depth = 0): JsonValue {
  if (value === null || value === undefined) return null
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'bigint') {
    return value
  }
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (depth > 8) return '…'
  if (Array.isArray(value)) return value.slice(0, 1000).map((each) => asJson(each, depth + 1))
  if (value instanceof Map) {
    return Object.fromEntries(
      [...value].map(([key, member]) => [String(key), asJson(member, depth + 1)]),
    )
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value instanceof Error) return value.message
  if (typeof value !== 'object') return `<${typeof value}>`
  if (value instanceof Secret) return value.toJSON()
  const object: Record<string, JsonValue> = {}
  for (const [key, member] of Object.entries(value)) {
    object[snakeCase(key)] = asJson(member, depth + 1)
  }
  return object
}

/** Keys of JSON documents are in snake_case. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** RFC 3339 in UTC. @throws SluiceError INVARIANT_BROKEN for a time no calendar has. */
export function jsonTime(milliseconds: number): string {
  const date = new Date(milliseconds)
  if (Number.isNaN(date.getTime())) {
    throw new SluiceError('INVARIANT_BROKEN', `${milliseconds} is no time`)
  }
  return date.toISOString()
}

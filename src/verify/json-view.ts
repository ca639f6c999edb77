import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../core/json64.ts'
import { damage } from './damage.ts'

// Typed reading of JSON members. A member that is `null` counts as absent, as it does to other
// readers of Iceberg.

export function textAt(object: JsonObject, key: string): string {
  return optionalText(object, key) ?? missing(key, 'a text')
}

export function optionalText(object: JsonObject, key: string): string | undefined {
  const value = object[key] ?? undefined
  if (value === undefined || typeof value === 'string') return value
  return missing(key, 'a text')
}

/** An int64. */
export function bigAt(object: JsonObject, key: string): bigint {
  return optionalBig(object, key) ?? missing(key, 'a 64-bit integer')
}

export function optionalBig(object: JsonObject, key: string): bigint | undefined {
  const value = object[key] ?? undefined
  if (value === undefined) return undefined
  const big = typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof big === 'bigint' && BigInt.asIntN(64, big) === big) return big
  return missing(key, 'a 64-bit integer')
}

export function optionalInt(object: JsonObject, key: string): number | undefined {
  const value = object[key] ?? undefined
  if (value === undefined || (typeof value === 'number' && Number.isSafeInteger(value)))
    return value
  return missing(key, 'a whole number')
}

export function intAt(object: JsonObject, key: string): number {
  return optionalInt(object, key) ?? missing(key, 'a whole number')
}

/** The objects of a list; none when it is absent. */
export function objectsAt(object: JsonObject, key: string): readonly JsonObject[] {
  return listAt(object, key).map((each) => (isJsonObject(each) ? each : missing(key, 'objects')))
}

export function listAt(object: JsonObject, key: string): readonly JsonValue[] {
  const value = object[key] ?? undefined
  if (value === undefined) return []
  return isJsonArray(value) ? value : missing(key, 'a list')
}

/** An object of texts; empty when it is absent. */
export function textsAt(object: JsonObject, key: string): ReadonlyMap<string, string> {
  const value = object[key] ?? undefined
  if (value === undefined) return new Map()
  if (!isJsonObject(value)) return missing(key, 'an object')
  return new Map(
    Object.entries(value).map(([name, each]) => [
      name,
      typeof each === 'object' || each === undefined ? missing(name, 'a text') : String(each),
    ]),
  )
}

export function objectOr(value: JsonValue | undefined, what: string): JsonObject {
  return isJsonObject(value) ? value : missing(what, 'an object')
}

function missing(key: string, wanted: string): never {
  throw damage(`"${key}" should be ${wanted}`)
}

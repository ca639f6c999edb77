import { SluiceError } from '../../../core/errors.ts'
import {
  bareObject,
  isJsonArray,
  isJsonObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
} from '../../../core/json64.ts'

// Typed reading of the members of a JSON object; `name` is the file, for messages. A member that is
// `null` counts as absent, as it does to other writers.

/** @throws SluiceError DATA_CORRUPT unless it is a text. */
export function textOf(object: JsonObject, key: string, name: string): string {
  const value = object[key]
  if (typeof value !== 'string') throw wrongMember(object, key, name, 'a text')
  return value
}

/** @throws SluiceError DATA_CORRUPT unless it is an integer that a number holds. */
export function intOf(object: JsonObject, key: string, name: string): number {
  const value = object[key]
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw wrongMember(object, key, name, 'a whole number')
  }
  return value
}

/** @throws SluiceError DATA_CORRUPT unless it is an int64. */
export function bigOf(object: JsonObject, key: string, name: string): bigint {
  const value = object[key]
  const big = typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value
  if (typeof big !== 'bigint' || BigInt.asIntN(64, big) !== big) {
    throw wrongMember(object, key, name, 'a 64-bit integer')
  }
  return big
}

/** @throws SluiceError DATA_CORRUPT unless it is an object. */
export function objectOf(object: JsonObject, key: string, name: string): JsonObject {
  const value = object[key]
  if (!isJsonObject(value)) throw wrongMember(object, key, name, 'an object')
  return value
}

/** @returns an empty list when absent. @throws SluiceError DATA_CORRUPT unless it is a list. */
export function arrayOf(object: JsonObject, key: string, name: string): JsonArray {
  const value = object[key] ?? []
  if (!isJsonArray(value)) throw wrongMember(object, key, name, 'a list')
  return value
}

/** The elements of a list of objects; empty when absent. @throws SluiceError DATA_CORRUPT */
export function objectsOf(object: JsonObject, key: string, name: string): readonly JsonObject[] {
  return arrayOf(object, key, name).map((value) => {
    if (!isJsonObject(value)) throw wrongMember(object, key, name, 'a list of objects')
    return value
  })
}

/** An object whose values are texts; numbers, which careless writers leave there, become texts. */
export function textsOf(
  object: JsonObject,
  key: string,
  name: string,
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  if (isAbsent(object, key)) return texts
  for (const [member, value] of Object.entries(objectOf(object, key, name))) {
    if (typeof value === 'object') throw wrongMember(object, key, name, 'an object of texts')
    texts.set(member, String(value))
  }
  return texts
}

export function isAbsent(object: JsonObject, key: string): boolean {
  return object[key] === undefined || object[key] === null
}

export function wrongMember(
  object: JsonObject,
  key: string,
  name: string,
  wanted: string,
): SluiceError {
  const what = isAbsent(object, key) ? 'is missing' : `should be ${wanted}`
  return new SluiceError('DATA_CORRUPT', `${name}: "${key}" ${what}`, {
    details: { file: name, key },
  })
}

/** Keys in the order given, without those that are undefined; `__proto__` is a key like any other. */
export function jsonObject(
  members: Iterable<readonly [string, JsonValue | undefined]>,
): JsonObject {
  const object = bareObject()
  for (const [key, value] of members) if (value !== undefined) object[key] = value
  return object
}

/** The object with some members replaced in place, others added at the end. */
export function withMembers(object: JsonObject, members: JsonObject): JsonObject {
  return jsonObject([...Object.entries(object), ...Object.entries(members)])
}

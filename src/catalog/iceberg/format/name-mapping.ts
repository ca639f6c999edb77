import { type JsonArray, stringifyJson } from '../../../core/json64.ts'
import type { IdField } from '../../../core/schema/types.ts'
import { jsonObject } from './json-fields.ts'

/** Table property with the ids of columns by name, for files that carry none. */
export const nameMappingProperty = 'schema.name-mapping.default'

/** The value of `schema.name-mapping.default` (spec, "Column projection") for these columns. */
export function nameMapping(fields: readonly IdField[]): string {
  return stringifyJson(mapped(fields))
}

function mapped(fields: readonly IdField[]): JsonArray {
  return fields.map((field) =>
    jsonObject([
      ['field-id', field.id],
      ['names', [field.name]],
      ['fields', field.children.length === 0 ? undefined : mapped(field.children)],
    ]),
  )
}

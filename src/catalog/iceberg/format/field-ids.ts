import type { DataType, Field, IdField } from '../../../core/schema/types.ts'

/**
 * Gives fields their ids as Iceberg does for a new table: all fields of one level in order, then
 * the children of the first, of the second, and so on. Key and value of a map are neighbors.
 * @returns the fields, and the highest id given, children included
 */
export function assignFieldIds(fields: readonly Field[]): {
  readonly fields: readonly IdField[]
  readonly lastId: number
} {
  let lastId = 0
  const assign = (level: readonly Field[]): readonly IdField[] => {
    const first = lastId + 1
    lastId += level.length
    return level.map((field, index) => ({
      id: first + index,
      name: field.name,
      type: field.type,
      ...(field.comment === undefined ? {} : { comment: field.comment }),
      children: assign(childrenOf(field.type)),
    }))
  }
  return { fields: assign(fields), lastId }
}

function childrenOf(type: DataType): readonly Field[] {
  switch (type.kind) {
    case 'array':
      return [{ name: 'element', type: type.element }]
    case 'map':
      return [
        { name: 'key', type: { ...type.key, nullable: false } },
        { name: 'value', type: type.value },
      ]
    case 'row':
      return type.fields
    default:
      return []
  }
}

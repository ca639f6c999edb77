import { unreachable } from '../never.ts'
import type { DataType } from './types.ts'

/** The Fluss type string of a type, as `parseType` reads it: `DECIMAL(12, 2) NOT NULL`. */
export function formatType(type: DataType): string {
  return type.nullable ? bare(type) : `${bare(type)} NOT NULL`
}

function bare(type: DataType): string {
  switch (type.kind) {
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'int':
    case 'bigint':
    case 'float':
    case 'double':
    case 'string':
    case 'bytes':
    case 'date':
      return type.kind.toUpperCase()
    case 'decimal':
      return `DECIMAL(${type.precision}, ${type.scale})`
    case 'char':
    case 'binary':
      return `${type.kind.toUpperCase()}(${type.length})`
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return `${type.kind.toUpperCase()}(${type.precision})`
    case 'array':
      return `ARRAY<${formatType(type.element)}>`
    case 'map':
      return `MAP<${formatType(type.key)}, ${formatType(type.value)}>`
    case 'row': {
      const fields = type.fields.map((field) => `${quoted(field.name)} ${formatType(field.type)}`)
      return `ROW<${fields.join(', ')}>`
    }
    default:
      return unreachable(type)
  }
}

function quoted(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll('`', '``')}\``
}

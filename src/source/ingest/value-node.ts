import { SluiceError } from '../../core/errors.ts'
import { type ColumnBuilder, columnBuilder } from '../../core/columns/builder.ts'
import { BytesBuilder } from '../../core/columns/bytes-builder.ts'
import {
  BitBuilder,
  Float32Builder,
  Float64Builder,
  Int128Builder,
  Int32Builder,
  Int64Builder,
} from '../../core/columns/fixed-builders.ts'
import { ListBuilder, MapBuilder, StructBuilder } from '../../core/columns/nested-builders.ts'
import { check } from '../../core/never.ts'
import { formatType } from '../../core/schema/format-type.ts'
import type { DataType, Field } from '../../core/schema/types.ts'

type Common = {
  /** `address.zip`; how messages name the value. */
  readonly path: string
  readonly typeText: string
  /** Never for the bucket key: no bucket would take a null. */
  readonly nullable: boolean
  /** The bucket key of the table, whose values may not be empty either. */
  readonly isKey: boolean
  /** What the column is beside its type: part of the primary key. */
  readonly role?: string
}

/** Where the values of one column, or of one part of a nested one, are appended. */
export type ScalarNode = Common &
  (
    | { readonly kind: 'boolean'; readonly builder: BitBuilder }
    | {
        readonly kind: 'small'
        readonly builder: Int32Builder
        readonly min: number
        readonly max: number
      }
    | { readonly kind: 'bigint'; readonly builder: Int64Builder }
    | { readonly kind: 'float'; readonly builder: Float32Builder }
    | { readonly kind: 'double'; readonly builder: Float64Builder }
    | {
        readonly kind: 'decimal'
        readonly builder: Int128Builder
        readonly scale: number
        /** 10^precision: what the magnitude stays below. */
        readonly bound: bigint
      }
    | { readonly kind: 'string'; readonly builder: BytesBuilder }
    | { readonly kind: 'char'; readonly builder: BytesBuilder; readonly length: number }
    | {
        readonly kind: 'bytes'
        readonly builder: BytesBuilder
        readonly length: number | undefined
      }
    | { readonly kind: 'date'; readonly builder: Int32Builder }
    | {
        readonly kind: 'time' | 'timestamp' | 'timestamp_ltz'
        readonly builder: Int64Builder
        readonly precision: number
      }
  )

export type ValueNode =
  | ScalarNode
  | (Common & {
      readonly kind: 'array'
      readonly builder: ListBuilder
      readonly element: ValueNode
    })
  | (Common & {
      readonly kind: 'map'
      readonly builder: MapBuilder
      readonly key: ScalarNode
      readonly value: ValueNode
    })
  | (Common & {
      readonly kind: 'row'
      readonly builder: StructBuilder
      readonly object: ObjectNode
    })

/** Fields that come by name: the columns of a table, or a ROW. */
export type ObjectNode = {
  /** Empty for the table itself. */
  readonly path: string
  readonly fields: readonly ValueNode[]
  /** A field's name and closing quote as JSON writes it, where that is the only common way. */
  readonly quoted: readonly (Uint8Array | undefined)[]
  readonly byName: ReadonlyMap<string, number>
  readonly names: readonly string[]
  /** Equals `stamp` for each field seen in the object being read. */
  readonly seen: Float64Array
  stamp: number
}

/** Nodes and builders for the columns of a table, in order. */
export function tableNode(
  fields: readonly Field[],
  bucketKey: string | undefined,
): {
  readonly node: ObjectNode
  readonly builders: readonly ColumnBuilder[]
} {
  const builders = fields.map((field) => columnBuilder(field.type))
  return { node: objectNode(fields, builders, '', bucketKey), builders }
}

function objectNode(
  fields: readonly Field[],
  builders: readonly ColumnBuilder[],
  path: string,
  bucketKey?: string,
): ObjectNode {
  return {
    path,
    fields: fields.map((field, index) => {
      const builder = builders[index]
      check(builder !== undefined, 'each field has a builder')
      const ownPath = path === '' ? field.name : `${path}.${field.name}`
      if (field.name !== bucketKey) return valueNode(field.type, builder, ownPath)
      const node = scalarNode(field.type, builder, ownPath)
      check(node !== undefined, 'a bucket key is not nested')
      return { ...node, nullable: false, isKey: true }
    }),
    quoted: fields.map(({ name }) =>
      JSON.stringify(name) === `"${name}"` ? Buffer.from(`${name}"`) : undefined,
    ),
    byName: new Map(fields.map((field, index) => [field.name, index])),
    names: fields.map((field) => field.name),
    seen: new Float64Array(fields.length),
    stamp: 0,
  }
}

function valueNode(type: DataType, builder: ColumnBuilder, path: string): ValueNode {
  const common = { path, typeText: formatType(type), nullable: type.nullable, isKey: false }
  if (type.kind === 'array' && builder instanceof ListBuilder) {
    const element = valueNode(type.element, builder.element, `${path}[]`)
    return { ...common, kind: 'array', builder, element }
  }
  if (type.kind === 'map' && builder instanceof MapBuilder) {
    const key = scalarNode(type.key, builder.key, `key of ${path}`)
    if (key === undefined) {
      throw new SluiceError(
        'SCHEMA_UNSUPPORTED',
        `column "${path}" is ${common.typeText}; the key of a MAP must not be nested`,
      )
    }
    const value = valueNode(type.value, builder.value, `${path}{}`)
    return { ...common, kind: 'map', builder, key, value }
  }
  if (type.kind === 'row' && builder instanceof StructBuilder) {
    return {
      ...common,
      kind: 'row',
      builder,
      object: objectNode(type.fields, builder.fields, path),
    }
  }
  const node = scalarNode(type, builder, path)
  check(node !== undefined, 'a type and its builder fit')
  return node
}

const integerBits = { tinyint: 8, smallint: 16, int: 32 } as const

function scalarNode(type: DataType, builder: ColumnBuilder, path: string): ScalarNode | undefined {
  const common = { path, typeText: formatType(type), nullable: type.nullable, isKey: false }
  if (builder instanceof BitBuilder) return { ...common, kind: 'boolean', builder }
  if (builder instanceof Float32Builder) return { ...common, kind: 'float', builder }
  if (builder instanceof Float64Builder) return { ...common, kind: 'double', builder }
  if (builder instanceof Int32Builder) {
    if (type.kind === 'date') return { ...common, kind: 'date', builder }
    if (type.kind !== 'tinyint' && type.kind !== 'smallint' && type.kind !== 'int') return undefined
    const half = 2 ** (integerBits[type.kind] - 1)
    return { ...common, kind: 'small', builder, min: -half, max: half - 1 }
  }
  if (builder instanceof Int64Builder) {
    if (type.kind === 'bigint') return { ...common, kind: 'bigint', builder }
    if (type.kind === 'time' || type.kind === 'timestamp' || type.kind === 'timestamp_ltz') {
      return { ...common, kind: type.kind, builder, precision: type.precision }
    }
    return undefined
  }
  if (builder instanceof Int128Builder && type.kind === 'decimal') {
    const bound = 10n ** BigInt(type.precision)
    return { ...common, kind: 'decimal', builder, scale: type.scale, bound }
  }
  if (builder instanceof BytesBuilder) {
    if (type.kind === 'string') return { ...common, kind: 'string', builder }
    if (type.kind === 'char') return { ...common, kind: 'char', builder, length: type.length }
    const length = type.kind === 'binary' ? type.length : undefined
    return { ...common, kind: 'bytes', builder, length }
  }
  return undefined
}

import {
  DataType as Arrow,
  type DataType as ArrowType,
  DateUnit,
  Field as ArrowField,
  Precision,
  TimeUnit,
} from 'apache-arrow'
import { SluiceError } from '../errors.ts'
import { formatType } from '../schema/format-type.ts'
import type { DataType, Field } from '../schema/types.ts'

/** Units of Arrow's times by the digits of a second they hold. */
const digitsOf: Readonly<Record<TimeUnit, number>> = {
  [TimeUnit.SECOND]: 0,
  [TimeUnit.MILLISECOND]: 3,
  [TimeUnit.MICROSECOND]: 6,
  [TimeUnit.NANOSECOND]: 9,
}

/**
 * The column that takes the values of an Arrow field. Unsigned integers are widened, those of 64 bits
 * to DECIMAL(20, 0); a dictionary is what it encodes; nanoseconds keep precision 9, which only
 * `allowsLoss` may cut.
 *
 * @throws SluiceError SCHEMA_UNSUPPORTED naming the column
 */
export function fieldFromArrow(
  field: ArrowField<ArrowType>,
  allowsLoss: (path: string) => boolean,
  path: string = field.name,
): Field {
  const type = typeFromArrow(field, allowsLoss, path)
  const isLossy = holdsNanos(type)
  if (isLossy && !allowsLoss(path)) {
    const what =
      path === field.name
        ? `it in --schema as "type": "${formatType(type)}"`
        : 'its column in --schema'
    throw unsupported(path, field.type, 'nanoseconds do not fit a column of microseconds', {
      fix: `declare ${what} with "allow_precision_loss": true: its values are then cut to microseconds`,
    })
  }
  return { name: field.name, type, ...(isLossy && { allowPrecisionLoss: true }) }
}

function holdsNanos(type: DataType): boolean {
  switch (type.kind) {
    case 'time':
    case 'timestamp':
    case 'timestamp_ltz':
      return type.precision > 6
    default:
      return false
  }
}

function typeFromArrow(
  field: ArrowField<ArrowType>,
  allowsLoss: (path: string) => boolean,
  path: string,
): DataType {
  const { nullable, type } = field
  const child = (at: number, name: string): Field => {
    const found: ArrowField<ArrowType> | undefined = type.children[at]
    if (found === undefined) throw unsupported(path, type, 'its children are missing')
    return fieldFromArrow(found, allowsLoss, `${path}.${name}`)
  }
  if (Arrow.isDictionary(type)) {
    const plain = encodedField(type, field)
    if (isNested(plain.type)) throw unsupported(path, type, 'a dictionary of nested values')
    return typeFromArrow(plain, allowsLoss, path)
  }
  if (Arrow.isBool(type)) return { kind: 'boolean', nullable }
  if (Arrow.isInt(type)) return integerType(type, nullable)
  if (Arrow.isFloat(type)) {
    return { kind: type.precision === Precision.DOUBLE ? 'double' : 'float', nullable }
  }
  if (Arrow.isUtf8(type) || Arrow.isLargeUtf8(type)) return { kind: 'string', nullable }
  if (Arrow.isBinary(type) || Arrow.isLargeBinary(type)) return { kind: 'bytes', nullable }
  if (Arrow.isFixedSizeBinary(type)) return { kind: 'binary', length: type.byteWidth, nullable }
  if (Arrow.isDecimal(type)) {
    const { precision, scale } = type
    if (precision > 38) throw unsupported(path, type, 'a decimal holds at most 38 digits')
    if (precision < 1 || scale < 0 || scale > precision) {
      throw unsupported(path, type, 'the scale lies outside 0 to the precision')
    }
    return { kind: 'decimal', precision, scale, nullable }
  }
  if (Arrow.isDate(type)) return { kind: 'date', nullable }
  if (Arrow.isTime(type)) return { kind: 'time', precision: digitsOf[type.unit], nullable }
  if (Arrow.isTimestamp(type)) {
    const kind = hasZone(type) ? 'timestamp_ltz' : 'timestamp'
    return { kind, precision: digitsOf[type.unit], nullable }
  }
  if (Arrow.isList(type) || Arrow.isLargeList(type) || Arrow.isFixedSizeList(type)) {
    return { kind: 'array', element: child(0, 'element').type, nullable }
  }
  if (Arrow.isMap(type)) {
    const entry = child(0, 'entry').type
    const [key, value] = entry.kind === 'row' ? entry.fields : []
    if (key === undefined || value === undefined) {
      throw unsupported(path, type, 'a map has keys and values')
    }
    return { kind: 'map', key: { ...key.type, nullable: false }, value: value.type, nullable }
  }
  if (Arrow.isStruct(type)) {
    const fields = type.children.map((each, at) => child(at, each.name))
    return { kind: 'row', fields, nullable }
  }
  throw unsupported(path, type, 'there is no column type for it')
}

function integerType(
  type: ArrowType & { readonly bitWidth: number; readonly isSigned: boolean },
  nullable: boolean,
): DataType {
  const bits = type.isSigned ? type.bitWidth : 2 * type.bitWidth
  if (bits > 64) return { kind: 'decimal', precision: 20, scale: 0, nullable }
  const kind = bits === 8 ? 'tinyint' : bits === 16 ? 'smallint' : bits === 32 ? 'int' : 'bigint'
  return { kind, nullable }
}

/**
 * Refuses unsigned integers of 64 bits, at any depth: whether their column is to be a DECIMAL is for
 * the user to say.
 * @throws SluiceError SCHEMA_UNSUPPORTED naming the column
 */
export function refuseUnsigned64(field: ArrowField<ArrowType>, path: string = field.name): void {
  const { type } = field
  const plain: ArrowType = Arrow.isDictionary(type) ? encodedField(type, field).type : type
  if (Arrow.isInt(plain) && !plain.isSigned && plain.bitWidth === 64) {
    const what =
      path === field.name ? `it in --schema as "type": "DECIMAL(20, 0)"` : 'its column in --schema'
    throw unsupported(path, plain, 'unsigned 64-bit integers exceed BIGINT', {
      fix: `declare ${what}${path === field.name ? '' : ' with DECIMAL(20, 0) in its place'}`,
    })
  }
  if (!isNested(plain)) return
  const children: readonly ArrowField<ArrowType>[] = plain.children
  for (const child of children) refuseUnsigned64(child, `${path}.${child.name}`)
}

function encodedField(
  type: { readonly dictionary: ArrowType },
  field: ArrowField<ArrowType>,
): ArrowField<ArrowType> {
  return new ArrowField(field.name, type.dictionary, field.nullable)
}

function isNested(type: ArrowType): boolean {
  const children: readonly unknown[] | null | undefined = type.children
  return Array.isArray(children) && children.length > 0
}

function hasZone(type: { readonly timezone?: string | null | undefined }): boolean {
  return type.timezone !== undefined && type.timezone !== null && type.timezone !== ''
}

/** Milliseconds of a day, where a date comes as milliseconds; undefined where it comes as days. */
export function dateDivisor(type: ArrowType): number | undefined {
  return Arrow.isDate(type) && type.unit === DateUnit.MILLISECOND ? 86_400_000 : undefined
}

function unsupported(
  path: string,
  type: ArrowType,
  reason: string,
  options: { readonly fix?: string } = {},
): SluiceError {
  return new SluiceError(
    'SCHEMA_UNSUPPORTED',
    `the Arrow column ${path} of type ${nameOf(type)} cannot be taken: ${reason}`,
    options,
  )
}

/** Every type of Arrow has a text form of its own, which its declarations do not tell. */
function nameOf(type: { toString(): string }): string {
  return type.toString()
}

import { decodeBase64 } from '../../core/values/base64.ts'
import type { ConnectForm, Unit } from './connect-schema.ts'
import type { JsonCursor } from './json-cursor.ts'
import { readArray, readMap, readObject, readValue, refusal } from './json-values.ts'
import { RecordFault, shown } from './record-fault.ts'
import { scanNumber } from './scalar-values.ts'
import type { ScalarNode, ValueNode } from './value-node.ts'

/** Reads a value as its Connect type writes it. Without a form it is as the column reads it. */
export function readConnect(
  cursor: JsonCursor,
  node: ValueNode,
  form: ConnectForm | undefined,
  table: string,
): void {
  if (form === undefined || cursor.skipSpace() === 110) {
    readValue(cursor, node, table)
    return
  }
  switch (form.kind) {
    case 'struct':
      if (node.kind !== 'row') throw otherColumn(cursor, node, 'a struct', table)
      if (cursor.skipSpace() !== 123) throw refusal(cursor, node, cursor.at, '', table)
      readObject(cursor, node.object, table, (at, part) => {
        const name = part.path.slice(node.object.path.length + 1)
        readConnect(at, part, form.fields.get(name), table)
      })
      node.builder.close()
      return
    case 'list':
      if (node.kind !== 'array') throw otherColumn(cursor, node, 'an array', table)
      readArray(cursor, node, table, (at, part) => {
        readConnect(at, part, form.element, table)
      })
      return
    case 'map':
      if (node.kind !== 'map') throw otherColumn(cursor, node, 'a map', table)
      readMap(cursor, node, table, (at, part) => {
        readConnect(at, part, form.value, table)
      })
      return
    case 'days':
      if (node.kind !== 'date') throw otherColumn(cursor, node, form.name, table)
      node.builder.append(Number(integerAt(cursor, node, form.name, table, 32)))
      return
    case 'time':
    case 'timestamp':
      readInstant(cursor, node, form, table)
      return
    case 'unscaled':
      readUnscaled(cursor, node, form, table)
      return
    default:
  }
}

const nanosOf: Readonly<Record<Unit, bigint>> = { ms: 1_000_000n, us: 1000n, ns: 1n }

function readInstant(
  cursor: JsonCursor,
  node: ValueNode,
  form: ConnectForm & { readonly kind: 'time' | 'timestamp' },
  table: string,
): void {
  if (node.kind !== 'time' && node.kind !== 'timestamp' && node.kind !== 'timestamp_ltz') {
    throw otherColumn(cursor, node, form.name, table)
  }
  if ((form.kind === 'time') !== (node.kind === 'time')) {
    throw otherColumn(cursor, node, form.name, table)
  }
  const { at } = cursor
  const nanos = integerAt(cursor, node, form.name, table, 64) * nanosOf[form.unit]
  const digits = fractionDigits(nanos)
  if (digits > node.precision) {
    throw refusal(cursor, node, at, `more than ${node.precision} fraction digits`, table)
  }
  if (digits > 6) cursor.losses += 1
  const micros = nanos / 1000n - (nanos % 1000n < 0n ? 1n : 0n)
  if (BigInt.asIntN(64, micros) !== micros) throw refusal(cursor, node, at, 'out of range', table)
  if (node.kind === 'time' && (micros < 0n || micros >= 86_400_000_000n)) {
    throw refusal(cursor, node, at, 'no time of a day', table)
  }
  node.builder.append(micros)
}

/** Digits of the second that are not zero at the end. */
function fractionDigits(nanos: bigint): number {
  let digits = 9
  let left = nanos % 1_000_000_000n
  while (digits > 0 && left % 10n === 0n) {
    left /= 10n
    digits -= 1
  }
  return digits
}

function readUnscaled(
  cursor: JsonCursor,
  node: ValueNode,
  form: ConnectForm & { readonly kind: 'unscaled' },
  table: string,
): void {
  // A converter may be told to write decimals as numbers.
  if (cursor.skipSpace() !== 34) {
    readValue(cursor, node, table)
    return
  }
  if (node.kind !== 'decimal') throw otherColumn(cursor, node, form.name, table)
  const { at } = cursor
  cursor.scanString()
  const bytes = decodeBase64(cursor.text, cursor.textFrom, cursor.textTo)
  if (bytes === undefined || bytes.length === 0 || bytes.length > 64) {
    throw refusal(cursor, node, at, `not base64 of ${form.name}`, table)
  }
  appendUnscaled(cursor, node, { unscaled: signed(bytes), scale: form.scale, at }, table)
}

function appendUnscaled(
  cursor: JsonCursor,
  node: ScalarNode & { readonly kind: 'decimal' },
  value: { readonly unscaled: bigint; readonly scale: number; readonly at: number },
  table: string,
): void {
  const { unscaled, scale, at } = value
  const more = node.scale - scale
  const factor = 10n ** BigInt(Math.abs(more))
  if (more < 0 && unscaled % factor !== 0n) {
    throw refusal(cursor, node, at, `more than ${node.scale} fraction digits`, table)
  }
  const fitted = more < 0 ? unscaled / factor : unscaled * factor
  if (fitted >= node.bound || fitted <= -node.bound) {
    throw refusal(cursor, node, at, 'too many digits', table)
  }
  node.builder.append(fitted)
}

/** Two's complement, most significant byte first. */
function signed(bytes: Uint8Array): bigint {
  const value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  return BigInt.asIntN(8 * bytes.length, value)
}

function integerAt(
  cursor: JsonCursor,
  node: ValueNode,
  name: string,
  table: string,
  bits: number,
): bigint {
  const { at, data } = cursor
  const to = scanNumber(data, at)
  const text = to === -1 ? '' : data.toString('latin1', at, to)
  if (!/^-?\d{1,19}$/.test(text))
    throw refusal(cursor, node, at, `not as ${name} is written`, table)
  cursor.at = to
  const value = BigInt(text)
  if (BigInt.asIntN(bits, value) !== value) {
    throw refusal(cursor, node, at, `beyond ${bits} bits`, table)
  }
  return value
}

function otherColumn(
  cursor: JsonCursor,
  node: ValueNode,
  type: string,
  table: string,
): RecordFault {
  const { at } = cursor
  cursor.skipValue()
  const text = shown(cursor.data.toString('utf8', at, Math.min(cursor.at, at + 400)))
  return new RecordFault(
    at,
    `${node.path} is ${text} (${type}), column ${node.path} of ${table} is ${node.typeText}`,
  )
}

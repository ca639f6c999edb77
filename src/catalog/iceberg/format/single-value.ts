import { SluiceError } from '../../../core/errors.ts'

/**
 * Values in the form that bounds have (spec, appendix D, "Binary single-value serialization").
 */

/** INT and DATE: 4 bytes, little-endian. */
export function int32Value(value: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32LE(value)
  return bytes
}

/** BIGINT, TIME, TIMESTAMP and TIMESTAMP_LTZ (microseconds): 8 bytes, little-endian. */
export function int64Value(value: bigint): Uint8Array {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigInt64LE(value)
  return bytes
}

/** DECIMAL: the unscaled value, big-endian two's complement in as few bytes as hold it. */
export function decimalValue(unscaled: bigint): Uint8Array {
  let size = 1
  while (BigInt.asIntN(size * 8, unscaled) !== unscaled) size += 1
  const bytes = Buffer.allocUnsafe(size)
  let rest = unscaled
  for (let at = size - 1; at >= 0; at -= 1, rest >>= 8n) bytes[at] = Number(rest & 0xffn)
  return bytes
}

/** @throws SluiceError DATA_CORRUPT unless it has 4 bytes */
export function readInt32Value(bytes: Uint8Array): number {
  return viewOf(bytes, 4).getInt32(0, true)
}

/** Also reads the 4 bytes that a column had before it was widened. @throws SluiceError DATA_CORRUPT */
export function readInt64Value(bytes: Uint8Array): bigint {
  if (bytes.length === 4) return BigInt(readInt32Value(bytes))
  return viewOf(bytes, 8).getBigInt64(0, true)
}

/** The unscaled value. @throws SluiceError DATA_CORRUPT when there is no byte */
export function readDecimalValue(bytes: Uint8Array): bigint {
  if (bytes.length === 0) throw wrongLength(bytes, 1)
  let value = 0n
  for (const byte of bytes) value = (value << 8n) | BigInt(byte)
  return BigInt.asIntN(bytes.length * 8, value)
}

function viewOf(bytes: Uint8Array, length: number): DataView {
  if (bytes.length !== length) throw wrongLength(bytes, length)
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

function wrongLength(bytes: Uint8Array, length: number): SluiceError {
  return new SluiceError(
    'DATA_CORRUPT',
    `a bound has ${bytes.length} bytes where its type has ${length}`,
  )
}

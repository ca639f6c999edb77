import { SluiceError } from '../../../core/errors.ts'

/*
 * Sets of row positions as 64-bit Roaring bitmaps in the portable form (RoaringFormatSpec,
 * "Extension for 64-bit implementations"), which is what a deletion vector holds. Positions are 32
 * bits here: no file has that many rows.
 */

const cookieWithoutRuns = 12_346
const cookieWithRuns = 12_347
/** With runs, fewer containers than this have no offsets. */
const offsetsMin = 4
/** A container with more values is a bitmap. */
const arrayMax = 4096
const bitmapBytes = 8192

/** @param positions Ascending, each once. */
export function encodePositions(positions: Uint32Array): Uint8Array {
  const containers = containersOf(positions)
  const isEmpty = containers.length === 0
  const header = 8 + (isEmpty ? 0 : 4 + 8 + 8 * containers.length)
  const size = containers.reduce((sum, { length }) => sum + containerBytes(length), header)
  const out = Buffer.alloc(size)
  if (isEmpty) return out
  // One 32-bit bitmap, for the high word 0.
  out.writeBigUInt64LE(1n, 0)
  out.writeUInt32LE(0, 8)
  const start = 12
  out.writeUInt32LE(cookieWithoutRuns, start)
  out.writeUInt32LE(containers.length, start + 4)
  let at = header
  containers.forEach((container, index) => {
    const first = container[0] ?? 0
    out.writeUInt16LE(first >>> 16, start + 8 + 4 * index)
    out.writeUInt16LE(container.length - 1, start + 10 + 4 * index)
    out.writeUInt32LE(at - start, start + 8 + 4 * containers.length + 4 * index)
    if (container.length <= arrayMax) {
      for (const position of container) at = out.writeUInt16LE(position & 0xffff, at)
    } else {
      for (const position of container) {
        const low = position & 0xffff
        out[at + (low >> 3)] = (out[at + (low >> 3)] ?? 0) | (1 << (low & 7))
      }
      at += bitmapBytes
    }
  })
  return out
}

/**
 * @returns ascending, each once
 * @throws SluiceError DATA_CORRUPT, also for a position beyond 32 bits
 */
export function decodePositions(bytes: Uint8Array, name: string): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  try {
    const bitmaps = view.getBigUint64(0, true)
    if (bitmaps === 0n && bytes.length === 8) return new Uint32Array(0)
    if (bitmaps !== 1n || view.getUint32(8, true) !== 0) {
      throw corrupt(name, 'a position beyond 32 bits')
    }
    const { positions, end } = decodeBitmap(view, 12, name)
    if (end !== bytes.length) throw corrupt(name, 'bytes left over')
    return positions
  } catch (error) {
    if (error instanceof RangeError) throw corrupt(name, 'it is cut')
    throw error
  }
}

function containersOf(positions: Uint32Array): readonly Uint32Array[] {
  const containers: Uint32Array[] = []
  let start = 0
  for (let at = 1; at <= positions.length; at += 1) {
    if (at < positions.length && (positions[at] ?? 0) >>> 16 === (positions[start] ?? 0) >>> 16) {
      continue
    }
    containers.push(positions.subarray(start, at))
    start = at
  }
  return containers
}

function containerBytes(cardinality: number): number {
  return cardinality <= arrayMax ? 2 * cardinality : bitmapBytes
}

function decodeBitmap(
  view: DataView,
  start: number,
  name: string,
): { readonly positions: Uint32Array; readonly end: number } {
  const cookie = view.getUint32(start, true)
  const hasRuns = (cookie & 0xffff) === cookieWithRuns
  if (!hasRuns && cookie !== cookieWithoutRuns) throw corrupt(name, 'not a Roaring bitmap')
  const count = hasRuns ? (cookie >>> 16) + 1 : view.getUint32(start + 4, true)
  if (count > 1 << 16) throw corrupt(name, 'too many containers')
  const flags = start + 4
  const heads = hasRuns ? flags + Math.ceil(count / 8) : start + 8
  let at = heads + 4 * count + (!hasRuns || count >= offsetsMin ? 4 * count : 0)
  let cardinality = 0
  for (let index = 0; index < count; index += 1) {
    cardinality += view.getUint16(heads + 4 * index + 2, true) + 1
  }
  const positions = new Uint32Array(cardinality)
  let filled = 0
  for (let index = 0; index < count; index += 1) {
    const high = view.getUint16(heads + 4 * index, true) * 0x10000
    const size = view.getUint16(heads + 4 * index + 2, true) + 1
    const isRun = hasRuns && ((view.getUint8(flags + (index >> 3)) >> (index & 7)) & 1) === 1
    const before = filled
    if (isRun) {
      const runs = view.getUint16(at, true)
      at += 2
      for (let run = 0; run < runs; run += 1, at += 4) {
        const first = view.getUint16(at, true)
        const more = view.getUint16(at + 2, true)
        for (let low = first; low <= first + more; low += 1) positions[filled++] = high + low
      }
    } else if (size <= arrayMax) {
      for (let each = 0; each < size; each += 1, at += 2) {
        positions[filled++] = high + view.getUint16(at, true)
      }
    } else {
      for (let byte = 0; byte < bitmapBytes; byte += 1) {
        let bits = view.getUint8(at + byte)
        for (; bits !== 0; bits &= bits - 1) {
          positions[filled++] = high + byte * 8 + (31 - Math.clz32(bits & -bits))
        }
      }
      at += bitmapBytes
    }
    if (filled - before !== size) throw corrupt(name, 'a container of another size than it says')
  }
  for (let index = 1; index < filled; index += 1) {
    if ((positions[index] ?? 0) <= (positions[index - 1] ?? 0)) {
      throw corrupt(name, 'positions out of order')
    }
  }
  return { positions, end: at }
}

function corrupt(name: string, reason: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', `${name}: not a set of positions (${reason})`, {
    details: { file: name, reason },
  })
}

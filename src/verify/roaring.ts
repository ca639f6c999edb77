import { damage } from './damage.ts'

/*
 * Sets of positions in the portable form of 64-bit Roaring bitmaps (RoaringFormatSpec), read from the
 * specification a second time and not by the writer's code.
 */

const plainCookie = 12_346
const runCookie = 12_347
const offsetsFrom = 4
const arrayMax = 4096
const bitmapBytes = 8192
const word = 2 ** 32

/** Takes positions `[from, to)`, ascending. */
export type TakePositions = (from: number, to: number) => void

/**
 * Reads a set from its first byte to its last.
 * @returns how many positions there are
 * @throws SluiceError DATA_CORRUPT
 */
export function readRoaring(bytes: Uint8Array, take: TakePositions): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  try {
    const bitmaps = view.getBigUint64(0, true)
    let at = 8
    let count = 0
    let before = -1
    for (let bitmap = 0n; bitmap < bitmaps; bitmap += 1n) {
      const high = view.getUint32(at, true)
      if (high <= before) throw damage('the bitmaps of its positions are out of order')
      // Positions beyond are no integers of JavaScript, and no file has that many rows.
      if (high >= 2 ** 20) throw damage('a position beyond 52 bits')
      before = high
      const read = readBitmap(view, at + 4, high * word, take)
      count += read.count
      at = read.end
    }
    if (at !== bytes.length) throw damage(`${bytes.length - at} bytes after its positions`)
    return count
  } catch (error) {
    if (error instanceof RangeError) throw damage('its positions are cut')
    throw error
  }
}

type Read = { readonly count: number; readonly end: number }

function readBitmap(view: DataView, start: number, base: number, take: TakePositions): Read {
  const cookie = view.getUint32(start, true)
  const hasRuns = (cookie & 0xffff) === runCookie
  if (!hasRuns && cookie !== plainCookie) throw damage('its positions are no Roaring bitmap')
  const size = hasRuns ? (cookie >>> 16) + 1 : view.getUint32(start + 4, true)
  if (size > 2 ** 16) throw damage('its positions have too many containers')
  const flags = start + 4
  const heads = hasRuns ? flags + ((size + 7) >> 3) : start + 8
  const places = heads + 4 * size
  const hasPlaces = !hasRuns || size >= offsetsFrom
  let at = hasPlaces ? places + 4 * size : places
  let count = 0
  let before = -1
  for (let index = 0; index < size; index += 1) {
    const key = view.getUint16(heads + 4 * index, true)
    const wanted = view.getUint16(heads + 4 * index + 2, true) + 1
    if (key <= before) throw damage('the containers of its positions are out of order')
    before = key
    if (hasPlaces && view.getUint32(places + 4 * index, true) !== at - start) {
      throw damage('a container of its positions is not where its header says')
    }
    const isRun = hasRuns && ((view.getUint8(flags + (index >> 3)) >> (index & 7)) & 1) === 1
    const read = (isRun ? readRuns : wanted <= arrayMax ? readArray : readBits)(
      view,
      { at, wanted },
      (from, to) => {
        take(base + key * 2 ** 16 + from, base + key * 2 ** 16 + to)
      },
    )
    if (read.count !== wanted) throw damage('a container of another size than its header says')
    count += read.count
    at = read.end
  }
  return { count, end: at }
}

type Place = { readonly at: number; readonly wanted: number }

function readRuns(view: DataView, { at }: Place, take: TakePositions): Read {
  const runs = view.getUint16(at, true)
  let [count, next] = [0, 0]
  for (let run = 0; run < runs; run += 1) {
    const first = view.getUint16(at + 2 + 4 * run, true)
    const end = first + view.getUint16(at + 4 + 4 * run, true) + 1
    if (first < next || end > 2 ** 16) throw damage('a run of its positions is out of order')
    take(first, end)
    count += end - first
    next = end
  }
  return { count, end: at + 2 + 4 * runs }
}

function readArray(view: DataView, { at, wanted }: Place, take: TakePositions): Read {
  let before = -1
  for (let index = 0; index < wanted; index += 1) {
    const low = view.getUint16(at + 2 * index, true)
    if (low <= before) throw damage('its positions are out of order')
    before = low
    take(low, low + 1)
  }
  return { count: wanted, end: at + 2 * wanted }
}

function readBits(view: DataView, { at }: Place, take: TakePositions): Read {
  let count = 0
  for (let byte = 0; byte < bitmapBytes; byte += 1) {
    const bits = view.getUint8(at + byte)
    for (let bit = 0; bit < 8; bit += 1) {
      if (((bits >> bit) & 1) === 0) continue
      take(8 * byte + bit, 8 * byte + bit + 1)
      count += 1
    }
  }
  return { count, end: at + bitmapBytes }
}

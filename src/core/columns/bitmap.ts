/** `length` bits from bit `from` on, moved to the beginning; the same memory if they lie at a byte. */
export function bitmapFrom(bitmap: Uint8Array, from: number, length: number): Uint8Array {
  const bytes = (length + 7) >> 3
  const first = from >> 3
  const shift = from & 7
  if (shift === 0) return bitmap.subarray(first, first + bytes)
  const moved = new Uint8Array(bytes)
  for (let at = 0; at < bytes; at += 1) {
    const low = (bitmap[first + at] ?? 0) >> shift
    moved[at] = low | ((bitmap[first + at + 1] ?? 0) << (8 - shift))
  }
  return moved
}

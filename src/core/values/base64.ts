/** Value of each base64 sign, 64 for `=`, 255 for every other byte. */
const signs = new Uint8Array(256).fill(255)
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/='
for (let index = 0; index < alphabet.length; index += 1) signs[alphabet.charCodeAt(index)] = index

/**
 * Decodes padded base64 (RFC 4648 §4) strictly: no other byte, no missing padding, and no set bit
 * that would be dropped. Nothing is returned when the text is anything else.
 */
export function decodeBase64(text: Uint8Array, from: number, to: number): Uint8Array | undefined {
  const size = to - from
  if (size % 4 !== 0) return undefined
  const padding = size === 0 ? 0 : text[to - 2] === 61 ? 2 : text[to - 1] === 61 ? 1 : 0
  const bytes = new Uint8Array((size / 4) * 3 - padding)
  let end = 0
  for (let at = from; at < to; at += 4) {
    const last = at + 4 === to ? padding : 0
    const a = signs[text[at] ?? 0] ?? 255
    const b = signs[text[at + 1] ?? 0] ?? 255
    const c = last === 2 ? padValue(text[at + 2]) : (signs[text[at + 2] ?? 0] ?? 255)
    const d = last >= 1 ? padValue(text[at + 3]) : (signs[text[at + 3] ?? 0] ?? 255)
    if (a > 63 || b > 63 || c > 63 || d > 63) return undefined
    if ((last === 2 && (b & 15) !== 0) || (last === 1 && (c & 3) !== 0)) return undefined
    const word = (a << 18) | (b << 12) | (c << 6) | d
    if (end < bytes.length) bytes[end++] = word >> 16
    if (end < bytes.length) bytes[end++] = (word >> 8) & 255
    if (end < bytes.length) bytes[end++] = word & 255
  }
  return bytes
}

function padValue(byte: number | undefined): number {
  return byte === 61 ? 0 : 255
}

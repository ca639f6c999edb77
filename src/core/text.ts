/**
 * Makes text from outside safe to show on a terminal: control characters and the characters that
 * reorder or hide text become `\x1b` and `\u202e`. Line breaks and tabs are control characters too.
 */
export function escapeText(text: string): string {
  return text.replace(unsafe, (character) => {
    const code = character.charCodeAt(0)
    return code < 256
      ? `\\x${code.toString(16).padStart(2, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** Whether a name holds a character that `escapeText` would replace. */
export function hasUnsafeCharacter(text: string): boolean {
  return text.search(unsafe) >= 0
}

/** Cuts text to `max` code points, the last of which is then `…`. Never splits a surrogate pair. */
export function cutText(text: string, max = 80): string {
  if (text.length <= max) return text
  const points = Array.from(text)
  return points.length <= max ? text : `${points.slice(0, max - 1).join('')}…`
}

/** What a message shows of an offending value: quoted, escaped, and at most 80 characters of it. */
export function quoteValue(text: string): string {
  return `"${escapeText(cutText(text))}"`
}

/** `1,080,000`. */
export function formatCount(count: bigint | number): string {
  return count.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** Bytes with powers of 1000, as disks are sold: `61 kB`, `4.2 MB`. */
export function formatBytes(bytes: number): string {
  let rest = bytes
  let unit = 0
  while (rest >= 999.5 && unit < byteUnits.length - 1) {
    rest /= 1000
    unit += 1
  }
  const digits = unit > 0 && rest < 9.95 ? 1 : 0
  return `${rest.toFixed(digits)} ${byteUnits[unit] ?? ''}`
}

/** `0.4 s`, `27.1 s`, `4 min 07 s`, `2 h 05 min`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.095) return `${seconds.toFixed(2)} s`
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${twoDigits(whole % 60)} s`
  return `${Math.floor(whole / 3600)} h ${twoDigits(Math.floor((whole % 3600) / 60))} min`
}

/** `3:07` or `1:02:03`; for what is left on a clock face. */
export function formatClock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const hours = Math.floor(whole / 3600)
  const minutes = Math.floor((whole % 3600) / 60)
  if (hours === 0) return `${minutes}:${twoDigits(whole % 60)}`
  return `${hours}:${twoDigits(minutes)}:${twoDigits(whole % 60)}`
}

/** `1 record`, `2 records`. */
export function counted(count: bigint | number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 || count === 1n ? '' : 's'}`
}

/** Columns text takes on a terminal: wide East Asian characters and emoji take two, marks none. */
export function displayWidth(text: string): number {
  if (plainAscii.test(text)) return text.length
  let width = 0
  for (const point of text) width += mark.test(point) ? 0 : wide.test(point) ? 2 : 1
  return width
}

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

// C0, DEL, C1, zero-width space, the bidirectional controls, line and paragraph separator, the byte
// order mark, and halves of surrogate pairs that stand alone.
const unsafe =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
const plainAscii = /^[\x20-\x7e]*$/
const mark = /^[\p{Mn}\p{Me}\u200c\u200d\ufe0f]/u
const wide =
  /^[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u

function twoDigits(value: number): string {
  return value.toString().padStart(2, '0')
}

import { SluiceError } from './errors.ts'
import { quoteValue } from './text.ts'

/** What sizes look like, for messages. */
export const sizeForms = '268435456, 512MiB, 2GiB'

/**
 * Reads a size in bytes. Every unit is a power of 1024, `kb` and `kib` alike, because Fluss and Flink
 * read them so and their values are pasted here.
 * @param subject What the value was given for, such as `--memory`; begins the message.
 * @throws SluiceError CONFIG_INVALID
 */
export function parseSize(text: string, subject: string, minimum = 1): number {
  const parts = form.exec(text.trim())
  const power = units.get(parts?.[2]?.toLowerCase() ?? '')
  const bytes = parts === null || power === undefined ? NaN : Number(parts[1]) * 1024 ** power
  if (Number.isNaN(bytes)) throw refuse(text, subject, '')
  if (bytes < minimum) throw refuse(text, subject, `: at least ${formatSize(minimum)}`)
  if (bytes > sizeMax) throw refuse(text, subject, ': at most 8192GiB')
  return bytes
}

/** The shortest exact form that `parseSize` reads back: `512MiB`, `1000`. */
export function formatSize(bytes: number): string {
  for (const [name, power] of printed) {
    const size = 1024 ** power
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${name}`
  }
  return bytes.toString()
}

const sizeMax = 8 * 1024 ** 4
const form = /^(\d{1,15})\s?([a-z]*)$/i
const printed = [
  ['GiB', 3],
  ['MiB', 2],
  ['KiB', 1],
] as const
const units: ReadonlyMap<string, number> = new Map([
  ['', 0],
  ['b', 0],
  ...['k', 'kb', 'kib'].map((name) => [name, 1] as const),
  ...['m', 'mb', 'mib'].map((name) => [name, 2] as const),
  ...['g', 'gb', 'gib'].map((name) => [name, 3] as const),
])

function refuse(text: string, subject: string, why: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `${subject} ${quoteValue(text)} is not a size${why}`, {
    fix: sizeForms,
    details: { value: text, accepted: sizeForms },
  })
}

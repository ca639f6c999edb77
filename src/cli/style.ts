import { displayWidth } from '../core/text.ts'

/** Colors and weights; each function gives the text back unchanged where there is no color. */
export type Style = {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly blue: (text: string) => string
  readonly cyan: (text: string) => string
  readonly magenta: (text: string) => string
}

export function styleOf(color: 'color' | 'plain'): Style {
  const code =
    (on: number, off: number) =>
    (text: string): string =>
      color === 'color' && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text
  return {
    bold: code(1, 22),
    dim: code(2, 22),
    red: code(31, 39),
    green: code(32, 39),
    yellow: code(33, 39),
    blue: code(34, 39),
    cyan: code(36, 39),
    magenta: code(35, 39),
  }
}

/** Signs that not every terminal can show. */
export type Marks = {
  readonly ok: string
  readonly fail: string
  readonly full: string
  readonly half: string
  readonly empty: string
  readonly dash: string
  readonly arrow: string
  readonly dot: string
  readonly times: string
  readonly more: string
}

export const unicodeMarks: Marks = {
  ok: '✓',
  fail: '✗',
  full: '█',
  half: '▓',
  empty: '░',
  dash: '–',
  arrow: '→',
  dot: '·',
  times: '×',
  more: '…',
}

export const asciiMarks: Marks = {
  ok: 'ok',
  fail: 'FAIL',
  full: '#',
  half: '=',
  empty: '.',
  dash: '-',
  arrow: '->',
  dot: '|',
  times: 'x',
  more: '...',
}

/** The sequences that styles are made of. */
const sequence = /\u001b\[[0-9;?]*[A-Za-z]/g

/** Own signs in messages, for terminals that cannot show them. Not for data. */
export function asciiText(text: string): string {
  return text.replace(/[✓✗█▓░–→·×…]/g, (sign) => asciiOf.get(sign) ?? sign)
}

const asciiOf: ReadonlyMap<string, string> = new Map(
  Object.entries({ '✓': 'ok', '✗': 'FAIL', '█': '#', '▓': '=', '░': '.', '–': '-' }).concat(
    Object.entries({ '→': '->', '·': '|', '×': 'x', '…': '...' }),
  ),
)

/** Columns of text that may hold styles. */
export function visibleWidth(text: string): number {
  return displayWidth(text.replace(sequence, ''))
}

/** Pads to `width` columns; `start` aligns to the left. Text that is wider stays as it is. */
export function pad(text: string, width: number, align: 'start' | 'end' = 'start'): string {
  const space = ' '.repeat(Math.max(0, width - visibleWidth(text)))
  return align === 'start' ? text + space : space + text
}

/** Cuts styled text to `width` columns, keeping every style sequence so that none stays open. */
export function cutVisible(text: string, width: number): string {
  if (visibleWidth(text) <= width) return text
  let left = Math.max(0, width)
  let cut = ''
  let at = 0
  for (const match of [...text.matchAll(sequence), undefined]) {
    for (const point of text.slice(at, match?.index)) {
      const columns = displayWidth(point)
      if (columns <= left) cut += point
      left = columns <= left ? left - columns : 0
    }
    if (match === undefined) break
    cut += match[0]
    at = match.index + match[0].length
  }
  return cut
}

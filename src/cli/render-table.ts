import { escapeText } from '../core/text.ts'
import { type Marks, pad, type Style, unicodeMarks, visibleWidth } from './style.ts'

export type TableColumn = {
  readonly title: string
  /** Numbers stand at the right and are never cut. */
  readonly kind: 'text' | 'number'
}

export type TableView = {
  readonly marks: Marks
  readonly style: Style
  /** Columns of the terminal; undefined where nothing is cut, as in a pipe. */
  readonly width: number | undefined
}

/** A column narrower than this says nothing any more. */
const columnMin = 4

/** A table in a box, as wide as its content. If that is too wide, the widest text column is cut. */
export function renderBox(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  view: TableView,
): string {
  const { titles, cells, widths } = measured(columns, rows)
  if (view.width !== undefined) shrink(widths, columns, view.width - 3 * columns.length - 1)
  const box = view.marks === unicodeMarks ? unicodeBox : asciiBox
  const line = ([left, fill, cross, right]: Line): string =>
    view.style.dim(`${left}${widths.map((width) => fill.repeat(width + 2)).join(cross)}${right}`)
  const bar = view.style.dim(box.bar)
  const row = (texts: readonly string[], decorate: (text: string) => string): string => {
    const padded = columns.map((column, index) => {
      const width = widths[index] ?? 0
      const text = cutCell(texts[index] ?? '', width, view.marks)
      return ` ${decorate(pad(text, width, column.kind === 'number' ? 'end' : 'start'))} `
    })
    return `${bar}${padded.join(bar)}${bar}`
  }
  return [
    line(box.top),
    row(titles, view.style.bold),
    line(box.middle),
    ...cells.map((cell) => row(cell, (text) => text)),
    line(box.bottom),
  ].join('\n')
}

/**
 * Places of the columns to show in `width`: where all are too wide, those of the system are left out,
 * the last one first, before any text is cut.
 */
export function columnsThatFit(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): readonly number[] {
  const { widths } = measured(columns, rows)
  const kept = columns.map((_, index) => index)
  const isSystem = (index: number): boolean => columns[index]?.title.startsWith('__') === true
  if (kept.every(isSystem)) return kept
  for (;;) {
    const needed = kept.reduce((sum, index) => sum + (widths[index] ?? 0) + 3, 1)
    const last = kept.findLastIndex(isSystem)
    if (needed <= width || last < 0) return kept
    kept.splice(last, 1)
  }
}

function measured(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
): {
  readonly titles: readonly string[]
  readonly cells: readonly (readonly string[])[]
  readonly widths: number[]
} {
  const titles = columns.map((column) => escapeText(column.title))
  const cells = rows.map((row) => row.map((cell) => escapeText(cell)))
  const widths = columns.map((_, index) =>
    Math.max(
      visibleWidth(titles[index] ?? ''),
      ...chunkedMax(cells.map((row) => visibleWidth(row[index] ?? ''))),
    ),
  )
  return { titles, cells, widths }
}

type Line = readonly [left: string, fill: string, cross: string, right: string]

const unicodeBox: Record<'top' | 'middle' | 'bottom', Line> & { readonly bar: string } = {
  top: ['┌', '─', '┬', '┐'],
  middle: ['├', '─', '┼', '┤'],
  bottom: ['└', '─', '┴', '┘'],
  bar: '│',
}

const asciiBox: typeof unicodeBox = {
  top: ['+', '-', '+', '+'],
  middle: ['+', '-', '+', '+'],
  bottom: ['+', '-', '+', '+'],
  bar: '|',
}

/** Takes space from the widest text column, one column of the terminal at a time. */
function shrink(widths: number[], columns: readonly TableColumn[], available: number): void {
  let excess = widths.reduce((sum, width) => sum + width, 0) - available
  while (excess > 0) {
    let widest = -1
    for (const [index, column] of columns.entries()) {
      const width = widths[index] ?? 0
      if (column.kind === 'number' || width <= columnMin) continue
      if (widest < 0 || width > (widths[widest] ?? 0)) widest = index
    }
    if (widest < 0) return
    widths[widest] = (widths[widest] ?? 0) - 1
    excess -= 1
  }
}

function cutCell(text: string, width: number, marks: Marks): string {
  if (visibleWidth(text) <= width) return text
  const room = width - marks.more.length
  let cut = ''
  for (const point of text) {
    if (visibleWidth(cut + point) > room) break
    cut += point
  }
  return cut + marks.more
}

/** `Math.max` takes its arguments on the stack, which a long column would overflow. */
function chunkedMax(values: readonly number[]): readonly number[] {
  let most = 0
  for (const value of values) most = Math.max(most, value)
  return [most]
}

import { formatDuration } from '../core/duration.ts'
import { formatCount } from '../core/text.ts'
import type { JobView, TableView } from '../sink/job/job-view.ts'
import type { DemoCommit, DemoPart } from './demo-world.ts'
import { epochOf } from './render-receipt.ts'
import { type Marks, pad, type Style } from './style.ts'

export type ScreenView = { readonly style: Style; readonly marks: Marks }

export type ScreenState = {
  /** Seconds of demo time. */
  readonly at: number
  readonly parts: readonly DemoPart[]
  readonly job: JobView | undefined
  readonly commits: readonly DemoCommit[]
  readonly isDraining: boolean
}

const barWidth = 16
const commitsShownMax = 10
const columns = [11, 6, 12, 7, 6, 26, 9, 13] as const

/** The whole screen, line by line. */
export function renderScreen(state: ScreenState, view: ScreenView): readonly string[] {
  const { style } = view
  const titles = ['TABLE', 'KIND', 'STATE', 'EPOCH', 'QUEUE', 'SPLITS done/run/all', 'LAG']
  const head = row([...titles, 'ROWS IN LAKE', '  NEXT DUE'].map(style.dim))
  const known = new Map(state.job?.tables.map((table) => [table.name, table]))
  return [
    statusLine(state, view),
    head,
    ...state.parts.map((part) => tableLine(part, known.get(part.opened.table.name), state, view)),
    readersLine(state, view),
    ...commitLines(state, view),
  ]
}

/** One commit, as the screen and plain output show it. */
export function commitLine(commit: DemoCommit, { style }: ScreenView): string {
  const table = commit.table.replace(/^demo\./, '')
  const color = colorOf(table, style)
  const forced = commit.forceFinished ? style.yellow('   force-finished') : ''
  return (
    `T+${clock(commit.at)}  ${color(pad(table, 10))} round ${commit.round}  ` +
    `epoch ${epochOf(commit)}  ${pad(commit.files.toString(), 3, 'end')} files  ` +
    `${pad(formatCount(commit.rows), 9, 'end')} rows   peak lag ${span(commit.peakLag)}${forced}`
  )
}

function statusLine(state: ScreenState, { style, marks }: ScreenView): string {
  const { job, at } = state
  const time = style.bold(`T${at < 0 ? '-' : '+'}${clock(Math.abs(at))}`)
  if (job === undefined) return `${time}   the tables wait their first freshness`
  const age =
    job.heardAt === undefined ? 'none yet' : `${Math.floor((job.now - job.heardAt) / 1000)} s ago`
  const queued = job.tables
    .filter((table) => table.queuePosition !== undefined)
    .sort((a, b) => (a.queuePosition ?? 0) - (b.queuePosition ?? 0))
    .map((table) => shortName(table.name))
  const queue = queued.length === 0 ? 'empty' : queued.join(` ${marks.arrow} `)
  const phase = state.isDraining ? 'production over, draining' : 'job ok'
  const right = `${phase}, heartbeat ${age} ${marks.dot} queue: ${queue}`
  return `${pad(time, 34)}${style.dim(right)}`
}

function tableLine(
  part: DemoPart,
  table: TableView | undefined,
  state: ScreenState,
  { style, marks }: ScreenView,
): string {
  const { name } = part.table
  const lag = state.at - part.visibleUntil
  const isAllIn = part.rowsInLake === BigInt(part.producer.rows)
  const due = table?.dueInMs === undefined ? marks.dash : `in ${span(table.dueInMs / 1000)}`
  const position = table?.queuePosition
  return row([
    colorOf(name, style)(name),
    'log',
    stateText(table, style, marks),
    table === undefined ? marks.dash : epochOf(table),
    position === undefined ? marks.dash : (position + 1).toString(),
    splitsText(table, style, marks),
    pad(isAllIn ? style.green('none') : span(Math.max(0, lag)), columns[6] - 2, 'end'),
    pad(formatCount(part.rowsInLake), columns[7] - 1, 'end'),
    `  ${due}`,
  ])
}

function stateText(table: TableView | undefined, style: Style, marks: Marks): string {
  switch (table?.state) {
    case 'Tiering':
      return style.green('Tiering')
    case 'Pending':
      return style.yellow('Pending')
    case 'Failed':
      return style.red('Failed')
    case undefined:
      return marks.dash
    case 'New':
    case 'Scheduled':
    case 'Tiered':
      return table.state
  }
}

/** Done splits are full, running ones half, waiting ones empty. */
function splitsText(table: TableView | undefined, style: Style, marks: Marks): string {
  if (table?.splits === undefined) return marks.dash
  const { done, running, all } = table.splits
  const cells = Math.min(barWidth, all)
  const cellsOf = (count: number): number => Math.round((count * cells) / all)
  const full = cellsOf(done)
  const half = Math.max(0, cellsOf(done + running) - full)
  const bar =
    style.green(marks.full.repeat(full)) +
    style.cyan(marks.half.repeat(half)) +
    style.dim(marks.empty.repeat(Math.max(0, cells - full - half)))
  return `${pad(bar, barWidth)} ${done}/${running}/${all}`
}

function readersLine(state: ScreenState, { style, marks }: ScreenView): string {
  const letters = new Map(
    state.parts.map(({ table, opened }) => [opened.table.name, { table, text: table.letter }]),
  )
  const readers = (state.job?.readers ?? []).map((held) => {
    const letter = held === undefined ? undefined : letters.get(held)
    return letter === undefined
      ? style.dim('.')
      : style.bold(colorOf(letter.table.name, style)(letter.text))
  })
  const groups: string[] = []
  for (let at = 0; at < readers.length; at += 4) groups.push(readers.slice(at, at + 4).join(' '))
  const legend = state.parts
    .map(({ table }) => `${table.letter} ${table.name}`)
    .concat('. idle')
    .join(` ${marks.dot} `)
  return `${style.dim(pad('READERS', columns[0]))}${groups.join('  ')}    ${style.dim(legend)}`
}

function commitLines(state: ScreenState, view: ScreenView): readonly string[] {
  const { style } = view
  const shown = state.commits.slice(-commitsShownMax)
  const hidden = state.commits.length - shown.length
  const more = hidden > 0 ? `, ${hidden} earlier` : ''
  return [
    style.dim(`COMMITS    (serialized, in completion order${more})`),
    ...shown.map((commit) => `  ${commitLine(commit, view)}`),
  ]
}

function row(cells: readonly string[]): string {
  return cells.map((cell, index) => pad(cell, columns[index] ?? 0)).join('')
}

function colorOf(table: string, style: Style): (text: string) => string {
  return table === 'clicks' ? style.cyan : table === 'orders' ? style.yellow : style.magenta
}

function shortName(table: string): string {
  return table.replace(/^demo\./, '')
}

/** `02:35`. */
function clock(seconds: number): string {
  const whole = Math.floor(seconds)
  const minutes = Math.floor(whole / 60)
  return `${minutes.toString().padStart(2, '0')}:${(whole % 60).toString().padStart(2, '0')}`
}

/** `2m35s`, the short form that fits a column. */
function span(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole <= 0) return '0s'
  const text = formatDuration(whole * 1000).replace('min', 'm')
  return whole >= 60 && whole % 60 !== 0
    ? text.replace(/m(\d)s$/, 'm0$1s')
    : text.replace(/m$/, 'm00s')
}

import {
  counted,
  escapeText,
  formatBytes,
  formatClock,
  formatCount,
  formatSeconds,
} from '../core/text.ts'
import { epochOf } from './render-receipt.ts'
import type { Terminal } from './terminal.ts'
import type { TierEvent } from './tier-request.ts'

/** Between two lines where nothing can be redrawn. */
const lineEveryMs = 10_000
/** Cells of the bar, by whether the terminal is wide enough for all the rest beside it. */
const barWidths = { wide: 20, narrow: 8 } as const
const wideFrom = 92

export type Progress = {
  event(event: TierEvent): void
  /** Removes the bar; the receipt follows. */
  end(): void
}

type Snapshot = Extract<TierEvent, { event: 'progress' }>

/**
 * Shows how a run goes: a bar on a terminal, else a line at each commit and every 10 s. Notes and
 * what was created come as lines in both.
 */
export function showProgress(terminal: Terminal, now: () => number): Progress {
  const { style, marks } = terminal
  const startedAt = now()
  let saidAt = startedAt

  const say = (text: string): void => {
    terminal.note(text)
    saidAt = now()
  }
  const seconds = (): number => Math.max(0.001, (now() - startedAt) / 1000)

  return {
    event: (event) => {
      switch (event.event) {
        case 'created': {
          const buckets = `${event.buckets} bucket${event.buckets === 1 ? '' : 's'}`
          const columns = event.columns.map(({ name, type }) => `${escapeText(name)} ${type}`)
          say(`created ${style.bold(event.table)} (${buckets}): ${listed(columns)}`)
          break
        }
        case 'note':
          say(`  ${style.dim('note')}  ${escapeText(event.message)}`)
          break
        case 'resuming': {
          const fenced = event.fenced === undefined ? '' : `; epoch ${event.fenced} is fenced`
          const there = `${formatCount(event.records)} records are in the lake`
          say(`resuming ${event.table}: ${there} (round ${event.round})${fenced}`)
          break
        }
        case 'progress':
          if (terminal.isLive) terminal.draw([barLine(event, seconds())])
          else if (now() - saidAt >= lineEveryMs) say(plainLine(event, seconds()))
          break
        case 'committed': {
          if (terminal.isLive) break
          const rows = counted(event.rows, 'row')
          const forced = event.forceFinished ? ', force-finished' : ''
          const when = `${formatSeconds(event.seconds)}${forced}`
          const id =
            event.snapshotId === undefined ? '' : `  snapshot ${event.snapshotId.toString()}`
          say(`${event.table}  round ${event.round} epoch ${epochOf(event)}  ${rows}  ${when}${id}`)
          break
        }
      }
    },
    end: () => {
      terminal.clear()
    },
  }

  function barLine(at: Snapshot, elapsed: number): string {
    const rate = at.bytes / elapsed
    const parts = [escapeText(at.input)]
    if (at.bytesTotal !== undefined && at.bytesTotal > 0) {
      const barWidth = terminal.width >= wideFrom ? barWidths.wide : barWidths.narrow
      const share = Math.min(1, at.bytes / at.bytesTotal)
      const full = Math.floor(share * barWidth)
      const bar = marks.full.repeat(full) + style.dim(marks.empty.repeat(barWidth - full))
      parts.push(bar, `${Math.floor(share * 100).toString()} %`)
    }
    parts.push(`${millions(at.records)} records`, `${formatBytes(rate)}/s`)
    if (at.bytesTotal !== undefined && rate > 0 && elapsed > 1) {
      parts.push(`${formatClock((at.bytesTotal - at.bytes) / rate)} left`)
    }
    const round = at.round > 0 ? `, round ${at.round}` : ''
    return `${parts.join('  ')}   committed ${millions(at.committed)}${round}`
  }

  function plainLine(at: Snapshot, elapsed: number): string {
    const share =
      at.bytesTotal === undefined || at.bytesTotal === 0
        ? ''
        : `${Math.floor((100 * at.bytes) / at.bytesTotal)} %  `
    const rate = `${formatBytes(at.bytes / elapsed)}/s`
    const done = `${formatCount(at.records)} records read, ${formatCount(at.committed)} committed`
    return `${escapeText(at.input)}  ${share}${done}  ${rate}`
  }

  function listed(columns: readonly string[]): string {
    if (columns.length <= 12) return columns.join(', ')
    return `${columns.slice(0, 12).join(', ')} and ${columns.length - 12} more`
  }
}

/** `11.2 M` from a million on, all digits below: a bar has little room. */
function millions(count: bigint): string {
  if (count < 1_000_000n) return formatCount(count)
  const tenths = count / 100_000n
  return `${formatCount(tenths / 10n)}.${(tenths % 10n).toString()} M`
}

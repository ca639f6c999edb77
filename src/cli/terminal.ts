import type { Environment } from './config.ts'
import {
  asciiMarks,
  asciiText,
  cutVisible,
  type Marks,
  type Style,
  styleOf,
  unicodeMarks,
} from './style.ts'

/** What a command needs of a stream of the process. */
export interface TextStream {
  write(text: string, done?: () => void): boolean
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

export type TerminalOptions = {
  readonly stdout: TextStream
  readonly stderr: TextStream
  readonly environment: Environment
  readonly color: 'auto' | 'always' | 'never'
  readonly quiet: boolean
  /** Milliseconds that never go back. */
  readonly now: () => number
}

/**
 * Where a command writes: its result to stdout, everything else to stderr. Redraws a few lines on a
 * terminal, at most ten times a second, and never where nobody looks.
 */
export interface Terminal {
  /** For what stands on stdout. */
  readonly outStyle: Style
  /** For what stands on stderr. */
  readonly style: Style
  readonly marks: Marks
  readonly width: number
  readonly rows: number
  /** Whether `draw` shows anything. */
  readonly isLive: boolean
  readonly isQuiet: boolean
  /** Whether the result is read by a person now: thousands separators, local time, cut tables. */
  readonly outIsTerminal: boolean
  /** One or more lines of the result. */
  result(text: string): void
  /** As `result`, without a line break at the end. */
  rawResult(text: string): void
  /** Progress, notes and warnings; nothing with `--quiet`. */
  note(text: string): void
  error(text: string): void
  /** Replaces the lines drawn before. Called too early it does nothing, unless `now` is asked for. */
  draw(lines: readonly string[], when?: 'soon' | 'now'): void
  /** Removes what was drawn. */
  clear(): void
  /** Leaves what was drawn and shows the cursor again. */
  settle(): void
  /** Resolves when everything is written. */
  flush(): Promise<void>
}

const redrawEveryMs = 100

export function openTerminal(options: TerminalOptions): Terminal {
  const { stdout, stderr, environment, now } = options
  const isDumb = environment['TERM'] === 'dumb'
  const isCi = isSet(environment['CI'])
  const isLive = stderr.isTTY === true && !isDumb && !isCi && !options.quiet
  const hasUnicode = isUtf8(environment)
  const plain = (text: string): string => (hasUnicode ? text : asciiText(text))
  let drawn: readonly string[] = []
  let drawnAt = Number.NEGATIVE_INFINITY

  const colorFor = (stream: TextStream): Style => {
    if (options.color !== 'auto') return styleOf(options.color === 'always' ? 'color' : 'plain')
    const isPlain = stream.isTTY !== true || isDumb || isCi || isSet(environment['NO_COLOR'])
    return styleOf(isPlain ? 'plain' : 'color')
  }
  const widthOf = (): number => {
    const told = Number(environment['COLUMNS'])
    if (Number.isInteger(told) && told > 0) return told
    return sizeOr(80, stdout.columns, stderr.columns)
  }
  const rowsOf = (): number => sizeOr(24, stderr.rows)
  const erase = (): void => {
    if (drawn.length > 0) stderr.write(`\u001b[${drawn.length}A\u001b[J`)
    drawn = []
  }
  const write = (stream: TextStream, text: string): void => {
    const kept = drawn
    erase()
    stream.write(text)
    if (kept.length > 0) paint(kept)
  }
  const paint = (lines: readonly string[]): void => {
    stderr.write(lines.map((line) => `${line}\n`).join(''))
    drawn = lines
  }

  return {
    outStyle: colorFor(stdout),
    style: colorFor(stderr),
    marks: hasUnicode ? unicodeMarks : asciiMarks,
    get width() {
      return widthOf()
    },
    get rows() {
      return rowsOf()
    },
    isLive,
    isQuiet: options.quiet,
    outIsTerminal: stdout.isTTY === true,
    result: (text) => {
      write(stdout, `${text}\n`)
    },
    rawResult: (text) => {
      write(stdout, text)
    },
    note: (text) => {
      if (!options.quiet) write(stderr, `${plain(text)}\n`)
    },
    error: (text) => {
      write(stderr, `${plain(text)}\n`)
    },
    draw: (lines, when = 'soon') => {
      if (!isLive || (when === 'soon' && now() - drawnAt < redrawEveryMs)) return
      const width = Math.max(20, widthOf() - 1)
      // Lines that scroll out of the window could not be taken back.
      const kept = lines.slice(0, Math.max(1, rowsOf() - 1))
      const first = drawnAt === Number.NEGATIVE_INFINITY ? '\u001b[?25l' : ''
      const up = drawn.length > 0 ? `\u001b[${drawn.length}A` : ''
      const text = kept.map((line) => `${cutVisible(line, width)}\u001b[K\n`).join('')
      const rest = drawn.length > kept.length ? '\u001b[J' : ''
      stderr.write(`${first}${up}${text}${rest}`)
      drawn = kept.map((line) => cutVisible(line, width))
      drawnAt = now()
    },
    clear: () => {
      erase()
      showCursor()
    },
    settle: () => {
      drawn = []
      showCursor()
    },
    flush: async () => {
      showCursor()
      for (const stream of [stdout, stderr]) {
        await new Promise<void>((resolve) => {
          stream.write('', () => {
            resolve()
          })
        })
      }
    },
  }

  function showCursor(): void {
    if (drawnAt !== Number.NEGATIVE_INFINITY) stderr.write('\u001b[?25h')
    drawnAt = Number.NEGATIVE_INFINITY
  }
}

/** The first size that is known; a terminal that does not know its own says 0. */
function sizeOr(otherwise: number, ...sizes: readonly (number | undefined)[]): number {
  return sizes.find((size) => size !== undefined && size > 0) ?? otherwise
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== ''
}

/** The first of these variables that is set decides, as in POSIX. */
function isUtf8(environment: Environment): boolean {
  const locale = ['LC_ALL', 'LC_CTYPE', 'LANG'].map((name) => environment[name]).find(isSet)
  return /utf-?8/i.test(locale ?? '')
}

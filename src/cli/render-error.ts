import { errorCodes, isSluiceError, SluiceError } from '../core/errors.ts'
import type { JsonObject } from '../core/json64.ts'
import { redactUrls } from '../core/secret.ts'
import { cutText, escapeText } from '../core/text.ts'
import { asJson } from './json.ts'
import { ManyProblems } from './problems.ts'
import type { Style } from './style.ts'

export type ErrorView = {
  readonly style: Style
  /** Shows the stack too. */
  readonly verbose: boolean
  /** Which signal ended the command, if one did. */
  readonly signal?: 'SIGINT' | 'SIGTERM' | undefined
  /** Paths under this folder are shown as the user would type them there. */
  readonly folder?: string
}

/** The exit status of a command that ends by this error. */
export function exitOf(error: unknown, signal?: 'SIGINT' | 'SIGTERM'): number {
  const known = asSluiceError(error)
  if (known.code === 'STOPPED' && signal === 'SIGTERM') return 143
  return errorCodes[known.code].exit
}

/** An error as a person reads it: what is wrong, then only the lines that add something. */
export function renderError(error: unknown, view: ErrorView): string {
  if (error instanceof ManyProblems) {
    const lines = error.problems.flatMap((problem) => headAndFix(problem, view))
    return [...lines, codeLine(error, view)].join('\n')
  }
  const known = asSluiceError(error)
  const lines = [headLine(known, view)]
  if (known.where !== undefined) lines.push(`  where  ${shown(known.where, view)}`)
  if (known.state !== undefined) lines.push(`  state  ${shown(known.state, view)}`)
  if (known.fix !== undefined) lines.push(`  fix    ${shown(known.fix, view)}`)
  // A slip on the command line needs no reference; the line above says what to type.
  if (known.code !== 'CONFIG_INVALID' || known.fix !== undefined) lines.push(codeLine(known, view))
  if (view.verbose) lines.push(...stackOf(error))
  return lines.join('\n')
}

/** The `error` member of a JSON document. */
export function errorJson(error: unknown, signal?: 'SIGINT' | 'SIGTERM'): JsonObject {
  const known = asSluiceError(error)
  return {
    code: known.code,
    message: redactUrls(known.message),
    effect: known.effect,
    details: asJson(known.details),
    fix: known.fix ?? null,
    ...(known.where === undefined ? {} : { where: known.where }),
    ...(known.state === undefined ? {} : { state: known.state }),
    exit: exitOf(known, signal),
  }
}

/** Whatever was thrown, as an error with a code. What nobody foresaw is a bug of ours. */
export function asSluiceError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  if (isSluiceError(error)) return error
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return new SluiceError('INVARIANT_BROKEN', `unexpected: ${cutText(message, 400)}`, {
    cause: error,
    fix: 'run again with -v and report what it shows',
  })
}

function headAndFix(problem: SluiceError, view: ErrorView): readonly string[] {
  const head = headLine(problem, view)
  return problem.fix === undefined ? [head] : [head, `  fix    ${shown(problem.fix, view)}`]
}

function headLine(error: SluiceError, view: ErrorView): string {
  const { style } = view
  return `${style.bold(style.red('error:'))} ${shown(error.message, view)}`
}

function codeLine(error: SluiceError, view: ErrorView): string {
  const page = `docs/reference/errors.md#${error.code.toLowerCase()}`
  return view.style.dim(`  code   ${error.code} (exit ${exitOf(error, view.signal)}) · ${page}`)
}

/** Messages may repeat text from records and file names; a last net under those that escape it. */
function shown(text: string, { folder }: ErrorView): string {
  const near = folder === undefined || folder === '/' ? text : relativePaths(text, folder)
  return redactUrls(escapeText(near))
}

function relativePaths(text: string, folder: string): string {
  const found = text.split(`${folder}/`)
  // In the middle of a longer path it is another folder.
  return found.reduce((before, after) => {
    const isStart = !/[\w.~-]$/.test(before)
    return isStart ? `${before.replace(/file:\/\/$/, '')}./${after}` : `${before}${folder}/${after}`
  })
}

function stackOf(error: unknown): readonly string[] {
  const lines: string[] = []
  let next: unknown = error
  for (let depth = 0; depth < 5 && next instanceof Error; depth += 1) {
    const title = depth === 0 ? '  stack' : '  cause'
    const frames = (next.stack ?? next.message).split('\n').slice(0, 30)
    lines.push(title, ...frames.map((frame) => `    ${redactUrls(escapeText(frame.trim()))}`))
    next = next.cause
  }
  return lines
}

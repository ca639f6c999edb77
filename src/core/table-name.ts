import { SluiceError } from './errors.ts'
import { cutText, escapeText, hasUnsafeCharacter } from './text.ts'

/** A part becomes the name of a folder, and file systems hold 255 bytes of those. */
const partBytesMax = 255
const partsMax = 8
/** Each byte of a part may be a doubled quote, and each part has two quotes and a dot. */
const textMax = partsMax * (2 * partBytesMax + 3)

/**
 * Reads `namespace.table`, `a.b.table`, `table` (in the namespace `default`) and quoted parts:
 * `demo."Flight.Data"`, with a doubled quote for a quote. Case is kept.
 * @returns the parts, the table last
 * @throws SluiceError NAME_INVALID, naming all that is wrong at once
 */
export function parseTableName(text: string): readonly string[] {
  if (text.length > textMax) throw refuse(text.slice(0, textMax), 'longer than any name')
  const read = readParts(text)
  const problems = new Set(read.problems)
  for (const part of read.parts) for (const problem of partProblems(part)) problems.add(problem)
  if (read.parts.length > partsMax) throw refuse(text, `at most ${partsMax} parts`)
  if (problems.size > 0) throw refuse(text, `a part may not ${[...problems].join(', or ')}`)
  return read.parts.length === 1 ? ['default', ...read.parts] : read.parts
}

/**
 * Checks parts that did not come from text, for instance from a catalog.
 * @throws SluiceError NAME_INVALID
 */
export function checkTableName(parts: readonly string[]): void {
  const problems = new Set(parts.flatMap((part) => partProblems(part)))
  if (parts.length < 2) throw refuse(parts.join('.'), 'it needs a namespace and a table')
  if (problems.size > 0) {
    throw refuse(parts.join('.'), `a part may not ${[...problems].join(', or ')}`)
  }
}

/** The canonical text of a name; `parseTableName` reads it back. Quotes only where they are needed. */
export function formatTableName(parts: readonly string[]): string {
  return parts
    .map((part) => (plainPart.test(part) ? part : `"${part.replaceAll('"', '""')}"`))
    .join('.')
}

/** Whether two names would be one folder where case does not count, although they are not equal. */
export function differsOnlyByCase(left: readonly string[], right: readonly string[]): boolean {
  const a = left.join('\0')
  const b = right.join('\0')
  return a !== b && a.toLowerCase() === b.toLowerCase()
}

const plainPart = /^[\p{L}\p{N}_$-][^\s."'`,;()]*$/u

type Read = { readonly parts: readonly string[]; readonly problems: readonly string[] }

function readParts(text: string): Read {
  const parts: string[] = []
  const problems: string[] = []
  let at = 0
  for (;;) {
    const quote = text[at]
    if (quote === '"' || quote === '`') {
      const quoted = readQuoted(text, at + 1, quote)
      if (quoted === undefined) throw refuse(text, `the ${quote} at ${at + 1} is not closed`)
      parts.push(quoted.part)
      at = quoted.end
      if (at < text.length && text[at] !== '.') {
        throw refuse(text, `"." must follow the part that ends at ${at}`)
      }
    } else {
      const slashed = readPath(text, at)
      if (slashed !== undefined) {
        problems.push(...slashed.problems)
        at = slashed.end
        parts.push(slashed.part)
      } else {
        const dot = text.indexOf('.', at)
        const end = dot < 0 ? text.length : dot
        parts.push(text.slice(at, end))
        at = end
      }
    }
    if (at >= text.length) return { parts, problems }
    at += 1
  }
}

function readQuoted(
  text: string,
  from: number,
  quote: string,
): { readonly part: string; readonly end: number } | undefined {
  let part = ''
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character !== quote) {
      part += character
    } else if (text[at + 1] === quote) {
      part += quote
      at += 1
    } else {
      return { part, end: at + 1 }
    }
  }
  return undefined
}

/** What follows looks like a path: its dots are not separators, so it is judged as one part. */
function readPath(
  text: string,
  from: number,
): { readonly part: string; readonly end: number; readonly problems: string[] } | undefined {
  const rest = text.slice(from)
  if (!/[/\\]/.test(rest)) return undefined
  const pieces = rest.split(/[/\\]/)
  const problems = ['..', '.'].filter((each) => pieces.includes(each)).map((each) => `be "${each}"`)
  return { part: rest, end: text.length, problems }
}

function partProblems(part: string): readonly string[] {
  const problems: string[] = []
  if (part === '') problems.push('be empty')
  if (part === '.' || part === '..') problems.push(`be "${part}"`)
  if (part.includes('/')) problems.push('contain "/"')
  if (part.includes('\\')) problems.push('contain "\\"')
  if (hasUnsafeCharacter(part)) problems.push('contain control or bidirectional characters')
  if (new TextEncoder().encode(part).length > partBytesMax) {
    problems.push(`be longer than ${partBytesMax} bytes`)
  }
  return problems
}

function refuse(text: string, why: string): SluiceError {
  const word = text.match(/[\p{L}\p{N}_-]+/gu)?.at(-1) ?? 'flights'
  const shown = escapeText(cutText(text))
  return new SluiceError('NAME_INVALID', `table name "${shown}": ${why}`, {
    fix: `namespace.table, for example demo.${cutText(word, 40)}`,
    details: { name: text },
  })
}

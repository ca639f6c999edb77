import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { SluiceError } from '../core/errors.ts'
import { quoteValue } from '../core/text.ts'
import { noSuchFile } from '../source/ingest/file-problem.ts'

/** More inputs than this in one run are most likely a wrong glob. */
const inputsMax = 100_000
const depthMax = 40

/**
 * Replaces each glob by the files it matches, in the order of their names, and keeps every other
 * argument as it is. A file whose name holds `*` is that file. Each path is taken once.
 * @throws SluiceError INPUT_UNREADABLE when a glob matches nothing
 */
export function expandInputs(inputs: readonly string[], folder: string): readonly string[] {
  const paths = new Set<string>()
  for (const input of inputs) {
    if (input === '-' || !/[*?[]/.test(input) || existsSync(resolve(folder, input))) {
      paths.add(input)
      continue
    }
    const matches = matchGlob(input, folder)
    if (matches.length === 0) {
      throw new SluiceError('INPUT_UNREADABLE', `${quoteValue(input)}: no file matches`)
    }
    for (const match of matches) paths.add(match)
    if (paths.size > inputsMax) {
      throw new SluiceError('INPUT_UNREADABLE', `more than ${inputsMax} inputs`)
    }
  }
  return [...paths]
}

/** The problem of an input that is not there, with the nearest name beside it. */
export function missingInput(input: string, folder: string): SluiceError | undefined {
  const path = resolve(folder, input)
  if (input === '-' || existsSync(path)) return undefined
  return noSuchFile(path, input, namesIn(dirname(path), folder))
}

/** `*` and `?` within one name, `[a-z]`, and `**` for folders of any depth. Hidden files only by name. */
export function matchGlob(pattern: string, folder: string): readonly string[] {
  const parts = pattern.split('/')
  const isAbsolute = parts[0] === ''
  const found: string[] = []
  walk(isAbsolute ? '/' : '', isAbsolute ? parts.slice(1) : parts, folder, found, 0)
  return [...new Set(found)].sort()
}

function walk(
  base: string,
  parts: readonly string[],
  folder: string,
  found: string[],
  depth: number,
): void {
  const [part, ...rest] = parts
  if (part === undefined || depth > depthMax) return
  if (part === '**') {
    walk(base, rest, folder, found, depth)
    for (const name of namesIn(base, folder)) {
      const path = join(base, name)
      if (!name.startsWith('.') && kindOf(path, folder) === 'folder') {
        walk(path, parts, folder, found, depth + 1)
      }
    }
    return
  }
  const names = /[*?[]/.test(part) ? matching(part, namesIn(base, folder)) : [part]
  for (const name of names) {
    // `join` would take the `./` away that the user wrote.
    const path = base === '' ? name : base.endsWith('/') ? `${base}${name}` : `${base}/${name}`
    const kind = kindOf(path, folder)
    if (rest.length === 0 && kind === 'file') found.push(path)
    else if (rest.length > 0 && kind === 'folder') walk(path, rest, folder, found, depth + 1)
  }
}

function matching(part: string, names: readonly string[]): readonly string[] {
  const source = part
    .replace(/[.+^${}()|\\]/g, '\\$&')
    .replace(/\[!/g, '[^')
    .replace(/\*/g, '[^/]*')
    .replace(/\?/g, '[^/]')
  let expression: RegExp
  try {
    expression = new RegExp(`^${source}$`, 'u')
  } catch {
    return names.filter((name) => name === part)
  }
  return names.filter((name) => expression.test(name) && (part.startsWith('.') || name[0] !== '.'))
}

function namesIn(base: string, folder: string): readonly string[] {
  try {
    return readdirSync(resolve(folder, base))
  } catch {
    return []
  }
}

function kindOf(path: string, folder: string): 'file' | 'folder' | 'other' {
  try {
    const status = statSync(resolve(folder, path))
    return status.isDirectory() ? 'folder' : 'file'
  } catch {
    return 'other'
  }
}

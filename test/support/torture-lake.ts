import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOfPart } from '../../src/catalog/iceberg/location.ts'
import { parseTableName } from '../../src/core/table-name.ts'
import {
  compareRows,
  type Engine,
  fastEngines,
  type InputRequest,
  readInput,
  readRows,
  type Rows,
  type TableRequest,
} from '../engines/engines.ts'

/** The folder of the repository, from sources and from compiled tests alike. */
export const repository = rootAbove(import.meta.dirname)

/** A folder that is removed after the tests of the file or suite that asked for it. */
export async function temporaryFolder(name: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), `sluice-${name}-`))
  after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** How a command ended. */
export type Ended = { readonly status: number | null; readonly out: string; readonly err: string }

/** Runs the compiled command line tool. */
export function sluice(args: readonly string[], options: { cwd?: string } = {}): Promise<Ended> {
  const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...options,
    })
    let out = ''
    let err = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
    child.on('error', reject)
    child.on('close', (status) => {
      resolve({ status, out, err })
    })
  })
}

/** What the tests look at in a receipt. */
export type ShownReceipt = {
  readonly rows: number
  readonly files: number
  readonly rounds: readonly unknown[]
}

/** Runs `sluice tier` with these arguments; it must succeed. */
export async function tier(args: readonly string[]): Promise<ShownReceipt> {
  const { status, out, err } = await sluice(['tier', ...args, '--json'])
  assert.equal(status, 0, err)
  const receipt: unknown = JSON.parse(out)
  assert.ok(isReceipt(receipt), out)
  return receipt
}

/** The folder of a table below a warehouse. */
export function tableIn(warehouse: string, name: string): string {
  return path.join(warehouse, ...parseTableName(name).map(folderOfPart))
}

/** What narrows a comparison of a table with its inputs. */
export type ComparisonOptions = {
  readonly engines?: readonly Engine[]
  /** Columns that an engine cannot read by a limit of its own. */
  readonly without?: Partial<Record<Engine, readonly string[]>>
  readonly columns?: readonly string[]
}

/** Reads a table with each engine and compares it, cell by cell, with the files that went in. */
export async function assertEnginesRead(
  input: InputRequest,
  options: ComparisonOptions = {},
): Promise<void> {
  const exact = await readInput(input)
  const loose = exact.digest === exact.looseDigest ? exact : readInput({ ...input, loose: true })
  const read = async (engine: Engine): Promise<void> => {
    const left = options.without?.[engine] ?? []
    const columns = options.columns?.filter((name) => !left.includes(name))
    const request: TableRequest = { engine, table: input.table, dataOnly: true }
    const actual = await readRows(columns === undefined ? request : { ...request, columns })
    const expected = engine === 'chdb' ? await loose : exact
    const kept = left.length === 0 ? expected : withoutColumns(expected, left)
    assert.deepEqual(cellDifferences(kept, actual), [], engine)
    assert.equal(actual.rows, expected.rows, engine)
  }
  await Promise.all((options.engines ?? fastEngines).map(read))
}

/** What differs between two sets of rows, cell by cell between the rows that are most alike. */
function cellDifferences(expected: Rows, actual: Rows): readonly string[] {
  const { equal, differences } = compareRows(expected, actual, 40)
  if (equal) return []
  const missing = lacking(expected.lines, actual.lines).slice(0, 40)
  const extra = lacking(actual.lines, expected.lines).map((line) => new Map(cellsOf(line)))
  const found = new Set<string>()
  for (const line of missing) {
    const cells = cellsOf(line)
    const alike = extra
      .map((other) => cells.filter(([name, cell]) => other.get(name) !== cell))
      .sort((a, b) => a.length - b.length)
      .at(0)
    const nearest = extra.find((other) =>
      cells.every(([name, cell]) => other.get(name) === cell || alike?.some(([n]) => n === name)),
    )
    for (const [name, cell] of alike ?? []) {
      found.add(`${name}: ${shown(nearest?.get(name))} instead of ${shown(cell)}`)
    }
  }
  return found.size === 0 ? differences : [...found].slice(0, 30)
}

function lacking(left: readonly string[], right: readonly string[]): string[] {
  const known = new Set(right)
  return left.filter((line) => !known.has(line))
}

function shown(cell: string | undefined): string {
  return cell === undefined ? 'nothing' : cell.slice(0, 100)
}

/** Drops cells of canonical rows; texts of cells are kept character for character. */
function withoutColumns<Set extends { readonly lines: readonly string[] }>(
  rows: Set,
  names: readonly string[],
): Set {
  return { ...rows, lines: rows.lines.map((line) => withoutCells(line, names)) }
}

function withoutCells(line: string, names: readonly string[]): string {
  const kept = cellsOf(line).filter(([name]) => !names.includes(name))
  return `{${kept.map(([name, cell]) => `${JSON.stringify(name)}:${cell}`).join(',')}}`
}

/** Name and text of each cell of a canonical row. */
export function cellsOf(line: string): readonly (readonly [string, string])[] {
  const cells: [string, string][] = []
  for (let at = 1; at < line.length - 1; at += 1) {
    const nameEnd = endOfValue(line, at)
    const end = endOfValue(line, nameEnd + 1)
    const name: unknown = JSON.parse(line.slice(at, nameEnd))
    cells.push([String(name), line.slice(nameEnd + 1, end)])
    at = end
  }
  return cells
}

/** Where the JSON value that begins at `from` ends. */
function endOfValue(text: string, from: number): number {
  let depth = 0
  let isText = false
  for (let at = from; ; at += 1) {
    const character = text[at]
    if (character === undefined) return at
    if (isText) {
      if (character === '\\') at += 1
      else if (character === '"') isText = false
    } else if (character === '"') isText = true
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') {
      if (depth === 0) return at
      depth -= 1
    } else if (depth === 0 && (character === ',' || character === ':')) return at
  }
}

function isReceipt(value: unknown): value is ShownReceipt {
  return typeof value === 'object' && value !== null && 'rows' in value && 'rounds' in value
}

function rootAbove(folder: string): string {
  if (existsSync(path.join(folder, 'package.json'))) return folder
  return rootAbove(path.dirname(folder))
}

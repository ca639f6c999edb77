import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** The engines that can read our tables; none shares its Iceberg metadata parser with another. */
export type Engine = 'pyiceberg' | 'duckdb' | 'chdb' | 'datafusion' | 'spark'

/** The engines of the fast set: the ones every change is checked with. */
export const fastEngines: readonly Engine[] = ['pyiceberg', 'duckdb', 'chdb']

/** Whether an engine can be used here, and what to do if not. */
export type EngineState =
  | { readonly available: true }
  | { readonly available: false; readonly reason: string }

/** What to read of a table. All but `engine` and `table` narrow it; the engine itself does so. */
export type TableRequest = {
  readonly engine: Engine
  /** Table folder or metadata.json: a path, a file: URL, or s3: with how to reach it. */
  readonly table: string
  readonly s3?: { readonly endpoint: string; readonly key: string; readonly secret: string }
  readonly columns?: readonly string[]
  /** A filter in SQL; quote names with `"`. */
  readonly where?: string
  /** A query over `{t}`; other columns than the table's get a type by what the engine returned. */
  readonly sql?: string
  readonly snapshot?: bigint
  /** Null lists, maps and structs as empty ones: all that chdb can tell. Default: for chdb only. */
  readonly loose?: boolean
  /** Leaves `__bucket`, `__offset` and `__timestamp` out. */
  readonly dataOnly?: boolean
}

/** Input files and the table whose schema says what they hold. */
export type InputRequest = {
  readonly files: readonly string[]
  /** Table folder or metadata.json; its system columns are left out. */
  readonly table: string
  readonly format?: 'ndjson' | 'csv' | 'parquet' | 'arrow'
  readonly delimiter?: string
  readonly loose?: boolean
  /** NDJSON lines that the table must lack, counted from 1. */
  readonly skipLines?: readonly number[]
  /** Nanoseconds are cut to microseconds instead of being refused. */
  readonly cutNanos?: boolean
}

/** A multiset of rows: their number and a digest that does not depend on their order. */
export type RowDigest = {
  readonly rows: number
  readonly digest: string
  /** The digest with null nested values as empty ones; compare chdb with others by this one. */
  readonly looseDigest: string
}

/** Rows in their canonical text, sorted; the forms are listed in canonical.py. */
export type Rows = RowDigest & { readonly lines: readonly string[] }

/** Rows that one side has and the other lacks, with the first differences in words. */
export type Comparison = {
  readonly equal: boolean
  readonly onlyExpected: number
  readonly onlyActual: number
  readonly differences: readonly string[]
}

/** How a table differs from its input, as `compareTables` has it. */
export type TableComparison = {
  readonly table: string
  readonly rows: number
  readonly differences: readonly string[]
}

/** An engine that failed, was not installed (`status` 3) or died (`status` null). */
export class EngineError extends Error {
  readonly status: number | null

  constructor(message: string, status: number | null) {
    super(message)
    this.name = 'EngineError'
    this.status = status
  }
}

const engineSets: Readonly<Record<Engine, string>> = {
  pyiceberg: 'fast',
  duckdb: 'fast',
  chdb: 'fast',
  datafusion: 'datafusion',
  spark: 'spark',
}

const repository = repositoryRoot(import.meta.dirname)
const scripts = path.join(repository, 'test', 'engines')
const home = process.env['SLUICE_ENGINES_HOME'] ?? path.join(repository, '.engines')

/** Whether the set of an engine is installed in the versions that the repository pins. */
export function engineState(engine: Engine = 'pyiceberg'): EngineState {
  const set = engineSets[engine]
  const installed = path.join(home, set, 'installed.txt')
  const fix = `run test/engines/setup.sh ${set}`
  if (!existsSync(installed)) {
    return { available: false, reason: `${path.join(home, set)} is not installed: ${fix}` }
  }
  const pinned = path.join(scripts, `requirements-${set}.txt`)
  return hashOf(installed) === hashOf(pinned)
    ? { available: true }
    : { available: false, reason: `${path.join(home, set)} has other versions: ${fix}` }
}

/**
 * The `skip` option of a test that needs an engine: false, or the reason. Where SLUICE_ENGINES is
 * `required`, as in CI, a missing engine is an error: a gate must not pass by being absent.
 */
export function skipWithout(engine: Engine = 'pyiceberg'): false | string {
  const state = engineState(engine)
  if (state.available) return false
  if (process.env['SLUICE_ENGINES'] === 'required') throw new EngineError(state.reason, 3)
  return state.reason
}

/** Reads a table with an engine of its own process. Throws EngineError. */
export async function readTable(request: TableRequest): Promise<RowDigest> {
  return digestOf(await runScript(engineSets[request.engine], 'read_table.py', tableArgs(request)))
}

/** Reads a table as canonical rows. Throws EngineError. */
export async function readRows(request: TableRequest): Promise<Rows> {
  return withRows((file) =>
    runScript(engineSets[request.engine], 'read_table.py', [
      ...tableArgs(request),
      `--rows=${file}`,
    ]),
  )
}

/** Reads input files as the rows that their table must hold. Throws EngineError. */
export async function readInput(request: InputRequest): Promise<Rows> {
  return withRows((file) =>
    runScript('fast', 'read_input.py', [...inputArgs(request), `--rows=${file}`]),
  )
}

/**
 * Compares tables with the one file, NDJSON or Parquet, that went into each: all cells, and that the
 * offsets of each bucket are all there. One process reads them all, so this is for many tables, or
 * large ones, of plain types. Throws EngineError.
 */
export async function compareTables(request: {
  readonly engine: Engine
  readonly file: string
  readonly tables: readonly string[]
}): Promise<readonly TableComparison[]> {
  const { engine, file, tables } = request
  const args = [`--engine=${engine}`, `--file=${file}`, ...tables]
  const output = await runScript(engineSets[engine], 'compare_tables.py', args)
  return output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as TableComparison)
}

/**
 * Compares states of one table with what its rows are then, in one process of an engine: each a
 * metadata.json and an NDJSON file of all rows. Throws EngineError.
 */
export async function compareStates(request: {
  readonly engine: Engine
  readonly states: readonly { readonly metadata: string; readonly rows: string }[]
}): Promise<readonly TableComparison[]> {
  const { engine, states } = request
  const args = [`--engine=${engine}`, ...states.map(({ metadata, rows }) => `${metadata}=${rows}`)]
  const output = await runScript(engineSets[engine], 'compare_states.py', args)
  return output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as TableComparison)
}

/** Compares rows as multisets; `limit` differences are put into words. */
export function compareRows(expected: Rows, actual: Rows, limit = 10): Comparison {
  const missing = lacking(expected.lines, actual.lines)
  const extra = lacking(actual.lines, expected.lines)
  const differences = [...missing.map((row) => `- ${row}`), ...extra.map((row) => `+ ${row}`)]
    .sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1))
    .slice(0, limit)
    .map((row) => (row.length > 600 ? `${row.slice(0, 600)}…` : row))
  return {
    equal: missing.length === 0 && extra.length === 0,
    onlyExpected: missing.length,
    onlyActual: extra.length,
    differences,
  }
}

/** The rows of `left` that `right` lacks; each occurrence counts. */
function lacking(left: readonly string[], right: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const row of right) counts.set(row, (counts.get(row) ?? 0) + 1)
  return left.filter((row) => {
    const count = counts.get(row) ?? 0
    counts.set(row, count - 1)
    return count <= 0
  })
}

function tableArgs(request: TableRequest): string[] {
  const args = [`--engine=${request.engine}`, `--table=${request.table}`]
  if (request.columns !== undefined) args.push(`--columns=${JSON.stringify(request.columns)}`)
  if (request.where !== undefined) args.push(`--where=${request.where}`)
  if (request.sql !== undefined) args.push(`--sql=${request.sql}`)
  if (request.snapshot !== undefined) args.push(`--snapshot=${request.snapshot.toString()}`)
  if (request.loose ?? request.engine === 'chdb') args.push('--loose')
  if (request.dataOnly === true) args.push('--data-only')
  if (request.s3 !== undefined) {
    const { endpoint, key, secret } = request.s3
    args.push(`--s3-endpoint=${endpoint}`, `--s3-key=${key}`, `--s3-secret=${secret}`)
  }
  return args
}

function inputArgs(request: InputRequest): string[] {
  const args = [`--table=${request.table}`, ...request.files.map((file) => `--file=${file}`)]
  if (request.format !== undefined) args.push(`--format=${request.format}`)
  if (request.delimiter !== undefined) args.push(`--delimiter=${request.delimiter}`)
  if (request.loose === true) args.push('--loose')
  if (request.skipLines !== undefined) args.push(`--skip-lines=${request.skipLines.join(',')}`)
  if (request.cutNanos === true) args.push('--cut-nanos')
  return args
}

async function withRows(run: (file: string) => Promise<string>): Promise<Rows> {
  const file = path.join(tmpdir(), `sluice-rows-${randomUUID()}.ndjson`)
  try {
    const digest = digestOf(await run(file))
    const lines = (await readFile(file, 'utf8')).split('\n')
    lines.pop()
    return { ...digest, lines }
  } finally {
    await rm(file, { force: true })
  }
}

/** The interpreter of a set and a program of this folder, for a caller that starts it itself. */
export function engineScript(set: string, name: string): { python: string; script: string } {
  return { python: path.join(home, set, 'bin', 'python'), script: path.join(scripts, name) }
}

function runScript(set: string, name: string, args: readonly string[]): Promise<string> {
  const { python, script } = engineScript(set, name)
  return new Promise((resolve, reject) => {
    const child = spawn(python, [script, ...args], {
      env: { ...process.env, SLUICE_ENGINES_HOME: home },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    let complaint = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
    child.on('error', (error) => {
      reject(new EngineError(`${python}: ${error.message}`, 3))
    })
    child.on('close', (status, signal) => {
      if (status === 0) resolve(output)
      else
        reject(
          new EngineError(`${name} ended with ${String(status ?? signal)}: ${complaint}`, status),
        )
    })
  })
}

function digestOf(output: string): RowDigest {
  const report: unknown = JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
  if (typeof report === 'object' && report !== null) {
    const { rows, digest, looseDigest } = { rows: 0, digest: 0, looseDigest: 0, ...report }
    if (typeof digest === 'string' && typeof looseDigest === 'string') {
      return { rows, digest, looseDigest }
    }
  }
  throw new EngineError(`no report in the output: ${output}`, 0)
}

function hashOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

/** Compiled tests lie in dist/, the scripts do not: the nearest folder with the sources above. */
function repositoryRoot(folder: string): string {
  if (existsSync(path.join(folder, 'test', 'engines', 'read_table.py'))) return folder
  const parent = path.dirname(folder)
  if (parent === folder) throw new Error('test/engines/read_table.py is in no folder above')
  return repositoryRoot(parent)
}

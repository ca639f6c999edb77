import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '../../src/core/json64.ts'

/** The repository, wherever this file was compiled to. */
export const repository = folderWith('package.json', import.meta.dirname)
/** The command line that was compiled together with this file. */
export const mainPath = join(import.meta.dirname, '../../src/cli/main.js')
/** The flights that ship with the clone: 5,000 lines. */
export const flightsPath = join(repository, 'examples/data/flights.ndjson')

export type CliOptions = {
  readonly cwd: string
  /** Text or bytes for stdin, which then ends. Without it stdin is empty. */
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
  /** A program with arguments that starts Node instead of us, such as `setpriv`. */
  readonly under?: readonly string[]
  /** Another `main.js`, of a copy of the package. */
  readonly main?: string
  /** Kills the command after this time; the run then ends by SIGKILL. */
  readonly timeoutMs?: number
}

export type CliEnd = {
  /** Null when a signal ended it. */
  readonly exit: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A command that runs: what it has said so far, and ways to talk to it. */
export type RunningCli = {
  readonly child: ChildProcess
  readonly ended: Promise<CliEnd>
  stdout(): string
  stderr(): string
  write(text: string | Uint8Array): Promise<void>
  /** Ends stdin. */
  endInput(): void
  kill(signal: NodeJS.Signals): void
  /** Resolves when `isThere` is true of the output. @throws when the command ends before that. */
  until(isThere: (output: { stdout: string; stderr: string }) => boolean): Promise<void>
}

/** Runs `sluice …` to its end. */
export async function sluice(args: readonly string[], options: CliOptions): Promise<CliEnd> {
  const running = startSluice(args, options)
  if (options.input !== undefined) await running.write(options.input)
  running.endInput()
  return await running.ended
}

/** Starts `sluice …`; its stdin stays open. */
export function startSluice(args: readonly string[], options: CliOptions): RunningCli {
  const [program = process.execPath, ...before] = options.under ?? []
  const node = options.under === undefined ? [] : [process.execPath]
  const child = spawn(program, [...before, ...node, options.main ?? mainPath, ...args], {
    cwd: options.cwd,
    env: environment(options.env),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  const watchers = new Set<() => void>()
  const tell = (): void => {
    for (const watcher of watchers) watcher()
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    tell()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    tell()
  })
  // A command that ends before it has read all of its input closes the pipe.
  child.stdin.on('error', () => undefined)
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 120_000)
  let end: CliEnd | undefined
  const ended = new Promise<CliEnd>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exit, signal) => {
      clearTimeout(timer)
      end = { exit, signal, stdout, stderr }
      tell()
      resolve(end)
    })
  })
  return {
    child,
    ended,
    stdout: () => stdout,
    stderr: () => stderr,
    write: (text) =>
      new Promise((resolve) => {
        child.stdin.write(text, () => {
          resolve()
        })
      }),
    endInput: () => child.stdin.end(),
    kill: (signal) => {
      child.kill(signal)
    },
    until: (isThere) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (isThere({ stdout, stderr })) {
            watchers.delete(look)
            resolve()
          } else if (end !== undefined) {
            watchers.delete(look)
            reject(new Error(`ended with ${String(end.exit ?? end.signal)}: ${stdout}${stderr}`))
          }
        }
        watchers.add(look)
        look()
      }),
  }
}

/** The one document that `--json` prints, integers exact. */
export function documentOf(end: Pick<CliEnd, 'stdout' | 'stderr'>): JsonObject {
  let document: JsonValue
  try {
    document = parseJson(end.stdout, { name: 'stdout' })
  } catch {
    throw new Error(`stdout is not one JSON document: ${end.stdout}${end.stderr}`)
  }
  if (isJsonObject(document)) return plainObject(document)
  throw new Error(`stdout is no JSON object: ${end.stdout}`)
}

/** Parsed objects have no prototype; those of a test's literals do. */
function plain(value: JsonValue): JsonValue {
  if (isJsonArray(value)) return value.map(plain)
  return isJsonObject(value) ? plainObject(value) : value
}

function plainObject(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each ?? null)]))
}

/** A member that must be a string. */
export function textOf(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw new Error(`no text: ${JSON.stringify(value)}`)
  return value
}

/** The members of a list of objects. */
export function listOf(value: JsonValue | undefined): readonly JsonObject[] {
  if (!isJsonArray(value)) throw new Error(`no list: ${JSON.stringify(value)}`)
  return value.filter(isJsonObject)
}

/** The objects of an output that has one a line. */
export function documentsOf(stdout: string): readonly JsonObject[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => documentOf({ stdout: line, stderr: '' }))
}

/** Nothing of the machine that runs the tests reaches the command, except where programs are. */
function environment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const kept = ['PATH', 'TMPDIR'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(kept), LANG: 'C.UTF-8', HOME: '/nonexistent', ...extra }
}

function folderWith(name: string, from: string): string {
  if (existsSync(join(from, name))) return from
  const parent = dirname(from)
  if (parent === from) throw new Error(`${name} is in no folder above ${import.meta.dirname}`)
  return folderWith(name, parent)
}

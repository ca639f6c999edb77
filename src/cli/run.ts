import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Journal } from '../core/ports.ts'
import { nearest } from '../core/suggest.ts'
import { type Arguments, parseArguments } from './args.ts'
import type { Command } from './command.ts'
import { type Config, type Environment, loadConfig } from './config.ts'
import { helpText } from './help.ts'
import { lineJournal, type LogFormat, logFormats, type LogLevel, logLevels } from './journal.ts'
import { type JsonIntegers, writeJson } from './json.ts'
import { type CommandName, commandNames } from './option-spec.ts'
import { environmentName, optionTable } from './option-table.ts'
import { type Problems, problems as newProblems } from './problems.ts'
import { errorJson, exitOf, renderError } from './render-error.ts'
import { choice, settingsOf, unknownVariables } from './settings.ts'
import type { StopRequest } from './signals.ts'
import { openTerminal, type Terminal, type TerminalOptions, type TextStream } from './terminal.ts'
import { versionJson, versionText } from './version.ts'

/** The process, as far as a command may touch it. */
export type CliIo = {
  readonly argv: readonly string[]
  readonly environment: Environment
  readonly folder: string
  readonly stdout: TextStream
  readonly stderr: TextStream
  readonly stdin: NodeJS.ReadableStream
  readonly stop: StopRequest
  readonly now: () => number
}

/** Each command is loaded when it runs, so that `--help` does not wait for engines. */
export type Commands = Readonly<
  Record<'tier' | 'query' | 'verify' | 'progress' | 'sweep' | 'demo', () => Promise<Command>>
>

const ownCommands: Commands = {
  tier: async () => (await import('./tier.ts')).tierCommand,
  query: async () => (await import('./query.ts')).queryCommand,
  verify: async () => (await import('./verify.ts')).verifyCommand,
  progress: async () => (await import('./progress-command.ts')).progressCommand,
  sweep: async () => (await import('./sweep.ts')).sweepCommand,
  demo: async () => (await import('./demo.ts')).demoCommand,
}

const schemas: Readonly<Record<CommandName, string>> = {
  tier: 'sluice.receipt/1',
  query: 'sluice.query/1',
  verify: 'sluice.verify/1',
  progress: 'sluice.progress/1',
  sweep: 'sluice.sweep/1',
  demo: 'sluice.receipt/1',
  help: 'sluice.help/1',
  version: 'sluice.version/1',
}

/** Runs one command line. @returns the exit status; never rejects. */
export async function run(io: CliIo, commands: Commands = ownCommands): Promise<number> {
  const found = newProblems()
  const given = parseArguments(io.argv, found)
  const before = found.list.length
  const config = found.attempt(() => findConfig(given, io))
  const isConfigBroken = found.list.length > before
  const settings = settingsOf(given, io.environment, config)
  const color = found.attempt((): TerminalOptions['color'] => {
    const value = settings.get('color')
    return value === undefined ? 'auto' : choice(value, ['auto', 'always', 'never'])
  })
  const integers = found.attempt((): JsonIntegers => {
    const value = settings.get('json-bigint')
    return value === undefined ? 'number' : choice(value, ['number', 'string'])
  })
  const level = found.attempt((): LogLevel => {
    const value = settings.get('log-level')
    return value === undefined ? 'warn' : choice(value, [...logLevels])
  })
  const format = found.attempt((): LogFormat => {
    const value = settings.get('log-format')
    return value === undefined ? 'text' : choice(value, [...logFormats])
  })
  const terminal = openTerminal({
    stdout: io.stdout,
    stderr: io.stderr,
    environment: io.environment,
    color: color ?? 'auto',
    quiet: settings.has('quiet'),
    now: io.now,
  })
  const json = settings.has('json') ? (integers ?? 'number') : undefined
  const journal = lineJournal({
    terminal,
    level: level ?? 'warn',
    format: format ?? 'text',
    now: () => new Date(),
  })
  const view: View = {
    terminal,
    journal,
    json,
    verbose: settings.has('verbose'),
    io,
    given,
    config,
    isConfigBroken,
  }
  let exit: number
  try {
    exit = await dispatch(view, found, commands)
  } catch (error) {
    exit = fail(error, view)
  }
  await terminal.flush()
  return exit
}

type View = {
  readonly terminal: Terminal
  readonly journal: Journal
  readonly json: JsonIntegers | undefined
  readonly verbose: boolean
  readonly io: CliIo
  readonly given: Arguments
  readonly config: Config | undefined
  readonly isConfigBroken: boolean
}

async function dispatch(view: View, found: Problems, commands: Commands): Promise<number> {
  const { given, terminal, io } = view
  const { command } = given
  if (given.options.has('version') || command === 'version') {
    if (command === 'version') found.settle()
    return tell(view, versionText(), versionJson())
  }
  if (given.options.has('help') || command === 'help') {
    const topic = command === 'help' ? given.positionals[0] : command
    const about = commandNames.find((name) => name === topic)
    const text = helpText(about, terminal.outStyle)
    return tell(view, text, { schema: 'sluice.help/1', ok: true, text: helpText(about) })
  }
  if (command === undefined) {
    if (found.list.length === 0) {
      terminal.error(helpText(undefined, terminal.style))
      return 2
    }
    found.settle()
    return 2
  }
  // A mistake in the options is told together with what the command finds in its own. What is missing
  // may stand in a configuration that cannot be read, so nothing more is looked for without it.
  if (found.list.length > 0 && (command !== 'tier' || view.isConfigBroken)) found.settle()
  warnOfVariables(view)
  const load = commands[command]
  const body = await load()
  return await body({
    given,
    found,
    around: { environment: io.environment, folder: io.folder, config: view.config },
    terminal,
    journal: view.journal,
    json: view.json,
    verbose: view.verbose,
    stop: io.stop,
    stdin: io.stdin,
    now: io.now,
  })
}

function tell(view: View, text: string, document: Parameters<typeof writeJson>[0]): number {
  view.terminal.result(view.json === undefined ? text : writeJson(document, view.json))
  return 0
}

function fail(error: unknown, view: View): number {
  const { terminal, json, verbose, io } = view
  const signal = io.stop.by()
  terminal.clear()
  terminal.error(renderError(error, { style: terminal.style, verbose, signal, folder: io.folder }))
  if (json !== undefined) {
    const schema = schemas[view.given.command ?? 'tier']
    terminal.result(writeJson({ schema, ok: false, error: errorJson(error, signal) }, json))
  }
  return exitOf(error, signal)
}

/** By `--config`, by `SLUICE_CONFIG`, else `./sluice.yaml` if it is there. */
function findConfig(given: Arguments, io: CliIo): Config | undefined {
  if (given.command === undefined || given.options.has('help')) return undefined
  const named = settingsOf(given, io.environment, undefined).get('config')
  if (named !== undefined) return loadConfig(resolve(io.folder, named.text), io.environment)
  const usual = resolve(io.folder, 'sluice.yaml')
  return existsSync(usual) ? loadConfig(usual, io.environment) : undefined
}

/** A misspelt variable would be ignored silently; one that is not like ours is not ours to judge. */
function warnOfVariables(view: View): void {
  const known = optionTable
    .filter((option) => option.environment === true)
    .map((option) => environmentName(option.name))
  for (const name of unknownVariables(view.io.environment)) {
    const guess = nearest(name, known)
    if (guess === undefined) continue
    view.terminal.note(`  note  ${name} is set and means nothing. Did you mean ${guess}?`)
  }
}

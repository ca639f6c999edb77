import type { Journal } from '../core/ports.ts'
import type { Arguments } from './args.ts'
import type { JsonIntegers } from './json.ts'
import type { Problems } from './problems.ts'
import type { StopRequest } from './signals.ts'
import type { Terminal } from './terminal.ts'
import type { Surroundings } from './tier-options.ts'

/** What every command is given. */
export type CommandContext = {
  readonly given: Arguments
  /** What is wrong with the command line so far; to be settled before anything is done. */
  readonly found: Problems
  readonly around: Surroundings
  readonly terminal: Terminal
  readonly journal: Journal
  /** Undefined: text is wanted. */
  readonly json: JsonIntegers | undefined
  readonly verbose: boolean
  readonly stop: StopRequest
  readonly stdin: NodeJS.ReadableStream
  /** Milliseconds that never go back. */
  readonly now: () => number
}

/** Runs to the end and gives the exit status. What it throws is rendered for it. */
export type Command = (context: CommandContext) => Promise<number>

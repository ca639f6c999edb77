/** Commands of this version, in the order help lists them. */
export const commandNames = [
  'tier',
  'query',
  'verify',
  'progress',
  'sweep',
  'demo',
  'help',
  'version',
] as const
export type CommandName = (typeof commandNames)[number]

export type OptionSpec = {
  readonly name: string
  readonly short?: string
  /** What stands for the value in help; a flag has none. */
  readonly value?: string
  readonly choices?: readonly string[]
  readonly repeated?: boolean
  /** Can also be given as `SLUICE_<NAME>`. */
  readonly environment?: boolean
  /** Where `sluice.yaml` has it. */
  readonly config?: string
  readonly commands: readonly CommandName[]
  readonly about: string
  /** The default, in words. */
  readonly standard?: string
}

/** Commands that open a lake anywhere; the demo has a folder of its own. */
export const lakeCommands = ['tier', 'query', 'verify', 'progress', 'sweep'] as const

import type { CommandName, OptionSpec } from './option-spec.ts'
import { commandOptions } from './options-command.ts'
import { commonOptions } from './options-common.ts'
import { inputOptions } from './options-input.ts'
import { jobOptions } from './options-job.ts'
import { lakeOptions } from './options-lake.ts'
import { tableOptions } from './options-table.ts'

/**
 * Every option of this version, in the order help lists them. Parser, help and `docs/reference/cli.md`
 * come from this table.
 */
export const optionTable: readonly OptionSpec[] = [
  ...lakeOptions,
  ...tableOptions,
  ...inputOptions,
  ...jobOptions,
  ...commandOptions,
  ...commonOptions,
]

/** `bucket-key` → `SLUICE_BUCKET_KEY`. */
export function environmentName(option: string): string {
  return `SLUICE_${option.toUpperCase().replaceAll('-', '_')}`
}

export function optionsOf(command: CommandName): readonly OptionSpec[] {
  return optionTable.filter((option) => option.commands.includes(command))
}

import type { ColumnBatch } from '../src/core/columns/column.ts'
import type { PlanOptions } from './plan.ts'

/** The numbers of input `i` begin here, so that a row tells where it came from. */
export const inputBase = 1_000_000

/** An input that grows while the world goes on, and can be read again from any record. */
export type SimInput = {
  readonly id: string
  readonly first: number
  readonly records: number
  /** Records it has at a time. */
  lengthAt(now: number): number
}

export function inputsOf(options: PlanOptions, table: number): readonly SimInput[] {
  return Array.from({ length: options.inputs }, (_, index) => {
    const number = table * options.inputs + index
    const growMs = Math.floor(options.chaosMs * 0.9)
    const records = options.recordsPerInput
    return {
      id: `input-${number}`,
      first: number * inputBase,
      records,
      lengthAt: (now) => Math.min(records, Math.floor((records * now) / growMs)),
    }
  })
}

/** One required BIGINT column `n`: the numbers of the records `[from, to)` of an input. */
export function recordsOf(input: SimInput, from: number, to: number): ColumnBatch {
  const length = to - from
  const values = BigInt64Array.from({ length }, (_, at) => BigInt(input.first + from + at))
  const rest = { length, nullCount: 0, validity: undefined, bitOffset: 0 }
  return { length, columns: [{ ...rest, type: numberType, layout: 'int64', values }] }
}

const numberType = { kind: 'bigint', nullable: false } as const

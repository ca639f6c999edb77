import { isSluiceError, type SluiceError } from '../../core/errors.ts'
import { type IngestContext, ingestInput, isOfInput } from './ingest-input.ts'
import type { ReceiptBuilder } from './receipt-builder.ts'

export type Reading = {
  readonly context: IngestContext
  /** Is told of each input that was read. */
  readonly receipt: Pick<ReceiptBuilder, 'inputs' | 'notes'>
  /** Ends reading and waiting appends; aborted here when one of several inputs cannot go on. */
  readonly stop: AbortController
}

/**
 * Reads all inputs: one after the other, or side by side while they are followed.
 * @returns why reading ended early: a bad record, or an input that cannot be read on. Everything
 * before it was appended and is good.
 */
export async function readInputs(reading: Reading): Promise<SluiceError | undefined> {
  const { context, stop } = reading
  const { inputs, follow } = context.request
  if (!follow) return await readEach(reading, inputs)
  const ends = await Promise.all(
    inputs.map(async (input) => {
      const refused = await readEach(reading, [input])
      // The others would be followed for ever.
      if (refused !== undefined) stop.abort()
      return refused
    }),
  )
  return ends.find((end) => end !== undefined)
}

async function readEach(
  reading: Reading,
  inputs: readonly string[],
): Promise<SluiceError | undefined> {
  for (const input of inputs) {
    if (reading.stop.signal.aborted) return undefined
    const refused = await readOne(reading, input)
    if (refused !== undefined) return refused
  }
  return undefined
}

async function readOne(
  { context, receipt, stop }: Reading,
  input: string,
): Promise<SluiceError | undefined> {
  try {
    const { report, notes, refused } = await ingestInput(context, input)
    receipt.inputs.push(report)
    for (const note of notes) if (!receipt.notes.includes(note)) receipt.notes.push(note)
    return refused
  } catch (error) {
    if (isSluiceError(error, 'STOPPED') && stop.signal.aborted) return undefined
    if (isOfInput(error)) return error
    throw error
  }
}

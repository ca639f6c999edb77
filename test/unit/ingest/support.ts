import type { ColumnBatch } from '../../../src/core/columns/column.ts'
import { parseType } from '../../../src/core/schema/parse-type.ts'
import type { Field } from '../../../src/core/schema/types.ts'
import { batchToRows } from '../../../src/core/columns/rows.ts'
import type { BadLine, InputBatch, InputReader } from '../../../src/source/ingest/input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { type InputSpec, openInput } from '../../../src/source/ingest/open-input.ts'

export function fieldsOf(columns: Readonly<Record<string, string>>): readonly Field[] {
  return Object.entries(columns).map(([name, text]) => ({ name, type: parseType(text) }))
}

export type ReadOptions = Partial<Omit<InputSpec, 'bytes' | 'target'>> & {
  readonly name?: string
  readonly columns?: Readonly<Record<string, string>>
  readonly fields?: readonly Field[]
  readonly bucketKey?: string
  /** Bytes in a chunk of the stream; by default everything at once. */
  readonly chunk?: number
}

export async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) {
    yield await Promise.resolve(bytes.subarray(at, at + size))
  }
}

export async function openText(
  text: string | Uint8Array,
  options: ReadOptions,
): Promise<InputReader> {
  const raw = typeof text === 'string' ? Buffer.from(text) : text
  const {
    name = 'a.ndjson',
    columns = {},
    fields,
    bucketKey,
    chunk = raw.length + 1,
    ...rest
  } = options
  const bytes = await InputBytes.open({
    name,
    location: { kind: 'stream', bytes: chunksOf(raw, chunk) },
  })
  const target = {
    table: 'demo.t',
    fields: fields ?? fieldsOf(columns),
    ...(bucketKey === undefined ? {} : { bucketKey }),
  }
  return await openInput({ ...rest, bytes, target })
}

export async function drain(reader: InputReader): Promise<readonly InputBatch[]> {
  const batches: InputBatch[] = []
  try {
    for (;;) {
      const batch = await reader.next()
      if (batch === undefined) return batches
      batches.push(batch)
    }
  } finally {
    await reader.close()
  }
}

export type ReadResult = {
  readonly rows: readonly unknown[]
  readonly bad: readonly BadLine[]
  readonly batches: readonly InputBatch[]
}

/** Reads a text to its end: its rows as plain objects. */
export async function read(text: string | Uint8Array, options: ReadOptions): Promise<ReadResult> {
  const fields = options.fields ?? fieldsOf(options.columns ?? {})
  const batches = await drain(await openText(text, options))
  const toRows = (records: ColumnBatch): readonly unknown[] => batchToRows(fields, records)
  return {
    rows: batches.flatMap((batch) => toRows(batch.records)),
    bad: batches.flatMap((batch) => batch.bad).filter((bad) => bad.kind === 'line'),
    batches,
  }
}

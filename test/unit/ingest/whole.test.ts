import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  Float32,
  Int16,
  Int32,
  Table,
  tableToIPC,
  Uint64,
  Utf8,
  vectorFromArray,
} from 'apache-arrow'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { batchToRows } from '../../../src/core/columns/rows.ts'
import { formatType } from '../../../src/core/schema/format-type.ts'
import type { Field } from '../../../src/core/schema/types.ts'
import { inferInput } from '../../../src/source/ingest/infer-input.ts'
import type { InputReader } from '../../../src/source/ingest/input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { type InputSpec, openInput } from '../../../src/source/ingest/open-input.ts'
import { chunksOf, drain, fieldsOf } from './support.ts'

/** Tests run from the root of the repository, compiled or not. */
const data = join(process.cwd(), 'node_modules/vega-datasets/data')
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-whole-'))
})
after(async () => {
  await rm(folder, { recursive: true })
})

const bytesOf = (path: string): Promise<InputBytes> =>
  InputBytes.open({ name: path, location: { kind: 'file', path } })

async function fieldsIn(path: string, format: 'parquet' | 'arrow'): Promise<readonly Field[]> {
  const bytes = await bytesOf(path)
  try {
    return (await inferInput({ bytes, format })).fields
  } finally {
    await bytes.close()
  }
}

async function open(
  path: string,
  fields: readonly Field[],
  over: Partial<InputSpec> = {},
): Promise<InputReader> {
  return await openInput({
    ...over,
    bytes: await bytesOf(path),
    target: { table: 'demo.t', fields },
  })
}

const table = new Table({
  id: vectorFromArray([1, 2, 3, 4], new Int32()),
  small: vectorFromArray([1, null, -3, 4], new Int16()),
  name: vectorFromArray(['a', 'é', null, ''], new Utf8()),
  f: vectorFromArray([0.5, 1, null, -2], new Float32()),
})
const rows = [
  { id: 1n, small: '1.00', name: 'a', f: 0.5, more: null },
  { id: 2n, small: null, name: 'é', f: 1, more: null },
  { id: 3n, small: '-3.00', name: null, f: null, more: null },
  { id: 4n, small: '4.00', name: '', f: -2, more: null },
]
const wide = fieldsOf({
  name: 'STRING',
  id: 'BIGINT',
  more: 'DATE',
  f: 'DOUBLE',
  small: 'DECIMAL(9, 2)',
})

describe('Arrow', () => {
  for (const kind of ['file', 'stream'] as const) {
    test(`reads a ${kind} by name, widening what loses nothing`, async () => {
      const ipc = tableToIPC(table, kind)
      const path = join(folder, `${kind}.arrow`)
      await writeFile(path, ipc)
      const batches = await drain(await open(path, wide, { limits: { batchRecordsMax: 3 } }))
      assert.deepEqual(
        batches.map((b) => b.records.length),
        [3, 1, 0],
      )
      assert.deepEqual(
        batches.map((b) => b.endPosition),
        [3n, 4n, 4n],
      )
      const found = batches.flatMap((b) => batchToRows(wide, b.records))
      assert.deepEqual(
        found,
        rows.map(({ name, id, more, f, small }) => ({ name, id, more, f, small })),
      )
      assert.equal(batches[0]?.digest(), sha256(ipc))
      const resume = { position: 3n, records: 3n, digest: sha256(ipc) }
      const rest = await drain(await open(path, wide, { resume }))
      assert.deepEqual(
        rest.map((b) => [b.startRecord, b.records.length]),
        [
          [3n, 1],
          [4n, 0],
        ],
      )
      await assert.rejects(open(path, wide, { resume: { ...resume, digest: 'other' } }), {
        code: 'INPUT_CHANGED',
      })
    })

    test(`takes only the stream form from a pipe: ${kind}`, async () => {
      const stream = chunksOf(tableToIPC(table, kind), 100)
      const bytes = await InputBytes.open({
        name: 'stdin',
        location: { kind: 'stream', bytes: stream },
      })
      if (kind === 'file') {
        await assert.rejects(inferInput({ bytes, format: 'arrow' }), { code: 'INPUT_UNREADABLE' })
        return
      }
      const { fields } = await inferInput({ bytes, format: 'arrow' })
      assert.deepEqual(
        fields.map((f) => [f.name, formatType(f.type)]),
        [
          ['id', 'INT'],
          ['small', 'SMALLINT'],
          ['name', 'STRING'],
          ['f', 'FLOAT'],
        ],
      )
      const batches = await drain(await openInput({ bytes, target: { table: 't', fields } }))
      assert.equal(
        batches.reduce((sum, b) => sum + b.records.length, 0),
        4,
      )
    })
  }

  const refused: readonly (readonly [Record<string, string>, string, RegExp])[] = [
    [
      { id: 'INT', small: 'TINYINT', name: 'STRING', f: 'FLOAT' },
      'TABLE_MISMATCH',
      /small is SMALLINT, column small of demo.t is TINYINT$/,
    ],
    [
      { id: 'INT', small: 'SMALLINT', nam: 'STRING', f: 'FLOAT' },
      'RECORD_REFUSED',
      /field "name" is not a column of demo.t. Did you mean nam\?$/,
    ],
    [
      { id: 'INT', small: 'SMALLINT NOT NULL', name: 'STRING', f: 'FLOAT' },
      'RECORD_REFUSED',
      /row 1: small is null, column small of demo.t is SMALLINT NOT NULL$/,
    ],
    [
      { id: 'INT', small: 'INT', name: 'STRING', f: 'FLOAT', x: 'INT NOT NULL' },
      'RECORD_REFUSED',
      /x is missing, column x of demo.t is INT NOT NULL$/,
    ],
  ]
  for (const [columns, code, message] of refused) {
    test(`refuses: ${message.source.slice(0, 50)}`, async () => {
      const path = join(folder, 'refused.arrow')
      await writeFile(path, tableToIPC(table, 'file'))
      await assert.rejects(async () => drain(await open(path, fieldsOf(columns))), {
        code,
        message,
      })
    })
  }

  test('a cut file is corrupt', async () => {
    const path = join(folder, 'cut.arrow')
    const ipc = tableToIPC(table, 'file')
    await writeFile(path, ipc.subarray(0, ipc.length - 200))
    await assert.rejects(
      async () => drain(await open(path, wide)),
      (error: { code?: string }) => ['DATA_CORRUPT', 'INPUT_UNREADABLE'].includes(error.code ?? ''),
    )
  })

  test('reads what the dataset package ships', async () => {
    const path = join(data, 'flights-200k.arrow')
    const fields = await fieldsIn(path, 'arrow')
    const batches = await drain(await open(path, fields))
    const text = await readFile(join(data, 'flights-200k.json'), 'utf8')
    const expected = JSON.parse(text) as { delay: number; distance: number; time: number }[]
    const found = batches.flatMap((b) => batchToRows(fields, b.records))
    assert.equal(found.length, expected.length)
    const sum = (list: readonly object[], name: string): number =>
      list.reduce((total, row) => total + Number((row as Record<string, unknown>)[name]), 0)
    assert.equal(sum(found, 'delay'), sum(expected, 'delay'))
    assert.equal(sum(found, 'distance'), sum(expected, 'distance'))
  })
})

describe('unsigned 64-bit integers', () => {
  const most = 2n ** 64n - 1n
  const unsigned = new Table({ n: vectorFromArray([0n, most, null], new Uint64()) })
  const write = {
    arrow: () => Promise.resolve(tableToIPC(unsigned, 'file')),
    parquet: async () => {
      const { Table: WasmTable, writeParquet } = await import('parquet-wasm/node')
      return writeParquet(WasmTable.fromIPCStream(tableToIPC(unsigned, 'stream')))
    },
  }
  for (const format of ['arrow', 'parquet'] as const) {
    test(`of ${format} are never inferred, and fit a column that is declared for them`, async () => {
      const path = join(folder, `unsigned.${format}`)
      await writeFile(path, await write[format]())
      await assert.rejects(fieldsIn(path, format), {
        code: 'SCHEMA_UNSUPPORTED',
        message: `${path}: the Arrow column n of type Uint64 cannot be taken: unsigned 64-bit integers exceed BIGINT`,
        fix: 'declare it in --schema as "type": "DECIMAL(20, 0)"',
      })
      for (const [type, texts] of [
        ['DECIMAL(20, 0)', ['0', '18446744073709551615', null]],
        ['DECIMAL(38, 2)', ['0.00', '18446744073709551615.00', null]],
      ] as const) {
        const fields = fieldsOf({ n: type })
        const batches = await drain(await open(path, fields))
        const found = batches.flatMap(({ records }) => batchToRows(fields, records))
        assert.deepEqual(
          found.map(({ n }) => n),
          texts,
        )
      }
      for (const type of ['BIGINT', 'DECIMAL(19, 0)']) {
        await assert.rejects(async () => drain(await open(path, fieldsOf({ n: type }))), {
          code: 'TABLE_MISMATCH',
          message: `${path}: n is DECIMAL(20, 0), column n of demo.t is ${type}`,
        })
      }
    })
  }
})

describe('Parquet', () => {
  const path = join(data, 'flights-3m.parquet')

  test('reads row groups as an independent reader does', async () => {
    const fields = await fieldsIn(path, 'parquet')
    const reader = await open(path, fields)
    const first = await reader.next()
    const second = await reader.next()
    await reader.close()
    assert.ok(first !== undefined && second !== undefined)
    assert.deepEqual([second.startRecord, second.endPosition], [8192n, 16_384n])
    const file = await asyncBufferFromFile(path)
    const options = { file, compressors, rowStart: 8192, rowEnd: 8292 }
    const expected = await parquetReadObjects(options)
    const found = batchToRows(fields, second.records).slice(0, 100)
    const plain = (value: unknown): unknown =>
      value instanceof Date ? value.getTime() : typeof value === 'bigint' ? Number(value) : value
    assert.deepEqual(Object.keys(found[0] ?? {}), Object.keys(expected[0] ?? {}))
    for (const [index, row] of found.entries()) {
      for (const [name, value] of Object.entries(expected[index] ?? {})) {
        const mine = row[name]
        const scale = value instanceof Date ? 1000 : 1
        assert.equal(Number(plain(mine)) / scale || plain(mine), plain(value) || plain(mine), name)
      }
    }
  })

  test('goes on at a row, behind whole row groups', async () => {
    const digest = sha256(await readFile(path))
    const fields = await fieldsIn(path, 'parquet')
    const resume = { position: 300_000n, records: 300_000n, digest }
    const reader = await open(path, fields, { resume })
    const batch = await reader.next()
    await reader.close()
    assert.equal(batch?.startRecord, 300_000n)
  })

  test('refuses a stream and a cut file', async () => {
    const raw = await readFile(path)
    const location = { kind: 'stream', bytes: chunksOf(raw.subarray(0, 1000), 1000) } as const
    const bytes = await InputBytes.open({ name: 'stdin', location })
    await assert.rejects(inferInput({ bytes, format: 'parquet' }), {
      code: 'INPUT_UNREADABLE',
      message: 'stdin: Parquet needs a plain file, since it is read from its end',
    })
    const cut = join(folder, 'cut.parquet')
    await writeFile(cut, raw.subarray(0, 100_000))
    await assert.rejects(async () => fieldsIn(cut, 'parquet'), {
      code: 'DATA_CORRUPT',
      message: /cut.parquet: not a whole Parquet file \(/,
    })
  })
})

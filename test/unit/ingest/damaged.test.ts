import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { constants, createGunzip, gunzipSync, gzipSync } from 'node:zlib'
import { compress, init } from '@bokuweb/zstd-wasm'
import { batchToRows } from '../../../src/core/columns/rows.ts'
import { isSluiceError, type SluiceError } from '../../../src/core/errors.ts'
import { identifyInput, type KnownInput } from '../../../src/source/ingest/identify.ts'
import { inferInput } from '../../../src/source/ingest/infer-input.ts'
import type { InputBatch } from '../../../src/source/ingest/input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { type InputSpec, openInput } from '../../../src/source/ingest/open-input.ts'
import { chunksOf, fieldsOf } from './support.ts'

let folder = ''
before(async () => {
  await init()
  folder = await mkdtemp(join(tmpdir(), 'sluice-damaged-'))
})
after(async () => {
  await rm(folder, { recursive: true })
})

const target = {
  table: 'demo.t',
  fields: fieldsOf({ id: 'BIGINT NOT NULL', v: 'BIGINT NOT NULL' }),
}
const sha256 = (bytes: string): string => createHash('sha256').update(bytes).digest('hex')
const newlines = (text: string): number => text.split('\n').length - 1

/** Records whose values do not compress to nothing. */
const lines = Array.from(
  { length: 20_000 },
  (_, id) => `{"id":${id},"v":${(id * 7_919) % 99_991}}\n`,
)
const text = lines.join('')

type End = { readonly ids: readonly unknown[]; readonly bad: number; readonly error: SluiceError }

async function bytesOf(name: string, bytes: Uint8Array, isPipe = false): Promise<InputBytes> {
  if (isPipe) {
    return await InputBytes.open({
      name,
      location: { kind: 'stream', bytes: chunksOf(bytes, 60_000) },
    })
  }
  const path = join(folder, name)
  await writeFile(path, bytes)
  return await InputBytes.open({ name, location: { kind: 'file', path } })
}

/** Reads up to the error that it must end with. */
async function readToError(
  bytes: InputBytes,
  options: Partial<InputSpec> = {},
): Promise<End & { readonly last: InputBatch | undefined }> {
  const reader = await openInput({ bytes, target, ...options })
  const ids: unknown[] = []
  let bad = 0
  let last: InputBatch | undefined
  try {
    for (;;) {
      const batch = await reader.next()
      assert.ok(batch !== undefined && !batch.ended, 'the end was reached')
      ids.push(...batchToRows(target.fields, batch.records).map((row) => row['id']))
      bad += batch.bad.length
      last = batch
    }
  } catch (error) {
    assert.ok(isSluiceError(error), String(error))
    await assert.rejects(reader.next(), { message: error.message }, 'again, it says the same')
    return { ids, bad, error, last }
  } finally {
    await reader.close()
  }
}

/** What another program gets out of a stream whose bytes come one by one, up to its error. */
async function unfolded(bytes: Uint8Array): Promise<string> {
  const gunzip = createGunzip()
  const parts: Buffer[] = []
  gunzip.on('data', (part: Buffer) => parts.push(part))
  const failed = new Promise((resolve) => gunzip.on('close', resolve).on('error', resolve))
  for (let at = 0; at < bytes.length && !gunzip.destroyed; at += 1) {
    const written = new Promise((resolve) => {
      gunzip.write(bytes.subarray(at, at + 1), resolve)
    })
    await Promise.race([written, failed])
  }
  return Buffer.concat(parts).toString('latin1')
}

function damagedAt(bytes: Uint8Array, at: number): Buffer {
  const damaged = Buffer.from(bytes)
  damaged.fill(0xff, at, at + 4)
  return damaged
}

const first = (count: number): bigint[] => Array.from({ length: count }, (_, id) => BigInt(id))

describe('a compressed stream that is cut', () => {
  const stored = gzipSync(text)

  for (const [how, isPipe] of [
    ['file', false],
    ['pipe', true],
  ] as const) {
    test(`gives all whole records before the cut, then its place: a ${how}`, async () => {
      for (const size of [400, 30_000, 70_001]) {
        const cut = stored.subarray(0, size)
        const there = gunzipSync(cut, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
        const whole = newlines(there)
        assert.ok(!there.endsWith('\n') && whole > 10)
        const { ids, error, last } = await readToError(await bytesOf('cut.gz', cut, isPipe))
        assert.deepEqual(ids, first(whole))
        const byte = lines.slice(0, whole).join('').length
        assert.equal(last?.endPosition, BigInt(byte))
        assert.equal(last.digest(), sha256(text.slice(0, byte)))
        assert.equal(last.endedWithoutNewline, false)
        const at = size.toLocaleString('en-US')
        assert.equal(error.code, 'DATA_CORRUPT')
        assert.equal(error.message, `cut.gz: the gzip stream is cut at byte ${at}`)
        const place = `cut.gz:${whole + 1}:1 (byte ${byte.toLocaleString('en-US')} of the text)`
        assert.equal(error.where, place)
        assert.equal(
          error.fix,
          isPipe
            ? 'send all of cut.gz again'
            : 'get a whole copy of cut.gz and run the same command again',
        )
        assert.equal(error.details['recordsBefore'], BigInt(whole))
      }
    })
  }

  test('does not take its last line for a record, although it could be one', async () => {
    // All of the text is there, and nothing of the end of the stream.
    for (const [name, unended, ids] of [
      ['a.ndjson.gz', '{"id":0,"v":0}\n{"id":1,"v":0}', [0n]],
      ['a.csv.gz', 'id,v\n0,1\n1,12', [0n]],
      ['b.csv.gz', 'id,v\n0,1\n1,"12"', [0n]],
    ] as const) {
      const cut = gzipSync(unended, { finishFlush: constants.Z_SYNC_FLUSH })
      const end = await readToError(await bytesOf(name, cut))
      assert.deepEqual(end.ids, ids)
      assert.match(end.error.message, /is cut at byte/)
    }
  })

  test('is no reason to set a record aside', async () => {
    const bytes = await bytesOf('cut.gz', stored.subarray(0, 30_000))
    const { bad, error } = await readToError(bytes, { onBadRecord: 'quarantine' })
    assert.deepEqual([bad, error.code], [0, 'DATA_CORRUPT'])
  })

  test('says so when no record is whole, or no byte is there', async () => {
    for (const size of [2, 12, 20]) {
      const bytes = await bytesOf('short.ndjson.gz', stored.subarray(0, size))
      await assert.rejects(
        async () => {
          const reader = await openInput({ bytes, target })
          await reader.next()
        },
        {
          code: 'DATA_CORRUPT',
          message: `short.ndjson.gz: the gzip stream is cut at byte ${size}`,
        },
      )
    }
    const header = gzipSync(`${'column,'.repeat(20_000)}id\n1\n`, { level: 0 }).subarray(0, 1000)
    const csv = await bytesOf('short.csv.gz', header)
    await assert.rejects(openInput({ bytes: csv, target }), { code: 'DATA_CORRUPT' })
  })

  test('of zstd gives what is in whole blocks', async () => {
    const frames = [
      compress(Buffer.from(text.slice(0, 1001))),
      compress(Buffer.from(text.slice(1001))),
    ]
    const cut = Buffer.concat(frames).subarray(0, -100)
    const { ids, error } = await readToError(await bytesOf('cut.zst', cut))
    // A block holds at most 128 KiB, and the last one is not whole.
    const blocks = Math.floor((text.length - 1001) / 131_072)
    assert.deepEqual(ids, first(newlines(text.slice(0, 1001 + blocks * 131_072))))
    assert.match(error.message, /^cut\.zst: the zstd stream is cut at byte [\d,]+$/)
  })

  test('can still be learned from, as far as it goes', async () => {
    const days = Array.from({ length: 3_000 }, (_, at) => `${at},2001-01-0${1 + (at % 9)}\n`)
    // The last line is cut inside a day.
    const part = gzipSync(`id,day\n${days.join('')}7,2001-0`, {
      finishFlush: constants.Z_SYNC_FLUSH,
    })
    const bytes = await bytesOf('days.csv.gz', part)
    for (const sampleRecords of [10_000, 'all'] as const) {
      const { fields } = await inferInput({ bytes, format: 'csv', sampleRecords })
      assert.deepEqual(
        fields.map(({ name, type }) => [name, type.kind]),
        [
          ['id', 'bigint'],
          ['day', 'date'],
        ],
      )
    }
    await bytes.close()
    const nothing = await bytesOf('days.ndjson.gz', stored.subarray(0, 14))
    await assert.rejects(inferInput({ bytes: nothing, format: 'ndjson' }), { code: 'DATA_CORRUPT' })
    await nothing.close()
  })
})

describe('a compressed stream that is damaged', () => {
  const stored = gzipSync(text)

  /** Ids of the records in the lines of a text, up to the first line that is none. */
  const idsIn = (there: string): readonly bigint[] => {
    const ids: bigint[] = []
    for (const line of there.split('\n').slice(0, -1)) {
      const match = /^\{"id":(0|[1-9]\d{0,17}),"v":(?:0|[1-9]\d{0,17})\}$/.exec(line)
      if (match === null) break
      ids.push(BigInt(match[1] ?? ''))
    }
    return ids
  }

  const few = gzipSync(lines.slice(0, 4_000).join(''))

  test('gives the records of a file up to the byte where it cannot be unfolded', async () => {
    for (const at of [2_000, 9_000]) {
      const damaged = damagedAt(few, at)
      const there = await unfolded(damaged)
      const expected = idsIn(there)
      const { ids, error } = await readToError(await bytesOf('damaged.gz', damaged))
      assert.deepEqual(ids, expected)
      assert.ok(ids.length > 100)
      assert.equal(error.code, 'DATA_CORRUPT')
      assert.match(error.message, /^damaged\.gz: the gzip stream is damaged before byte [\d,]+ \(/)
    }
  })

  test('gives those of a pipe up to 16 KiB before that', async () => {
    const damaged = damagedAt(few, 9_000)
    const expected = idsIn(await unfolded(damaged))
    const { ids, error } = await readToError(await bytesOf('damaged.gz', damaged, true))
    assert.match(error.message, /^damaged\.gz: the gzip stream is damaged before byte/)
    assert.deepEqual(ids, expected.slice(0, ids.length))
    // A record has 13 bytes or more.
    assert.ok(ids.length > 100 && expected.length - ids.length < 16_384 / 13)
  })

  test('gives all records when only its checksum is wrong, then says so', async () => {
    const damaged = damagedAt(stored, stored.length - 8)
    const { ids, error } = await readToError(await bytesOf('sum.gz', damaged))
    assert.deepEqual(ids, first(20_000))
    assert.match(error.message, /is damaged before byte [\d,]+ \(incorrect data check\)$/)
    const unended = gzipSync('{"id":0,"v":0}\n{"id":1,"v":0}')
    const last = await readToError(
      await bytesOf('last.ndjson.gz', damagedAt(unended, unended.length - 8)),
    )
    assert.deepEqual(last.ids, [0n])
  })

  test('is told as such when it shows itself as a bad record, and its checksum later', async () => {
    // Stored as it is, so that a byte of the stream is a byte of the text.
    const plain = gzipSync(text, { level: 0 })
    const damaged = Buffer.from(plain)
    const at = damaged.indexOf('"id":12345,')
    damaged.write('x', at + 5)
    const { ids, error } = await readToError(await bytesOf('flip.gz', damaged))
    assert.deepEqual(ids, first(12_345))
    assert.equal(error.code, 'DATA_CORRUPT')
    const [head, tail] = error.message.split('; ')
    assert.match(head ?? '', /^flip\.gz: the gzip stream is damaged before byte [\d,]+ \(incorrect/)
    assert.match(tail ?? '', /^it shows first in flip\.gz line 12346: not JSON/)
    assert.match(error.where ?? '', /^flip\.gz:12346:7 \(byte /)
    assert.equal(error.details['recordLine'], 12_346n)

    const aside = await readToError(await bytesOf('flip.gz', damaged), {
      onBadRecord: 'quarantine',
    })
    assert.deepEqual([aside.ids.length, aside.bad], [19_999, 1])
    assert.match(aside.error.message, /is damaged before byte [\d,]+ \(incorrect data check\)$/)

    // A record that is bad in a whole stream is bad, and so is one before a cut.
    const bad = gzipSync(text.replace('"id":12345,', '"id":x2345,'))
    for (const size of [bad.length, bad.length - 20]) {
      const end = await readToError(await bytesOf('bad.gz', bad.subarray(0, size)))
      assert.equal(end.error.code, 'RECORD_REFUSED')
      assert.match(end.error.message, /^bad\.gz line 12346: not JSON/)
    }
  })

  test('is told as such when nothing can be learned from it', async () => {
    const damaged = Buffer.from(gzipSync(text, { level: 0 }))
    // The column is then a number in one line and a string in another.
    damaged.write('"79"', damaged.indexOf('"v":7919}') + 4)
    const bytes = await bytesOf('learn.ndjson.gz', damaged)
    await assert.rejects(inferInput({ bytes, format: 'ndjson' }), {
      code: 'DATA_CORRUPT',
      message: /^learn\.ndjson\.gz: the gzip stream is damaged .*; it shows first in /,
    })
    await bytes.close()
  })

  test('has nothing behind its end but zeros', async () => {
    const padded = Buffer.concat([stored, Buffer.alloc(100_000)])
    const reader = await openInput({ bytes: await bytesOf('padded.gz', padded), target })
    let count = 0
    for (let batch = await reader.next(); batch !== undefined; batch = await reader.next()) {
      count += batch.records.length
    }
    assert.equal(count, 20_000)
    const hole = Buffer.from(stored)
    hole.fill(0, 0, 64)
    for (const behind of [Buffer.from('something else'), hole]) {
      const { ids, error } = await readToError(
        await bytesOf('behind.gz', Buffer.concat([stored, behind])),
      )
      assert.deepEqual(ids, first(20_000))
      assert.equal(error.code, 'DATA_CORRUPT')
    }
    const frame = compress(Buffer.from(text))
    const other = Buffer.from(frame)
    other[0] = 0
    const zstd = await readToError(
      await bytesOf('behind.zst', Buffer.concat([Buffer.from(frame), other])),
    )
    assert.deepEqual(zstd.ids, first(20_000))
    assert.equal(zstd.error.code, 'DATA_CORRUPT')
  })
})

describe('identifying a stream that is cut', () => {
  const stored = gzipSync(text)
  const cut = stored.subarray(0, 30_000)
  const there = gunzipSync(cut, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
  const whole = there.slice(0, there.lastIndexOf('\n') + 1)
  const known = (name: string, prefix: string): KnownInput => ({
    id: name,
    name,
    position: BigInt(prefix.length),
    digest: sha256(prefix),
  })
  const identify = async (name: string, bytes: Uint8Array, ...inputs: KnownInput[]) => {
    const path = join(folder, name)
    await writeFile(path, bytes)
    const location = { kind: 'file', path } as const
    return await identifyInput({ name, location, whole: false, known: inputs })
  }

  test('knows it again, and the mended file too', async () => {
    const before = known('a.gz', whole)
    const longer = known('b.gz', text)
    assert.equal((await identify('a.gz', cut, before)).kind, 'grown')
    assert.equal((await identify('a.gz', cut, before, longer)).kind, 'grown')
    assert.equal((await identify('a.gz', stored, before)).kind, 'grown')
    const both = await identify('c.gz', stored, before, longer)
    assert.deepEqual([both.kind, 'id' in both && both.id], ['same', 'b.gz'])
    assert.equal((await identify('c.gz', cut)).kind, 'new')
  })

  test('does not call it changed, since what is there does not tell', async () => {
    await assert.rejects(identify('a.gz', cut, known('a.gz', text)), {
      code: 'DATA_CORRUPT',
      message: 'a.gz: the gzip stream is cut at byte 30,000',
    })
  })
})

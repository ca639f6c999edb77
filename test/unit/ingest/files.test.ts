import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { compress, init } from '@bokuweb/zstd-wasm'
import { SluiceError } from '../../../src/core/errors.ts'
import type { Clock } from '../../../src/core/ports.ts'
import { millis } from '../../../src/core/ids.ts'
import { identifyInput, type KnownInput } from '../../../src/source/ingest/identify.ts'
import type { InputReader } from '../../../src/source/ingest/input.ts'
import { InputBytes } from '../../../src/source/ingest/input-bytes.ts'
import { inputChanged } from '../../../src/source/ingest/input-changed.ts'
import { PrefixHash } from '../../../src/source/ingest/prefix-hash.ts'
import { type InputSpec, openInput } from '../../../src/source/ingest/open-input.ts'
import { drain, fieldsOf } from './support.ts'

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-ingest-'))
})
after(async () => {
  await rm(folder, { recursive: true })
})

const target = { table: 'demo.t', fields: fieldsOf({ id: 'BIGINT' }) }
const sha256 = (bytes: string | Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex')
const records = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, index) => `{"id":${from + index}}\n`).join('')

async function file(name: string, bytes: string | Uint8Array): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, bytes)
  return path
}

async function open(path: string, options: Partial<InputSpec> = {}): Promise<InputReader> {
  const bytes = await InputBytes.open({ name: path, location: { kind: 'file', path } })
  return await openInput({ ...options, bytes, target })
}

async function count(path: string): Promise<number> {
  const reader = await open(path)
  const batches = await drain(reader)
  await reader.close()
  return batches.reduce((sum, batch) => sum + batch.records.length, 0)
}

describe('opening files', () => {
  test('says what is wrong with the name', async () => {
    await file('flights.ndjson', '')
    const near = join(folder, 'flights.ndjson')
    await assert.rejects(open(join(folder, 'flights.njson')), {
      code: 'INPUT_UNREADABLE',
      message: `${join(folder, 'flights.njson')}: no such file. Did you mean ${near}?`,
    })
    await assert.rejects(open(folder), {
      code: 'INPUT_UNREADABLE',
      message: `${folder}: is a folder`,
    })
    await assert.rejects(open(join(folder, 'nowhere', 'x.ndjson')), { message: /no such file$/ })
  })
})

describe('compressed text', () => {
  const text = records(0, 20_000)

  test('positions and digests are those of the text, over several gzip members', async () => {
    const members = [gzipSync(text.slice(0, 1001)), gzipSync(text.slice(1001))]
    const path = await file('a.ndjson.gz', Buffer.concat(members))
    const batches = await drain(await open(path))
    assert.equal(batches.at(-1)?.endPosition, BigInt(text.length))
    assert.equal(batches.at(-1)?.digest(), sha256(text))
    assert.deepEqual(
      batches.map((b) => b.records.length),
      [8192, 8192, 3616],
    )
  })

  test('a cut or damaged gzip file is an error that names the byte', async () => {
    const whole = gzipSync(text)
    const cut = await file('cut.ndjson.gz', whole.subarray(0, 30_000))
    await assert.rejects(drain(await open(cut)), {
      code: 'DATA_CORRUPT',
      message: `${cut}: the gzip stream is cut at byte 30,000`,
    })
    const damaged = Buffer.from(whole)
    damaged.fill(0xff, damaged.length - 8, damaged.length - 4)
    const bad = await file('bad.ndjson.gz', damaged)
    await assert.rejects(async () => drain(await open(bad)), {
      code: 'DATA_CORRUPT',
      message: /the gzip stream is damaged before byte/,
    })
  })

  test('reads zstd, over several frames, and names the byte where one is cut', async () => {
    await init()
    const frames = [
      compress(Buffer.from(text.slice(0, 1001))),
      compress(Buffer.from(text.slice(1001))),
    ]
    const path = await file('a.ndjson.zst', Buffer.concat(frames))
    const batches = await drain(await open(path))
    assert.equal(batches.at(-1)?.digest(), sha256(text))
    const cut = await file('cut.ndjson.zst', Buffer.concat(frames).subarray(0, -100))
    await assert.rejects(async () => drain(await open(cut)), {
      code: 'DATA_CORRUPT',
      message: /the zstd stream is cut at byte [\d,]+$/,
    })
  })

  test('resumes inside a gzip file', async () => {
    const path = await file('resume.ndjson.gz', gzipSync(text))
    const resume = { position: 20n, records: 2n, digest: sha256(text.slice(0, 20)) }
    const batches = await drain(
      await open(path, { resume: { ...resume, position: 18n, digest: sha256(text.slice(0, 18)) } }),
    )
    assert.equal(batches[0]?.startRecord, 2n)
    assert.equal(
      batches.reduce((sum, b) => sum + b.records.length, 0),
      19_998,
    )
  })
})

describe('identifyInput', () => {
  const text = records(0, 500)
  const known = (over: Partial<KnownInput> = {}): KnownInput => ({
    id: 'k',
    name: 'a',
    position: BigInt(text.length),
    digest: sha256(text),
    ...over,
  })
  const identify = async (name: string, bytes: string | Uint8Array, ...inputs: KnownInput[]) => {
    const path = await file(`identify-${name}`, bytes)
    return await identifyInput({
      name,
      location: { kind: 'file', path },
      whole: false,
      known: inputs,
    })
  }

  test('knows the same file, a grown one and a renamed one', async () => {
    assert.equal((await identify('a', text, known())).kind, 'same')
    assert.equal((await identify('b', text, known())).kind, 'same')
    const grown = await identify('b', text + records(500, 501), known())
    assert.deepEqual([grown.kind, 'id' in grown && grown.id], ['grown', 'k'])
    assert.equal((await identify('a.gz', gzipSync(text), known())).kind, 'same')
  })

  test('the longest known input wins', async () => {
    const short = known({ id: 'short', position: 2000n, digest: sha256(text.slice(0, 2000)) })
    const found = await identify('b', text, short, known())
    assert.deepEqual([found.kind, 'id' in found && found.id], ['same', 'k'])
    const older = await identify('b', text.slice(0, 3000), known(), short)
    assert.deepEqual([older.kind, 'id' in older && older.id], ['grown', 'short'])
  })

  test('under 1 KiB the name must match too', async () => {
    const small = records(0, 10)
    const input = known({ position: BigInt(small.length), digest: sha256(small) })
    assert.equal((await identify('a', small, input)).kind, 'same')
    assert.equal((await identify('b', small, input)).kind, 'new')
  })

  test('a known name with another beginning is changed', async () => {
    const changed = await identify('a', `x${text}`, known())
    assert.equal(changed.kind, 'changed')
    const shorter = await identify('a', text.slice(0, 1500), known())
    assert.equal(shorter.kind, 'changed')
    const error = inputChanged('a.ndjson', known({ position: 446166n }), undefined)
    assert.equal(error.message, 'a.ndjson: its first 446,166 bytes are not the ones tiered')
    assert.match(error.fix ?? '', /--input-id a-2/)
  })

  test('a changed input is told with its day, its size, and where it begins to differ', async () => {
    const long = records(0, 40_000)
    const hash = new PrefixHash()
    hash.update(Buffer.from(long))
    const { blocks } = hash.here()
    assert.ok(blocks)
    const input = known({
      position: BigInt(long.length),
      digest: sha256(long),
      tieredAt: Date.UTC(2026, 10, 30, 14, 2),
      blocks,
    })
    const told = async (text: string): Promise<SluiceError> => {
      const found = await identify('a', text, input)
      assert.ok(found.kind === 'changed')
      return inputChanged('a', found.known, found.found)
    }
    const at = 3 * 65_536 + 17
    const mended = await told(`${long.slice(0, at)}#${long.slice(at + 1)}`)
    assert.equal(
      mended.message,
      'a: its first 508,890 bytes are not the ones tiered on 2026-11-30 14:02 UTC ' +
        '(first difference in the block at byte 196,608)',
    )
    assert.equal(mended.details['tieredAt'], '2026-11-30T14:02:00.000Z')
    assert.equal(mended.details['byte'], 196_608)
    // Behind the last whole block there is no digest but that of everything.
    const last = await told(`${long.slice(0, -2)}#\n`)
    assert.match(last.message, /first difference in the block at byte 458,752\)$/)
    const shorter = await told(long.slice(0, 400_000))
    assert.equal(
      shorter.message,
      'a: is shorter than what was tiered on 2026-11-30 14:02 UTC ' +
        '(400,000 bytes, 508,890 are in the lake)',
    )
    const both = await told(`#${long.slice(1, 400_000)}`)
    assert.match(
      both.message,
      /\(400,000 bytes, 508,890 are in the lake; first difference in the block at byte 0\)$/,
    )
  })

  test('different files get different ids, even with a long common beginning', async () => {
    const common = 'x'.repeat(70_000)
    const first = await identify('a', `${common}1`)
    assert.ok(first.kind === 'new')
    assert.equal(first.id, `sha256:${sha256(common.slice(0, 65_536))}`)
    const one = known({ id: first.id, name: 'z', position: 69_999n, digest: sha256('other') })
    const second = await identify('b', `${common}2`, one)
    assert.ok(second.kind === 'new')
    assert.equal(second.id, `sha256:${sha256(`${common}2`)}`)
    const two = { ...one, id: second.id }
    const third = await identify('b', `${common}2`, one, two)
    assert.ok(third.kind === 'new')
    assert.equal(third.id, `${second.id}-2`)
    const small = await identify('s', '{}\n')
    const other = await identify('t', '{}\n')
    assert.notDeepEqual(small, other)
  })

  test('Parquet and Arrow count as wholes', async () => {
    const path = await file('w', 'PAR1…')
    const whole = { ...known(), whole: true, position: 5n, digest: sha256('PAR1…') }
    const ask = (inputs: readonly KnownInput[]) =>
      identifyInput({ name: 'w', location: { kind: 'file', path }, whole: true, known: inputs })
    assert.equal((await ask([whole])).kind, 'same')
    assert.equal((await ask([{ ...whole, digest: sha256('PAR1…x') }])).kind, 'new')
    assert.equal((await ask([{ ...whole, name: 'w', digest: sha256('x') }])).kind, 'changed')
  })
})

describe('following a file', () => {
  /** A clock whose sleeps run the next step of a script, then wake. */
  const scripted = (steps: (() => Promise<void>)[]): Clock => ({
    now: () => millis(0),
    monotonic: () => millis(0),
    sleep: async () => {
      const step = steps.shift()
      if (step === undefined) throw new SluiceError('STOPPED', 'the script ended')
      await step()
    },
  })
  const follow = async (path: string, steps: (() => Promise<void>)[]): Promise<InputReader> => {
    const options = { clock: scripted(steps) }
    const bytes = await InputBytes.open({
      name: 'f',
      location: { kind: 'file', path },
      follow: options,
    })
    return await openInput({ bytes, target, follow: true, format: 'ndjson' })
  }

  test('hands out what is there, and lets the last line wait for its newline', async () => {
    const path = await file('f1.ndjson', '{"id":0}\n{"id":1}')
    const reader = await follow(path, [
      () => appendFile(path, '\n{"id'),
      () => appendFile(path, '":2}\n'),
      () => appendFile(path, '{"id":3}'),
    ])
    const batches = await drain(reader)
    assert.deepEqual(
      batches.map((b) => [b.records.length, b.endPosition]),
      [
        [1, 9n],
        [1, 18n],
        [1, 27n],
        [0, 27n],
      ],
    )
    assert.equal(batches.at(-1)?.ended, true)
    assert.equal(batches.at(-1)?.endedWithoutNewline, false)
    assert.equal(batches.at(-1)?.digest(), sha256('{"id":0}\n{"id":1}\n{"id":2}\n'))
  })

  test('refuses a file that was cut or replaced', async () => {
    const cut = await file('f2.ndjson', records(0, 3))
    await assert.rejects(drain(await follow(cut, [() => truncate(cut, 5)])), {
      code: 'INPUT_CHANGED',
      message: 'f: was cut to 5 bytes after 27 were read',
      // Under its old name alone it would be refused: it begins otherwise.
      fix: 'what was read is kept; tier the new file as another input: --input-id NAME',
    })
    const rotated = await file('f3.ndjson', records(0, 3))
    const rotate = async (): Promise<void> => {
      await rename(rotated, `${rotated}.1`)
      await writeFile(rotated, records(3, 4))
    }
    await assert.rejects(drain(await follow(rotated, [rotate])), {
      code: 'INPUT_CHANGED',
      message: 'f: was replaced by another file after byte 27',
      fix: 'what was read is kept; tier the new file as another input: --input-id NAME',
    })
  })

  test('refuses to follow compressed text', async () => {
    const path = await file('f4.gz', gzipSync(records(0, 3)))
    await assert.rejects(follow(path, []), { code: 'CONFIG_INVALID' })
    assert.equal(await count(path), 3)
  })
})

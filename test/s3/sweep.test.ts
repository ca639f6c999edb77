import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import {
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { isPlainFile } from '../../src/catalog/store/plain-file.ts'
import type { ObjectStore } from '../../src/catalog/store/object-store.ts'
import { isSluiceError } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json64.ts'
import { systemClock, systemIds } from '../../src/core/system.ts'
import { deleteOrphans, findOrphans } from '../../src/sink/sweeper/sweep.ts'
import { requireWhole } from '../support/audit.ts'
import { type CliEnd, documentOf, listOf, textOf } from '../support/cli.ts'
import { type Fault, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { s3Cli } from '../support/lake-on-s3.ts'
import { appendRecords } from '../support/records.ts'
import { type S3Server, startWeed, storeOf } from '../support/s3-server.ts'
import { scratchFolder } from '../support/scratch.ts'

const day = 86_400_000
const partBytes = 5 << 20

/** What a crash left, four days ago. */
const orphans = [
  'data/__bucket=0/lost-1.parquet',
  'metadata/.sluice-lost.tmp',
  'metadata/lost-m0.avro',
]
/** What a round is writing, since two days. */
const young = 'data/__bucket=0/young-1.parquet'
const leftUpload = 'data/__bucket=0/lost-2.parquet'
const youngUpload = 'data/__bucket=0/young-2.parquet'

/** Everything of the lake is a month old, but what its name says something else of. */
function ageOf(key: string): number {
  if (key.includes('/.sluice-clock-')) return 0
  if (key.includes('young')) return 2 * day
  return key.includes('lost') ? 4 * day : 30 * day
}

describe('sweep on S3', () => {
  let server: S3Server
  let proxy: FaultProxy
  /** Without faults, and with the times as they are. */
  let plain: ObjectStore
  let client: S3Client
  let lakes = 0
  before(async () => {
    server = await startWeed()
    proxy = await startFaultProxy(server.endpoint)
    plain = storeOf(server)
    client = new S3Client({
      endpoint: server.endpoint,
      region: 'us-east-1',
      credentials: server.credentials,
      forcePathStyle: true,
    })
  })
  after(async () => {
    client.destroy()
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const sweepsAt = (age: ((key: string) => number) | undefined): void => {
    proxy.plan([])
    proxy.age(age)
  }
  const seen = (operation: string): readonly string[] =>
    proxy.seen().flatMap((each) => (each.operation === operation ? [each.key] : []))

  /** A lake of one table with one round in it. */
  const openTable = async (context: TestContext): Promise<TieredLake> => {
    lakes += 1
    const lake = new TieredLake(context, `s3://${server.bucket}/sweep${lakes}`)
    await lake.tier('clicks', 100)
    return lake
  }

  /** Runs commands through the proxy, and looks at what they did without it. */
  class TieredLake {
    readonly warehouse: string
    readonly #cwd: string

    constructor(context: TestContext, warehouse: string) {
      this.warehouse = warehouse
      this.#cwd = scratchFolder(context)
    }

    async tier(name: string, records: number): Promise<void> {
      appendRecords(`${this.#cwd}/${name}.ndjson`, records - 100, records)
      const end = await this.#through(server)([
        ...['tier', `${name}.ndjson`, '--table', `demo.${name}`, '--buckets', '2'],
        ...['--warehouse', this.warehouse],
      ])
      assert.equal(end.exit, 0, end.stderr)
    }

    sweep(more: readonly string[] = []): Promise<CliEnd> {
      const through = { endpoint: proxy.endpoint, credentials: server.credentials }
      return this.#through(through)(['sweep', this.warehouse, ...more])
    }

    async swept(more: readonly string[] = []): Promise<JsonObject> {
      const end = await this.sweep([...more, '--json'])
      assert.equal(end.exit, 0, end.stderr)
      return documentOf(end)
    }

    table(name = 'clicks'): string {
      return `${this.warehouse}/demo/${name}`
    }

    async leave(paths: readonly string[], name = 'clicks'): Promise<void> {
      for (const path of paths) {
        const made = await plain.createIfAbsent(`${this.table(name)}/${path}`, Buffer.from('lost'))
        assert.equal(made.kind, 'applied')
      }
    }

    /** Begins an upload, as a process that was killed did. */
    async begin(path: string, parts = 1, name = 'clicks'): Promise<string> {
      const Key = this.#keyOf(`${this.table(name)}/${path}`)
      const object = { Bucket: server.bucket, Key }
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(object))
      assert.ok(UploadId !== undefined)
      for (let PartNumber = 1; PartNumber <= parts; PartNumber += 1) {
        const part = { ...object, UploadId, PartNumber, Body: Buffer.alloc(partBytes) }
        await client.send(new UploadPartCommand(part))
      }
      return UploadId
    }

    /** Paths below the table's folder. */
    async files(name = 'clicks'): Promise<readonly string[]> {
      const folder = `${this.table(name)}/`
      return (await plain.list(folder)).map(({ location }) => location.slice(folder.length))
    }

    async uploads(): Promise<readonly string[]> {
      const command = { Bucket: server.bucket, Prefix: this.#keyOf(`${this.warehouse}/`) }
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand(command))
      return Uploads.map(({ UploadId }) => UploadId ?? '').sort()
    }

    async requireWhole(rows = 100): Promise<void> {
      await requireWhole(plain, this.warehouse, rows)
      const { exit, stdout } = await this.#through(server)(['verify', this.warehouse])
      assert.equal(exit, 0, stdout)
    }

    #through(to: Pick<S3Server, 'endpoint' | 'credentials'>): ReturnType<typeof s3Cli> {
      return s3Cli(to, this.#cwd)
    }

    #keyOf(location: string): string {
      return location.slice(`s3://${server.bucket}/`.length)
    }
  }

  test('lists what a crash left and what it was uploading, and deletes nothing', async (t) => {
    const lake = await openTable(t)
    await lake.leave([...orphans, young])
    await lake.begin(leftUpload, 2)
    await lake.begin(youngUpload)
    const [files, uploads] = [await lake.files(), await lake.uploads()]
    sweepsAt(ageOf)
    const { exit, stdout, stderr } = await lake.sweep(['demo.clicks'])
    assert.equal(exit, 0, stderr)
    const lines = stdout.trimEnd().split('\n')
    assert.equal(lines[0], 'demo.clicks: 3 files, 12 B that nothing refers to, older than 3d')
    assert.deepEqual(
      lines.slice(1, 4).map((line) => line.trim().split('  ')[0]),
      orphans,
    )
    assert.equal(lines[4], '  1 unfinished upload, 10 MB, older than 3d')
    assert.match(lines[5] ?? '', /^ {2}kept: .*1 too young.*, 1 unfinished uploads$/)
    assert.match(stderr, /nothing was deleted/)
    assert.deepEqual([await lake.files(), await lake.uploads()], [files, uploads])
    assert.deepEqual(seen('abort'), [])
    assert.ok(seen('delete').every((key) => key.includes('/metadata/.sluice-clock-')))
  })

  test('with --delete removes exactly these, and the table is as it was', async (t) => {
    const lake = await openTable(t)
    await lake.tier('clicks', 200)
    const before = await lake.files()
    await lake.leave([...orphans, young])
    const left = await lake.begin(leftUpload, 2)
    const kept = [
      await lake.begin(youngUpload),
      // Hidden names are others' own affair, and so is what lies beside data and metadata.
      await lake.begin('data/_theirs/lost.parquet'),
      await lake.begin('lost.parquet'),
      await lake.begin('data/lost.parquet', 1, 'clicks2'),
    ]
    assert.deepEqual(await lake.uploads(), [left, ...kept].sort())
    sweepsAt(ageOf)
    const document = await lake.swept(['--delete'])
    assert.deepEqual([document['schema'], document['ok']], ['sluice.sweep/1', true])
    assert.deepEqual([document['table'], document['dry_run']], ['demo.clicks', false])
    assert.deepEqual([document['file_count'], document['bytes']], [3, 12])
    assert.deepEqual(
      listOf(document['files']).map(({ path }) => path),
      orphans.map((path) => `${lake.table()}/${path}`),
    )
    assert.deepEqual([document['upload_count'], document['upload_bytes']], [1, 2 * partBytes])
    const [upload] = listOf(document['uploads'])
    assert.equal(upload?.['path'], `${lake.table()}/${leftUpload}`)
    assert.equal(upload['upload_id'], left)
    assert.match(textOf(upload['active_at']), /^\d{4}-\d\d-\d\dT/)
    const [table] = listOf(document['tables'])
    assert.deepEqual([table?.['upload_count'], table?.['upload_bytes']], [1, 2 * partBytes])
    assert.deepEqual(await lake.files(), [...before, young].sort())
    assert.deepEqual(await lake.uploads(), kept.sort())
    await lake.requireWhole(200)

    const again = await lake.swept(['--delete'])
    assert.deepEqual([again['file_count'], again['upload_count']], [0, 0])
  })

  test('goes by the clock of the store, whatever that of this machine says', async (t) => {
    const lake = await openTable(t)
    await lake.leave([...orphans, young])
    const left = await lake.begin(leftUpload)
    const running = await lake.begin(youngUpload)
    const before = await lake.files()
    for (const ahead of [-10 * day, 10 * day]) {
      // Ten days behind, what is two days old there looks twelve days old from here.
      sweepsAt((key) => ageOf(key) - ahead)
      const found = await lake.swept()
      const paths = listOf(found['files']).map(({ path }) => path)
      assert.deepEqual(
        paths,
        orphans.map((path) => `${lake.table()}/${path}`),
      )
      assert.deepEqual(
        listOf(found['uploads']).map((each) => each['upload_id']),
        [left],
      )
    }
    assert.deepEqual(await lake.files(), before)
    assert.deepEqual(await lake.uploads(), [left, running].sort())
  })

  test('takes an upload to be as old as its newest part', async (t) => {
    const lake = await openTable(t)
    const running = await lake.begin(leftUpload)
    let asked = 0
    const begunLongAgo = (part: number) => (key: string) => {
      if (!key.includes('lost-2')) return ageOf(key)
      // The list of uploads comes first and says when it was begun.
      asked += 1
      return asked % 2 === 1 ? 30 * day : part
    }
    sweepsAt(begunLongAgo(29 * day))
    assert.equal((await lake.swept())['upload_count'], 1)
    sweepsAt(begunLongAgo(day / 24))
    assert.equal((await lake.swept(['--delete']))['upload_count'], 0)
    assert.equal(asked, 4)
    assert.deepEqual(await lake.uploads(), [running])
  })

  test('what wakes after its upload was ended fails, and writes nothing', async (t) => {
    const lake = await openTable(t)
    const location = `${lake.table()}/${leftUpload}`
    const writer = await plain.open(location)
    await writer.write(Buffer.alloc(9_000_000))
    while ((await lake.uploads()).length === 0) await systemClock.sleep(20)
    sweepsAt(ageOf)
    const swept = await lake.swept(['--delete'])
    assert.equal(swept['upload_count'], 1)
    await assert.rejects(writer.finish(), (error) => isSluiceError(error, 'STORE_UNAVAILABLE'))
    await writer.abandon()
    assert.equal(await plain.size(location), undefined)
    assert.deepEqual(await lake.uploads(), [])
    await lake.requireWhole()
  })

  describe('one read that fails', () => {
    type Read = { readonly name: string; readonly operation: string; readonly key?: RegExp }
    const reads: readonly Read[] = [
      { name: 'the list of files', operation: 'list' },
      { name: 'the list of uploads', operation: 'uploads' },
      { name: 'the list of parts', operation: 'parts' },
      { name: 'the newest version', operation: 'get', key: /\/v\d+\.metadata\.json$/ },
      { name: 'a manifest list', operation: 'get', key: /\/snap-[^/]*\.avro$/ },
      { name: 'a manifest', operation: 'get', key: /-m\d+\.avro$/ },
    ]
    const matching = ({ operation, key = /./ }: Read): number =>
      proxy.seen().filter((each) => each.operation === operation && key.test(each.key)).length

    test('ends the sweep of the command, whichever it is, and nothing is deleted', async (t) => {
      const lake = await openTable(t)
      await lake.tier('other', 100)
      for (const name of ['clicks', 'other']) {
        await lake.leave(orphans, name)
        await lake.begin(leftUpload, 1, name)
      }
      const state = async (): Promise<unknown> => [
        await lake.files(),
        await lake.files('other'),
        await lake.uploads(),
      ]
      const before = await state()
      sweepsAt(ageOf)
      const clean = await lake.swept()
      assert.deepEqual([clean['file_count'], clean['upload_count']], [6, 2])
      const times = new Map(reads.map((read) => [read, matching(read)]))
      for (const [read, last] of times) {
        assert.ok(last > 1, read.name)
        // The last of its kind: everything about the first table is known by then. Of versions also
        // the one after, which is read when deleting begins.
        for (const nth of read.name === 'the newest version' ? [last, last + 1] : [last]) {
          sweepsAt(ageOf)
          proxy.plan([{ ...read, fault: '403-expired', nth, times: 1_000 }])
          const end = await lake.sweep(['--delete'])
          assert.equal(end.exit, 5, `${read.name}: ${end.stdout}${end.stderr}`)
          assert.match(end.stderr, /code {3}STORE_DENIED/, read.name)
          assert.ok(
            seen('delete').every((key) => key.includes('/.sluice-clock-')),
            read.name,
          )
          assert.deepEqual(seen('abort'), [], read.name)
          assert.deepEqual(await state(), before, read.name)
        }
      }
    })

    const faults: readonly Fault[] = ['reset-after', '500', '503', 'cut-body', 'short-body']
    test('is asked for again, and ends the sweep when it never comes', async (t) => {
      const lake = await openTable(t)
      await lake.leave(orphans)
      await lake.begin(leftUpload)
      const before = [await lake.files(), await lake.uploads()]
      sweepsAt(ageOf)
      const times = { request: 2_000, bytesPerMillisecond: 20_000, connect: 1_000 }
      const retries = {
        attemptsMax: 3,
        ...{ delayFirst: 2, delayMax: 10, totalMax: 10_000, budgetMax: 200 },
      }
      const store = storeOf({ ...server, endpoint: proxy.endpoint }, { times, retries })
      const ports = { store, ids: systemIds, isPlainFile }
      const options = { olderThanMs: 3 * day, force: false }
      for (const read of reads) {
        for (const fault of faults) {
          proxy.plan([{ ...read, fault }])
          const found = await findOrphans(lake.table(), options, ports)
          assert.deepEqual([found.orphans.length, found.uploads.length], [3, 1])
          assert.equal(proxy.seen().filter((each) => each.fault !== undefined).length, 1)

          proxy.plan([{ ...read, fault, times: 1_000 }])
          // The store's checksum of an object tells that half of it is not the whole.
          const isShort = read.operation === 'get' && fault === 'short-body'
          const code = isShort ? 'DATA_CORRUPT' : 'STORE_UNAVAILABLE'
          await assert.rejects(findOrphans(lake.table(), options, ports), (error) => {
            assert.ok(isSluiceError(error, code), `${read.name} ${fault}: ${String(error)}`)
            return true
          })
        }
      }
      // And between finding and deleting.
      proxy.plan([])
      const found = await findOrphans(lake.table(), options, ports)
      proxy.plan([{ operation: 'get', fault: '500', times: 1_000 }])
      await assert.rejects(deleteOrphans(found, ports), (error) => {
        assert.ok(isSluiceError(error, 'STORE_UNAVAILABLE'))
        assert.equal(error.state, 'nothing was deleted')
        return true
      })
      assert.deepEqual([await lake.files(), await lake.uploads()], before)
    })
  })

  test('with the times as the server gives them, takes what is older than it was told', async (t) => {
    const lake = await openTable(t)
    const before = await lake.files()
    await lake.leave(orphans)
    const left = await lake.begin(leftUpload)
    const [orphan = ''] = orphans
    const madeAt = await timeOf(lake, orphan)
    for (let newer = 0; ; newer += 1) {
      // Until the store's own clock has gone on by more than the retention below.
      await lake.leave([`data/clock-${newer}`])
      if ((await timeOf(lake, `data/clock-${newer}`)) > madeAt + 8_000) break
      await systemClock.sleep(500)
    }
    for (const { location } of await plain.list(`${lake.table()}/data/clock`)) {
      await plain.remove(location)
    }
    const ports = {
      store: {
        ...plain,
        // What a round makes in the very moment that the sweep begins.
        createIfAbsent: async (...given: Parameters<ObjectStore['createIfAbsent']>) => {
          await lake.leave([young])
          return plain.createIfAbsent(...given)
        },
      },
      ids: systemIds,
      isPlainFile,
    }
    const found = await findOrphans(lake.table(), { olderThanMs: 5_000, force: true }, ports)
    const expected = orphans.map((path) => `${lake.table()}/${path}`)
    assert.deepEqual(
      found.orphans.map(({ location }) => location),
      expected,
    )
    assert.deepEqual(
      found.uploads.map(({ id }) => id),
      [left],
    )
    await deleteOrphans(found, ports)
    assert.deepEqual(await lake.files(), [...before, young].sort())
    assert.deepEqual(await lake.uploads(), [])
    await lake.requireWhole()
  })

  const timeOf = async (lake: TieredLake, path: string): Promise<number> => {
    const location = `${lake.table()}/${path}`
    const found = (await plain.list(`${lake.table()}/`)).find((each) => each.location === location)
    assert.ok(found !== undefined)
    return found.modifiedAt
  }
})

import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { runCli, withWarehouse } from '../unit/cli/lake-fixture.ts'

type Event = Readonly<Record<string, unknown>>

test('T-69 the demo shows the timeline W-1, and its lake equals what was produced', async () => {
  await withWarehouse(async (folder) => {
    const lake = join(folder, 'demo')
    const { exit, out, err } = await runCli([
      'demo',
      '--warehouse',
      lake,
      '--speed',
      '1000',
      '--json',
    ])
    assert.equal(exit, 0, err)
    const events = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Event)
    const told = events
      .filter(({ t }) => typeof t === 'number' && t < 300)
      .filter(
        ({ event, state }) => event === 'committed' || state === 'Tiering' || state === 'Pending',
      )
      .map(({ t, table, event, state, epoch }) =>
        [t, table, event === 'committed' ? 'commit' : state, epoch].join(' '),
      )
    assert.deepEqual(told, [
      '0 demo.clicks Tiering 1',
      '30 demo.clicks commit 1',
      '30 demo.orders Tiering 1',
      '30 demo.customers Tiering 1',
      '90 demo.clicks Pending 2',
      '120 demo.orders commit 1',
      '120 demo.clicks Tiering 2',
      '180 demo.clicks commit 2',
      '220 demo.customers commit 1',
      '240 demo.orders Pending 2',
      '240 demo.clicks Pending 3',
      '240 demo.orders Tiering 2',
      '240 demo.clicks Tiering 3',
    ])
    const receipt = events.at(-1)
    assert.equal(receipt?.['event'], 'receipt')
    assert.equal(receipt['ok'], true)
    assert.deepEqual(
      (receipt['tables'] as Event[]).map(({ table, produced, in_lake, buckets, equal }) => [
        table,
        produced,
        in_lake,
        buckets,
        equal,
      ]),
      [
        ['demo.clicks', 540_000, 540_000, 16, true],
        ['demo.orders', 168_000, 168_000, 8, true],
        ['demo.customers', 50_000, 50_000, 12, true],
      ],
    )
    assert.match(String(receipt['reader']), /^DuckDB /)
  })
})

test('the demo replaces an earlier demo and nothing else', async () => {
  await withWarehouse(async (folder) => {
    const lake = join(folder, 'demo')
    const short = ['demo', '--warehouse', lake, '--speed', '1000', '--duration', '20s']
    const first = await runCli(short)
    assert.equal(first.exit, 0, first.err)
    assert.match(first.out, /✓ nothing lost, nothing doubled: \d+ commits, 0 fenced/)
    assert.match(first.out, /clicks +120,000 +120,000 +yes, every column +16 buckets contiguous/)
    const again = await runCli(short)
    assert.equal(again.exit, 0, again.err)
    assert.match(again.err, /note {2}the demo that was in .* is removed/)

    const other = join(folder, 'other')
    await mkdir(other)
    await writeFile(join(other, 'thesis.txt'), 'x')
    const refused = await runCli(['demo', '--warehouse', other])
    assert.equal(refused.exit, 2)
    assert.match(refused.err, /there is something that is no demo's/)
    assert.deepEqual(await readdir(other), ['thesis.txt'])
  })
})

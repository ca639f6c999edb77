import assert from 'node:assert/strict'
import { cp, mkdir, readdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { skipWithout } from './engines.ts'
import {
  assertEnginesRead,
  repository,
  sluice,
  tableIn,
  temporaryFolder,
  tier,
} from '../support/torture-lake.ts'

const flights = path.join(repository, 'examples', 'data', 'flights.ndjson')
const count = 'select count(*) as n, sum(delay) as d from demo.flights'

describe('a lake that is moved', async () => {
  const folder = await temporaryFolder('moved')
  const home = path.join(folder, 'home')
  const away = path.join(folder, 'a way', 'é%20')
  const into = (warehouse: string): string[] => [
    '--warehouse',
    warehouse,
    '--table',
    'demo.flights',
  ]

  test('is read where it is now, with a note about where it was', async () => {
    await tier([flights, ...into(home)])
    const before = await sluice(['query', home, count, '--csv'])
    await mkdir(path.dirname(away), { recursive: true })
    await rename(home, away)
    const after = await sluice(['query', away, count, '--csv'])
    assert.equal(after.status, 0, after.err)
    assert.equal(after.out, before.out)
    assert.doesNotMatch(before.err, /moved|recorded/)
    assert.ok(after.err.includes(home), after.err)
  })

  test('is not written to, and the refusal names where it was', async () => {
    const files = await filesBelow(away)
    const { status, err } = await sluice(['tier', flights, ...into(away)])
    assert.notEqual(status, 0)
    assert.ok(err.includes(home), err)
    assert.deepEqual(await filesBelow(away), files)
  })

  test('moved back, it takes the rest of its input and nothing twice', async () => {
    await rename(away, home)
    const again = await tier([flights, ...into(home)])
    assert.equal(again.rows, 0)
    const more = path.join(folder, 'more.ndjson')
    await writeFile(more, '{"date":"x","delay":1,"distance":2,"origin":"A","destination":"B"}\n')
    assert.equal((await tier([more, ...into(home)])).rows, 1)
    const { out } = await sluice(['query', home, 'select count(*) as n from demo.flights', '--csv'])
    assert.match(out, /5001/)
  })

  test('copied, the copy is read and not written to while the first one stays', async () => {
    const copy = path.join(folder, 'copy')
    await cp(home, copy, { recursive: true })
    const read = await sluice(['query', copy, count, '--csv'])
    assert.equal(read.status, 0, read.err)
    const files = await filesBelow(home)
    const { status, err } = await sluice(['tier', flights, ...into(copy)])
    assert.notEqual(status, 0)
    assert.ok(err.includes(home), err)
    assert.deepEqual(await filesBelow(home), files)
  })
})

describe('a warehouse with an odd name', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('odd')
  for (const name of ['with space', 'é', 'a%20b', "it's 1 +&=;"]) {
    test(`${name} is written twice, and read by every engine`, async () => {
      const warehouse = path.join(folder, name)
      const input = path.join(folder, 'rows.ndjson')
      const into = ['--warehouse', warehouse, '--table', 'demo.rows']
      await writeFile(input, '{"id":1}\n{"id":2}\n')
      await tier([input, ...into])
      await writeFile(input, '{"id":1}\n{"id":2}\n{"id":3}\n')
      assert.equal((await tier([input, ...into])).rows, 1)
      await assertEnginesRead({ files: [input], table: tableIn(warehouse, 'demo.rows') })
      const { out } = await sluice([
        'query',
        warehouse,
        'select sum(id) as n from demo.rows',
        '--csv',
      ])
      assert.match(out, /^6$/m)
    })
  }
})

async function filesBelow(folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true })).sort()
}

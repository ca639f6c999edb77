import { deepEqual, equal, ok } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SluiceError } from '../../../src/core/errors.ts'
import type { JournalEntry } from '../../../src/core/ports.ts'
import { moves } from '../../support/paced-runner.ts'
import { createWorld } from '../../support/tiering-world.ts'

test('a forced round, its commit and a round that is given up are told to operators', async () => {
  const entries: JournalEntry[] = []
  let commits = 0
  const world = await createWorld({
    tables: [
      { name: 'a', buckets: 1, freshness: 60, pace: moves(100, 100), written: () => 10_000 },
    ],
    readers: 1,
    job: { journal: { note: (entry) => void entries.push(entry) } },
    wrap: ({ committer }) => ({
      committer: {
        commit: async (...args) => {
          commits += 1
          if (commits === 1) return committer.commit(...args)
          return { kind: 'rejected', error: new SluiceError('COMMIT_FENCED', 'a is held by 1.9') }
        },
      },
    }),
  })
  await world.run(101)
  deepEqual(
    entries.map(({ level, event, fields }) => [level, event, fields?.['state'], fields?.['epoch']]),
    [
      ['debug', 'table.state', 'Tiering', 1],
      ['info', 'round.started', undefined, 1],
      ['info', 'round.force_finished', undefined, 1],
      ['info', 'round.committed', undefined, 1],
      ['debug', 'table.state', 'Tiered', 1],
      ['debug', 'table.state', 'Pending', 2],
      ['debug', 'table.state', 'Tiering', 2],
      ['info', 'round.started', undefined, 2],
      ['info', 'round.given_up', undefined, 2],
      ['debug', 'table.state', 'Failed', 2],
      ['debug', 'table.state', 'Pending', 3],
      ['debug', 'table.state', 'Tiering', 3],
      ['info', 'round.started', undefined, 3],
    ],
  )
  const of = (event: string): JournalEntry['fields'] =>
    entries.find((entry) => entry.event === event)?.fields
  equal(of('round.started')?.['splits'], 1)
  equal(of('round.committed')?.['rows'], 6_000n)
  equal(of('round.committed')?.['duration_ms'], 60_000)
  deepEqual(
    [of('round.given_up')?.['error_code'], of('round.given_up')?.['effect']],
    ['COMMIT_FENCED', 'none'],
  )
})

test('docs/operations.md names no log line that is never written', () => {
  const page = readFileSync(join(process.cwd(), 'docs/operations.md'), 'utf8')
  const section = page.split('\n## ').find((part) => part.startsWith('Log lines')) ?? ''
  const rows = [...section.matchAll(/^\| `([a-z_.]+)` \| (debug|info|warn|error) \|/gm)]
  const source = readdirSync(join(process.cwd(), 'src/sink'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(process.cwd(), 'src/sink', name), 'utf8'))
    .join('\n')
  ok(rows.length > 10)
  for (const [, event = ''] of rows) ok(source.includes(`'${event}'`), event)
})

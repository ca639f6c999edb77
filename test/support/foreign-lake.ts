import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { locationOf } from '../../src/catalog/store/local-store.ts'
import type { JsonObject } from '../../src/core/json64.ts'
import { openLake } from '../../src/library/api/lake.ts'
import { type CliRun, runCli } from '../unit/cli/lake-fixture.ts'
import { documentOf } from './cli.ts'
import { ForeignWriter } from './foreign-writer.ts'
import { scratchFolder } from './scratch.ts'

/** A lake of one table that `sluice tier` fills and that others write to as well. */
export class ForeignLake {
  readonly folder: string
  readonly table: string
  readonly others: ForeignWriter
  /** Inputs are opened from the folder of the process, so their path is absolute. */
  readonly input: string

  constructor(context: Pick<TestContext, 'after'>) {
    this.folder = scratchFolder(context)
    this.table = join(this.folder, 'lake/demo/clicks')
    this.input = join(this.folder, 'clicks.ndjson')
    this.others = new ForeignWriter(locationOf(this.table))
  }

  /** Grows the input to `records` records and tiers it. */
  async tier(records: number, more: readonly string[] = []): Promise<CliRun> {
    this.write(records)
    return this.run(['tier', this.input, '--warehouse', './lake', ...tableOption, ...more])
  }

  write(records: number, from = 0): void {
    const lines = Array.from({ length: records }, (_, at) => `{"n":${String(from + at)}}\n`)
    writeFileSync(this.input, lines.join(''))
  }

  /** Makes the table without a record in it. */
  async create(): Promise<CliRun> {
    const schema = join(this.folder, 'schema.json')
    writeFileSync(schema, '{"columns": [{"name": "n", "type": "BIGINT"}]}')
    return this.tier(0, ['--schema', schema])
  }

  run(args: readonly string[]): Promise<CliRun> {
    return runCli(args, { folder: this.folder })
  }

  /** The document of a command with `--json`. */
  async document(args: readonly string[]): Promise<JsonObject> {
    const { out, err } = await this.run([...args, '--json'])
    return documentOf({ stdout: out, stderr: err })
  }

  /** Every `n` that can be read now, ascending. */
  async numbers(): Promise<readonly number[]> {
    return (await this.#rows()).map(({ n }) => n).sort((a, b) => a - b)
  }

  /** Places of rows, each as `bucket/offset`, ascending; a place that is there twice is a fault. */
  async places(): Promise<readonly string[]> {
    return (await this.#rows()).map(({ place }) => place).sort()
  }

  async #rows(): Promise<readonly { readonly n: number; readonly place: string }[]> {
    const lake = await openLake({ warehouse: join(this.folder, 'lake') })
    const table = await lake.table('demo.clicks')
    const rows = []
    for await (const row of table.rows({ columns: ['n', '__bucket', '__offset'] })) {
      const [bucket, offset] = [Number(row['__bucket']), Number(row['__offset'])]
      rows.push({
        n: Number(row['n']),
        place: `${String(bucket)}/${String(offset).padStart(6, '0')}`,
      })
    }
    return rows
  }
}

const tableOption = ['--table', 'demo.clicks', '--buckets', '2'] as const

/** 0, 1, … */
export function upTo(count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => at)
}

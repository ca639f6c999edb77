import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '../../src/core/json64.ts'
import { repository, textOf } from '../support/cli.ts'
import type { Rows } from '../engines/engines.ts'

const home = process.env['SLUICE_ENGINES_HOME'] ?? join(repository, '.engines')

/** One session of Spark, with Java's Iceberg, that goes on until it is closed. */
export class Spark {
  readonly #child: ChildProcess
  readonly #answers: AsyncIterator<string>
  #complaint = ''
  #catalogs = 0

  private constructor(child: ChildProcess, answers: AsyncIterator<string>) {
    this.#child = child
    this.#answers = answers
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complaint = `${this.#complaint}${text}`.slice(-4000)
    })
  }

  /** Starts the session. @throws when it does not come up. */
  static async start(): Promise<Spark> {
    const python = join(home, 'spark/bin/python')
    if (!existsSync(python)) throw new Error(`no ${python}: run test/engines/setup.sh spark`)
    const child = spawn(python, [join(repository, 'test/spark/driver.py')], {
      env: { ...process.env, SLUICE_ENGINES_HOME: home },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const lines = createInterface({ input: child.stdout })
    const spark = new Spark(child, lines[Symbol.asyncIterator]())
    await spark.#answer('the start')
    return spark
  }

  /** Makes a hadoop catalog over a warehouse. @returns its name in SQL */
  async catalog(warehouse: string): Promise<string> {
    this.#catalogs += 1
    const catalog = `lake${String(this.#catalogs)}`
    await this.#ask({ catalog, warehouse })
    return catalog
  }

  /** Runs a statement. @returns the cells of its rows as text. @throws what Spark says. */
  async sql(sql: string): Promise<readonly (readonly (string | null)[])[]> {
    const { rows } = await this.#ask({ sql })
    return arrayOf(rows).map((row) =>
      arrayOf(row).map((cell) => (cell === null ? null : textOf(cell))),
    )
  }

  /** The data columns of a table in the canonical form of the other engines. */
  async rows(table: string, folder: string): Promise<Rows> {
    const file = join(tmpdir(), `sluice-rows-${randomUUID()}.ndjson`)
    try {
      const report = await this.#ask({ read: table, metadata: folder, rows: file })
      const lines = (await readFile(file, 'utf8')).split('\n')
      lines.pop()
      return {
        rows: Number(report['rows']),
        digest: textOf(report['digest']),
        looseDigest: textOf(report['looseDigest']),
        lines,
      }
    } finally {
      await rm(file, { force: true })
    }
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.on('close', resolve))
    this.#child.stdin?.end()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 20_000)
    await ended
    clearTimeout(timer)
  }

  #ask(request: Readonly<Record<string, string>>): Promise<JsonObject> {
    const line = JSON.stringify(request)
    this.#child.stdin?.write(`${line}\n`)
    return this.#answer(line)
  }

  async #answer(to: string): Promise<JsonObject> {
    const next = await this.#answers.next()
    if (next.done === true) throw new Error(`Spark ended at ${to}: ${this.#complaint}`)
    const answer = parseJson(next.value, { name: 'Spark' })
    if (!isJsonObject(answer)) throw new Error(`no answer to ${to}: ${next.value}`)
    if (answer['error'] !== undefined) throw new Error(`${to}: ${textOf(answer['error'])}`)
    return answer
  }
}

function arrayOf(value: JsonValue | undefined): readonly JsonValue[] {
  if (value === undefined || !isJsonArray(value)) throw new Error('Spark answered with no list')
  return value
}

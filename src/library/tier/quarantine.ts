import { SluiceError } from '../../core/errors.ts'
import { type JsonObject, stringifyJson } from '../../core/json64.ts'
import type { ObjectStore } from '../../catalog/store/object-store.ts'
import type { BadRecord } from '../../source/ingest/input.ts'

/**
 * Keeps refused records beside the lake, one file each. The name is the record's place in its input,
 * so that a run repeated after a crash writes the same files and none twice.
 */
export class Quarantine {
  /** Records set aside in this run, those found there already included. */
  count = 0
  readonly folder: string
  readonly #store: ObjectStore

  /** @param table As the file system takes it: one path segment. */
  constructor(store: ObjectStore, warehouse: string, table: string) {
    this.#store = store
    this.folder = `${warehouse}/_sluice/quarantine/${table}`
  }

  /** Where records of an input lie that were set aside, in this run or before: bytes, or rows. */
  async placesOf(id: string): Promise<readonly bigint[]> {
    const start = `${safeName(id)}-`
    const names = (await this.#store.list(`${this.folder}/`)).map(({ location }) =>
      location.slice(location.lastIndexOf('/') + 1),
    )
    return names.flatMap((name) => {
      if (!name.startsWith(start)) return []
      const place = /^(\d{1,18})\.ndjson$/.exec(name.slice(start.length))?.[1]
      return place === undefined ? [] : [BigInt(place)]
    })
  }

  /**
   * Writes them durably; to be called before the records after them can be committed.
   * @throws SluiceError STORE_UNAVAILABLE when a record cannot be kept
   */
  async keep(
    input: { readonly id: string; readonly name: string },
    bad: readonly BadRecord[],
  ): Promise<void> {
    for (const record of bad) {
      const place = record.kind === 'row' ? record.row : record.byte
      const name = `${safeName(input.id)}-${String(place)}.ndjson`
      const location = `${this.folder}/${name}`
      const outcome = await this.#store.createIfAbsent(location, lineOf(input.name, record), {
        makeFolders: true,
      })
      if (outcome.kind === 'unknown') {
        throw new SluiceError(
          'STORE_UNAVAILABLE',
          `${location}: a refused record could not be kept`,
          {
            cause: outcome.cause,
          },
        )
      }
      this.count += 1
    }
  }
}

/** Text of one quarantine file: one JSON object and a newline. */
function lineOf(input: string, record: BadRecord): Uint8Array {
  const { code, reason, raw } = record
  const text = exactText(raw)
  const kept =
    text === undefined ? { record_base64: Buffer.from(raw).toString('base64') } : { record: text }
  const line = stringifyJson({ input, ...placeOf(record), code, reason, ...kept })
  return Buffer.from(`${line}\n`)
}

/** Where it lies, in what its input is counted in. */
function placeOf(record: BadRecord): JsonObject {
  if (record.kind === 'row') return { row: record.row }
  return { line: record.line, byte: record.byte }
}

function exactText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** An input id as one path segment. Ids made from content are hexadecimal and stay as they are. */
function safeName(id: string): string {
  const name = id.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, 100)
  return name.startsWith('.') ? `_${name}` : name
}

import { SluiceError } from '../../core/errors.ts'
import { silentJournal } from '../../core/ports.ts'
import { parseSize } from '../../core/size.ts'
import { seededChance, systemClock, systemIds } from '../../core/system.ts'
import { formatTableName, parseTableName } from '../../core/table-name.ts'
import { type LogTable, logTable } from '../../source/index.ts'
import {
  columnsToFields,
  freshnessOf,
  libraryWords,
  requireSameDefinition,
} from '../table-definition.ts'
import { type SessionTable, TieringSession } from '../tiering-session.ts'
import { checkMembers, definitionMembers, refuseLater } from './check-options.ts'
import { type Duration, durationMs, durationText } from './duration.ts'
import { type Lake, partsOf } from './lake.ts'

export type TableDefinition = {
  /** Column name to Fluss type: `{ id: 'BIGINT NOT NULL', note: 'STRING' }`. */
  readonly columns: Readonly<Record<string, string>>
  /** 1 to 4096, 4 unless given; fixed from then on. */
  readonly buckets?: number
  /** Column whose hash decides the bucket; without it, blocks of 1,024 records take turns. */
  readonly bucketKey?: string
  readonly freshness?: Duration
  readonly properties?: Readonly<Record<string, string>>
  readonly formatVersion?: 2
}

export interface Source extends AsyncDisposable {
  close(): Promise<void>
}

export interface EmbeddedSource extends Source {
  /**
   * Creates the table here and in the lake, or opens it when the definition is the same.
   * @throws SluiceError TABLE_MISMATCH, SCHEMA_UNSUPPORTED, NAME_INVALID, PROGRESS_LOST
   */
  createTable(name: string, definition: TableDefinition): Promise<LogTable>
}

export type EmbeddedSourceOptions = {
  /** Logs start at the ends of this lake; replayed records of a known input are skipped. */
  readonly resumeFrom: Lake
  /** Memory for logs, such as `512MiB`; 256MiB unless given. */
  readonly logMemory?: string
}

/** What the job needs to know about a source of this module. */
export type SourceParts = {
  readonly session: TieringSession
  readonly lake: Lake
  readonly tables: ReadonlyMap<string, SessionTable>
}

const parts = new WeakMap<Source, SourceParts>()

const writerBytesDefault = 192 * 2 ** 20

/** Opens an in-memory source whose tables live in a lake. */
export function openEmbeddedSource(options: EmbeddedSourceOptions): Promise<EmbeddedSource> {
  checkMembers('openEmbeddedSource', options, ['resumeFrom', 'logMemory'])
  const lake = partsOf(options.resumeFrom)
  const session = new TieringSession(
    {
      lake,
      logBytes: parseSize(options.logMemory ?? '256MiB', 'logMemory'),
      writerBytes: writerBytesDefault,
      readers: 4,
    },
    {
      clock: systemClock,
      chance: seededChance(Number.parseInt(systemIds.bits128().slice(0, 7), 16)),
      ids: systemIds,
      journal: silentJournal,
    },
  )
  const tables = new Map<string, SessionTable>()
  const close = (): Promise<void> => {
    session.close()
    return Promise.resolve()
  }

  const source: EmbeddedSource = {
    async createTable(given, definition) {
      const name = parseTableName(given)
      const shown = formatTableName(name)
      checkMembers(`createTable ${shown}`, definition, definitionMembers)
      refuseLater(shown, definition)
      const freshnessMs =
        definition.freshness === undefined
          ? undefined
          : durationMs(definition.freshness, 'freshness')
      const fields = columnsToFields(definition.columns)
      const properties = new Map(Object.entries(definition.properties ?? {}))
      if (definition.freshness !== undefined) {
        properties.set('table.datalake.freshness', durationText(definition.freshness))
      }
      await lake.requireSafe()
      const { table } = await lake.catalog.create({
        name,
        schema: { fields },
        bucketCount: definition.buckets ?? 4,
        properties,
        ...(definition.bucketKey === undefined ? {} : { bucketKey: definition.bucketKey }),
      })
      const loaded = await table.load()
      requireSameDefinition(
        shown,
        loaded,
        {
          fields,
          ...(definition.buckets === undefined ? {} : { bucketCount: definition.buckets }),
          bucketKey: definition.bucketKey,
        },
        libraryWords,
      )
      const opened = await session.openTable({
        name: shown,
        lake: table,
        definition: {
          schema: { fields },
          bucketCount: loaded.bucketCount,
          bucketKey: loaded.bucketKey,
          freshnessMs: freshnessMs ?? freshnessOf(loaded.properties),
        },
        start: 'goes-on',
      })
      tables.set(shown, opened)
      return logTable(session.source, opened.table)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
  parts.set(source, { session, lake: options.resumeFrom, tables })
  return Promise.resolve(source)
}

/** @throws SluiceError CONFIG_INVALID for a source that this library did not open. */
export function sourceParts(source: Source): SourceParts {
  const found = parts.get(source)
  if (found !== undefined) return found
  throw new SluiceError('CONFIG_INVALID', 'the source is not one that openEmbeddedSource returned')
}

import { join } from 'node:path'
import { DeletedRows } from '../catalog/iceberg/read-deletes.ts'
import { readDataFile } from '../catalog/iceberg/read-data-file.ts'
import { liveRowsOf } from '../catalog/iceberg/live-rows.ts'
import type { LakeTable, LoadedTable } from '../catalog/ports.ts'
import { SluiceError } from '../core/errors.ts'
import type { Bucket } from '../core/ids.ts'
import { check } from '../core/never.ts'
import type { IdSource, Journal } from '../core/ports.ts'
import type { Field, IdField } from '../core/schema/types.ts'
import type { Upserts } from '../sink/committer/held-table.ts'
import { indexFamilies } from '../sink/keys/bucket-index.ts'
import { KeyIndex } from '../sink/keys/key-index.ts'
import { positionUpserts } from '../sink/keys/upserts.ts'
import { chooseEncoder } from '../sink/parquet/index.ts'
import type { ChangelogOptions, MergeEngine } from '../source/changelog/change-batch.ts'
import { versionColumnProblem } from '../source/changelog/version-order.ts'
import { type KeyedOptions, stateFamilies } from '../source/embedded/keyed-state.ts'
import type { KvStore } from '../source/kv/ports.ts'
import type { KvStores } from '../source/kv/stores.ts'
import { changelogKeys } from './changelog-keys.ts'
import { encoderOptionsOf } from './encoding.ts'
import type { OpenedLake } from './open-lake.ts'

/** What table properties say about changes, by Fluss's names. @throws SluiceError CONFIG_INVALID */
export function changelogOptions(
  properties: ReadonlyMap<string, string>,
  fields: readonly Field[],
): ChangelogOptions {
  const valueOf = (key: string): string | undefined => properties.get(`fluss.${key}`)
  const engine = mergeEngine(valueOf(changelogKeys.engine), valueOf(changelogKeys.version), fields)
  const image = valueOf(changelogKeys.image)?.toLowerCase() ?? 'full'
  if (image !== 'full' && image !== 'wal') {
    throw invalid(changelogKeys.image, image, 'full or wal')
  }
  const keepsFirst = engine.kind !== 'last_row'
  const deletes = valueOf(changelogKeys.deletes)?.toLowerCase() ?? (keepsFirst ? 'ignore' : 'allow')
  if (deletes !== 'allow' && deletes !== 'ignore' && deletes !== 'disable') {
    throw invalid(changelogKeys.deletes, deletes, 'allow, ignore or disable')
  }
  if (keepsFirst && deletes === 'allow') {
    throw invalid(changelogKeys.deletes, deletes, `ignore or disable with ${engine.kind}`)
  }
  return { engine, image, deletes }
}

function mergeEngine(
  name: string | undefined,
  version: string | undefined,
  fields: readonly Field[],
): MergeEngine {
  switch (name?.toLowerCase()) {
    case undefined:
    case 'last_row':
      return { kind: 'last_row' }
    case 'first_row':
      return { kind: 'first_row' }
    case 'versioned': {
      if (version === undefined) throw invalid(changelogKeys.version, '', 'the name of a column')
      const problem = versionColumnProblem(fields, version)
      if (problem !== undefined) throw new SluiceError('CONFIG_INVALID', problem)
      return { kind: 'versioned', column: version }
    }
    default:
      throw invalid(changelogKeys.engine, name ?? '', 'first_row or versioned')
  }
}

function invalid(key: string, value: string, wanted: string): SluiceError {
  return new SluiceError('CONFIG_INVALID', `${key} "${value}" is not ${wanted}`, {
    details: { property: key, value },
  })
}

export type KeyedPorts = {
  readonly stores: KvStores
  /** Where stores lie, each in a folder of its own. */
  readonly stateFolder: string
  readonly lake: OpenedLake
  readonly ids: IdSource
  readonly journal: Journal
}

/** What a primary-key table has in a session beside its log. */
export type KeyedTableParts = { readonly keyed: KeyedOptions; readonly upserts: Upserts }

/**
 * Puts a primary-key table together: one store for each bucket, in which the source keeps rows and the
 * sink where they lie in the lake.
 *
 * @param version The version that the source goes on from.
 * @param mark Names what the lake has of the table; undefined when it has nothing.
 */
export function keyedTable(
  table: {
    readonly lake: LakeTable
    readonly version: LoadedTable
    readonly fields: readonly Field[]
    readonly mark: string | undefined
  },
  ports: KeyedPorts,
): KeyedTableParts {
  const { lake, version, fields, mark } = table
  const opened = new Map<Bucket, Promise<KvStore>>()
  const storeOf = (bucket: Bucket): Promise<KvStore> => {
    const known = opened.get(bucket)
    if (known !== undefined) return known
    const store = ports.stores.open({
      folder: join(ports.stateFolder, version.uuid, String(bucket)),
      families: Object.fromEntries([...stateFamilies, ...indexFamilies].map((name) => [name, {}])),
      progressFamily: 'meta',
    })
    opened.set(bucket, store)
    return store
  }
  const { store } = ports.lake
  const index = new KeyIndex({ lake, store, layout: version, storeOf })
  const upserts = positionUpserts({
    index,
    store,
    ids: ports.ids,
    journal: ports.journal,
    encoder: chooseEncoder('columnar', version.fields),
    encoderOptions: encoderOptionsOf(version.properties),
  })
  const keyed: KeyedOptions = {
    changelog: changelogOptions(version.properties, fields),
    storeOf,
    ...(mark === undefined ? {} : { mark }),
    ...(version.head === undefined
      ? {}
      : {
          rowsOf: (bucket) =>
            liveRowsOf(bucket, idFieldsOf(version, fields), {
              files: () => lake.liveFiles(version),
              deletedIn: (files) => new DeletedRows(store, files),
              readColumns: (location, wanted) => readDataFile(store, location, wanted),
            }),
        }),
  }
  return { keyed, upserts }
}

function idFieldsOf(version: LoadedTable, fields: readonly Field[]): readonly IdField[] {
  return fields.map(({ name, type }) => {
    const field = version.fields.find((each) => each.name === name)
    check(field !== undefined, 'the lake has the columns of the table')
    return { ...field, type }
  })
}

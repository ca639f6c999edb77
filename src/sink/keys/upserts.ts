import type { ObjectStore } from '../../catalog/store/object-store.ts'
import type { IdSource, Journal } from '../../core/ports.ts'
import type { Upserts } from '../committer/held-table.ts'
import type { EncoderOptions, ParquetEncoder } from '../parquet/encoder.ts'
import { bucketFolder } from '../writer/bucket-folder.ts'
import { deriveDeletes } from './derive.ts'
import type { KeyIndex } from './key-index.ts'
import { writeDeletes } from './write-deletes.ts'

export type PositionUpsertsOptions = {
  readonly index: KeyIndex
  readonly store: ObjectStore
  readonly ids: IdSource
  readonly journal: Journal
  readonly encoder: ParquetEncoder
  readonly encoderOptions: EncoderOptions
}

/** Replaces rows by their positions: position delete files, or deletion vectors in format 3. */
export function positionUpserts(options: PositionUpsertsOptions): Upserts {
  const { index } = options
  return {
    async deletesOf(table, results) {
      const buckets = results.map(({ bucket }) => bucket)
      const version = await index.catchUp(table, buckets)
      const derived = await deriveDeletes(table, version, index, results)
      const deletes = await writeDeletes(table, derived, {
        store: options.store,
        ids: options.ids,
        encoder: options.encoder,
        options: options.encoderOptions,
        folderOf: ({ bucket }) => bucketFolder(table, bucket),
        prefixOf: ({ bucket }) => String(bucket).padStart(5, '0'),
      })
      return { deletes, droppedDeletes: derived.flatMap(({ drops }) => drops) }
    },

    async applied(landed, results) {
      try {
        await index.applied(landed, results)
      } catch (error) {
        // The commit is in: a cache that could not follow must not make it look otherwise.
        index.forget()
        options.journal.note({
          level: 'warn',
          event: 'index.dropped',
          message:
            'the index of keys could not be brought up to date; it is read from the lake again',
          fields: { error_code: error instanceof Error ? error.message : String(error) },
        })
      }
    },
  }
}

import { fromArrow } from '../../core/columns/arrow.ts'
import { columnBuilder } from '../../core/columns/builder.ts'
import type { Column, ColumnBatch } from '../../core/columns/column.ts'
import { parquetBatches } from '../../core/columns/parquet-in.ts'
import { SluiceError } from '../../core/errors.ts'
import type { IdField } from '../../core/schema/types.ts'
import type { ObjectStore } from '../store/object-store.ts'

/** Reads columns of one file of rows, in order, matched by field id. */
export type ReadColumns = (
  location: string,
  fields: readonly IdField[],
) => AsyncIterable<ColumnBatch>

/**
 * Reads the columns of one data file in batches, matched by field id, by name where a file has no
 * ids. A column that the file does not have is null (Iceberg: it was added later).
 * @throws SluiceError DATA_CORRUPT
 */
export async function* readDataFile(
  store: ObjectStore,
  location: string,
  fields: readonly IdField[],
): AsyncGenerator<ColumnBatch> {
  const bytes = await store.read(location)
  if (bytes === undefined) {
    throw new SluiceError('DATA_CORRUPT', `${location}: a data file of the table is not there`, {
      details: { file: location },
    })
  }
  for await (const arrow of parquetBatches(new Blob([bytes]), location)) {
    const ids = arrow.schema.fields.map((field) => field.metadata.get('PARQUET:field_id'))
    const { batch } = fromArrow(arrow)
    const columns = fields.map((field): Column => {
      const byId = ids.indexOf(String(field.id))
      const at = byId >= 0 ? byId : arrow.schema.fields.findIndex(({ name }) => name === field.name)
      const column = batch.columns[at]
      return column === undefined ? nulls(field, batch.length) : { ...column, type: field.type }
    })
    yield { length: batch.length, columns }
  }
}

function nulls(field: IdField, length: number): Column {
  const builder = columnBuilder({ ...field.type, nullable: true })
  for (let i = 0; i < length; i += 1) builder.appendNull()
  return builder.finish()
}

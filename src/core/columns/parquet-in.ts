import { type RecordBatch, RecordBatchReader } from 'apache-arrow'
import { ParquetFile } from 'parquet-wasm/node'
import { SluiceError } from '../errors.ts'

/** Rows decoded at once. */
const batchRows = 8192

/**
 * The rows of a Parquet file as Arrow batches, one row group in memory at a time. Field ids stand in
 * the metadata of the fields as `PARQUET:field_id`.
 *
 * @param blob The file; `fs.openAsBlob` reads it piece by piece.
 * @param name What messages call the file.
 * @throws SluiceError DATA_CORRUPT when it is not Parquet or cannot be decoded
 */
export async function* parquetBatches(
  blob: Blob,
  name: string,
  options: { readonly columns?: readonly string[] } = {},
): AsyncGenerator<RecordBatch> {
  let file: ParquetFile | undefined
  try {
    file = await ParquetFile.fromFile(blob)
    const groups = file.metadata().numRowGroups()
    for (let group = 0; group < groups; group += 1) {
      const table = await file.read({
        rowGroups: [group],
        batchSize: batchRows,
        ...(options.columns === undefined ? {} : { columns: [...options.columns] }),
      })
      // The stream consumes the table and frees it.
      yield* RecordBatchReader.from(table.intoIPCStream())
    }
  } catch (error) {
    if (error instanceof SluiceError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new SluiceError('DATA_CORRUPT', `${name}: cannot be read as Parquet (${reason})`, {
      details: { file: name },
      cause: error,
    })
  } finally {
    file?.free()
  }
}

import { type RecordBatch, RecordBatchReader } from 'apache-arrow'
import { readParquet } from 'parquet-wasm/node'
import { SluiceError } from '../errors.ts'
import { decoderReason } from './decoder-reason.ts'
import { cutGroup, type Inspect, readFooter } from './parquet-groups.ts'

/** Rows decoded at once. */
const batchRows = 8192
/** Rows of one row group that are decoded before they are handed on. */
const sliceRows = 262_144

/**
 * The rows of a Parquet file as Arrow batches, one row group in memory at a time. Field ids stand in
 * the metadata of the fields as `PARQUET:field_id`.
 *
 * The decoder's own reader of files ends the process at a damaged page, outside of every promise. Its
 * reader of whole files in memory reports it, so each row group is handed over as such a file.
 *
 * @param blob The file; `fs.openAsBlob` reads it piece by piece.
 * @param name What messages call the file.
 * @throws SluiceError DATA_CORRUPT when it is not Parquet or cannot be decoded
 */
export async function* parquetBatches(
  blob: Blob,
  name: string,
  options: {
    readonly columns?: readonly string[]
    readonly inspect?: Inspect
  } = {},
): AsyncGenerator<RecordBatch> {
  const { columns, inspect } = options
  try {
    const footer = await readFooter(blob)
    for (const group of footer.groups) {
      const bytes = await cutGroup(blob, footer, group, inspect)
      // In slices: a row group may hold a whole file, and decoded it is many times larger.
      for (let offset = 0; offset < group.rows; offset += sliceRows) {
        const table = readParquet(bytes, {
          batchSize: batchRows,
          offset,
          limit: sliceRows,
          ...(columns === undefined ? {} : { columns: [...columns] }),
        })
        // The stream consumes the table and frees it.
        yield* RecordBatchReader.from(table.intoIPCStream())
      }
    }
  } catch (error) {
    if (error instanceof SluiceError && error.code !== 'DATA_CORRUPT') throw error
    const reason = decoderReason(error)
    throw new SluiceError('DATA_CORRUPT', `${name}: cannot be read as Parquet (${reason})`, {
      details: { file: name },
      cause: error,
    })
  }
}

import { RecordBatchStreamWriter } from 'apache-arrow'
import {
  Compression,
  EnabledStatistics,
  Table,
  writeParquet,
  WriterPropertiesBuilder,
} from 'parquet-wasm'
import type { ColumnBatch } from '../../core/columns/column.ts'
import { toArrow } from '../../core/columns/arrow.ts'
import type { Field } from '../../core/schema/types.ts'
import type { EncoderOptions } from './encoder.ts'
import { rowGroupRowsMax } from './file.ts'

/** The batches as a Parquet file of one row group. */
export function writeGroup(
  fields: readonly Field[],
  batches: readonly ColumnBatch[],
  options: EncoderOptions,
): Uint8Array {
  const stream = new RecordBatchStreamWriter()
  for (const batch of batches) stream.write(toArrow(fields, batch))
  stream.finish()
  const compression = options.compression === 'none' ? Compression.UNCOMPRESSED : Compression.ZSTD
  const properties = new WriterPropertiesBuilder()
    .setCompression(compression)
    .setDataPageSizeLimit(options.pageBytes)
    .setStatisticsEnabled(EnabledStatistics.None)
    .setMaxRowGroupSize(rowGroupRowsMax)
    .build()
  // The table is consumed by the writer: neither needs to be freed.
  return writeParquet(Table.fromIPCStream(stream.toUint8Array(true)), properties)
}

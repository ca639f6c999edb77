/** What of parquetjs-lite is used; the package has no declarations of its own. */
export type ParquetJs = {
  readonly ParquetSchema: new (definition: object) => object
  readonly ParquetEnvelopeWriter: new (
    schema: object,
    write: (bytes: Uint8Array) => unknown,
    close: () => unknown,
    offset: number,
    options: object,
  ) => EnvelopeWriter
  readonly ParquetWriter: new (
    schema: object,
    envelope: EnvelopeWriter,
    options: object,
  ) => RowWriter
}

export type Row = Record<string, unknown>

export type EnvelopeWriter = {
  readonly schema: object
  readonly rowGroups: readonly { readonly columns: readonly { readonly meta_data: Chunk }[] }[]
}

type Chunk = { readonly data_page_offset: unknown; readonly total_compressed_size: unknown }

export type RowWriter = {
  appendRow(row: Row): Promise<void>
  close(): Promise<void>
}

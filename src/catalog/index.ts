/** Lake tables: `sluice/catalog`. */
export { type FileCatalogOptions, fileCatalog } from './iceberg/file-catalog.ts'
export { lakeType } from './iceberg/format/schema-json.ts'
export { nameMapping, nameMappingProperty } from './iceberg/format/name-mapping.ts'
export { type FoundTable, listTables } from './iceberg/list-tables.ts'
export type { Moved } from './iceberg/moved.ts'
export { refuseEqualityDeletes, scanRows } from './iceberg/scan-rows.ts'
export {
  type ScannedFile,
  type ScanPoint,
  scanTable,
  type TableScan,
} from './iceberg/scan.ts'
export type {
  DataFile,
  FieldMetrics,
  LakeCatalog,
  LakeTable,
  LoadedTable,
  SnapshotEntry,
  SwapOutcome,
  TableChange,
  TableDefinition,
  TableName,
} from './ports.ts'
export { localStore } from './store/local-store.ts'
export { memoryStore } from './store/memory-store.ts'
export type { CreateOutcome, ObjectEntry, ObjectStore, ObjectWriter } from './store/object-store.ts'

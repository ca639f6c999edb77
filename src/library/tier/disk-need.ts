import type { DataType } from '../../core/schema/types.ts'
import type { EmbeddedSource } from '../../source/embedded/embedded-source.ts'
import type { SessionTable } from '../tiering-session.ts'

/** `__offset` and `__timestamp`, which the log does not hold; `__bucket` is the same in a whole file. */
const systemBytesPerRow = 16
/** Footer, page headers and the last block of a file, and what a column of it adds. */
const fileBytes = 16 * 1024
const columnBytes = 4 * 1024
/** The files of one commit, and what a snapshot adds to the metadata. */
const commitBytes = 64 * 1024
const snapshotBytes = 4 * 1024

/**
 * The most bytes that tiering what waits in the log takes on a disk: its records uncompressed, though
 * they are compressed nearly always, and what every file adds.
 */
export async function diskNeeded(
  source: EmbeddedSource,
  { table, version }: SessionTable,
): Promise<number> {
  const waiting = (await source.ranges(table.id)).map(({ earliest, end }) => Number(end - earliest))
  const rows = waiting.reduce((sum, each) => sum + each, 0)
  const files = waiting.filter((each) => each > 0).length
  const columns = table.schema.fields.reduce((sum, field) => sum + leavesOf(field.type), 3)
  const metadata = commitBytes + snapshotBytes * version.table.snapshots.size
  const data = source.heldBytes + systemBytesPerRow * rows
  return Math.ceil(data * 1.01) + files * (fileBytes + columns * columnBytes) + metadata
}

function leavesOf(type: DataType): number {
  switch (type.kind) {
    case 'array':
      return leavesOf(type.element)
    case 'map':
      return leavesOf(type.key) + leavesOf(type.value)
    case 'row':
      return type.fields.reduce((sum, field) => sum + leavesOf(field.type), 0)
    default:
      return 1
  }
}

import { crc32 } from 'node:zlib'
import { intIn, readStruct } from '../core/columns/compact-structs.ts'
import type { RowGroup } from '../core/columns/parquet-groups.ts'
import { formatCount, quoteValue } from '../core/text.ts'
import { damage } from './damage.ts'

/** Fields of `PageHeader` in parquet.thrift. */
const pageHeader = { storedBytes: 3, checksum: 4 } as const

/**
 * Holds the pages of a row group to the checksums in their headers. Pages without one, as many
 * writers leave them, are not judged.
 *
 * @param bytes The file from the start of the row group to its end.
 * @throws SluiceError DATA_CORRUPT at the first page whose bytes are not those that were written
 */
export function checkPages(group: RowGroup, bytes: Buffer): void {
  for (const { path, start, end } of group.chunks) {
    for (let at = start; at < end; ) {
      const page = `the page of column ${quoteValue(path.join('.'))} at byte ${formatCount(at)}`
      const cursor = { bytes, at: at - group.start }
      const header = readStruct(cursor)
      const size = intIn(header, pageHeader.storedBytes) ?? -1
      const body = bytes.subarray(cursor.at, cursor.at + size)
      at = group.start + cursor.at + size
      if (size < 0 || at > end) throw damage(`${page} does not end within its column chunk`)
      const checksum = intIn(header, pageHeader.checksum)
      if (checksum === undefined) continue
      const found = crc32(body)
      if (found === checksum >>> 0) continue
      throw damage(`${page} has the checksum ${hex(checksum >>> 0)}, its bytes have ${hex(found)}`)
    }
  }
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0')
}

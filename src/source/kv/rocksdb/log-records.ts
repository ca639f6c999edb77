/** Both kinds of RocksDB log, the manifest and the write-ahead log, are blocks of this size. */
const blockBytes = 32_768
/** Checksum, length and type, and in a log whose file is used again its number. */
const headBytes = 7
const recycledHeadBytes = 11

const full = 1
const first = 2
const middle = 3
const last = 4

/**
 * The records of a RocksDB log, in order. A record that is not whole ends them: the file was cut
 * there, or the process ended while it wrote. Checksums are left to RocksDB, which reads the same
 * records when it opens the store.
 */
export function* logRecords(bytes: Buffer): Generator<Buffer> {
  let position = 0
  let pieces: Buffer[] = []
  while (position + headBytes <= bytes.length) {
    const left = blockBytes - (position % blockBytes)
    const length = bytes.readUInt16LE(position + 4)
    const type = bytes.readUInt8(position + 6)
    // No header begins in the last bytes of a block, and a block that was reserved only is zeros.
    if (left < headBytes || (type === 0 && length === 0)) {
      position += left
      continue
    }
    const begin = position + (isRecycled(type) ? recycledHeadBytes : headBytes)
    const end = begin + length
    if (end > bytes.length) return
    position = end
    const piece = bytes.subarray(begin, end)
    switch (isRecycled(type) ? type - 4 : type) {
      case full:
        yield piece
        break
      case first:
        pieces = [piece]
        break
      case middle:
        pieces.push(piece)
        break
      case last:
        yield Buffer.concat([...pieces, piece])
        pieces = []
        break
      default:
        // Notes of the log about itself, such as its compression, are no records.
        break
    }
  }
}

function isRecycled(type: number): boolean {
  return type >= 5 && type <= 8
}

/** The sequence numbers of the changes in a write-ahead log; undefined when it has none. */
export type SequenceRange = { readonly from: bigint; readonly end: bigint }

/** Answers where a log itself skips numbers with the two that should meet. */
export type WalContent =
  | { readonly kind: 'empty' }
  | { readonly kind: 'whole'; readonly range: SequenceRange }
  | { readonly kind: 'gap'; readonly expected: bigint; readonly found: bigint }

/** Every batch begins with the sequence number of its first change, and the count of them. */
const batchHeadBytes = 12

export function walContent(bytes: Buffer): WalContent {
  let range: SequenceRange | undefined
  for (const record of logRecords(bytes)) {
    if (record.length < batchHeadBytes) continue
    const from = record.readBigUInt64LE(0)
    const end = from + BigInt(record.readUInt32LE(8))
    if (range !== undefined && range.end !== from) {
      return { kind: 'gap', expected: range.end, found: from }
    }
    range = { from: range?.from ?? from, end }
  }
  return range === undefined ? { kind: 'empty' } : { kind: 'whole', range }
}

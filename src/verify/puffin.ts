import { crc32 } from 'node:zlib'
import { parseJson } from '../core/json64.ts'
import { damage } from './damage.ts'
import { bigAt, objectOr, objectsAt, optionalText, textAt, textsAt } from './json-view.ts'
import { readRoaring, type TakePositions } from './roaring.ts'

/** A blob as the footer of a Puffin file describes it. */
export type PuffinBlob = {
  readonly type: string
  readonly offset: bigint
  readonly bytes: bigint
  readonly codec: string | undefined
  readonly properties: ReadonlyMap<string, string>
}

const magic = Buffer.from('PFA1', 'latin1')
const vectorMagic = Buffer.from([0xd1, 0xd3, 0x39, 0x64])
const footerBytesMax = 64 * 1024 * 1024
/** Length, flags and magic. */
const tailBytes = 12

/**
 * The blobs of a Puffin file (Puffin spec, "Footer").
 * @returns undefined when the footer is compressed, which only LZ4 can be
 * @throws SluiceError DATA_CORRUPT
 */
export async function readPuffinFooter(file: Blob): Promise<readonly PuffinBlob[] | undefined> {
  if (file.size < 2 * magic.length + tailBytes) throw damage('it is too short for a Puffin file')
  const head = await piece(file, 0, magic.length)
  const tail = await piece(file, file.size - tailBytes, file.size)
  if (!head.equals(magic) || !tail.subarray(8).equals(magic)) throw damage('not a Puffin file')
  const length = tail.readUInt32LE(0)
  const start = file.size - tailBytes - length
  if (start < 2 * magic.length || length > footerBytesMax) {
    throw damage(`its footer would have ${length} bytes`)
  }
  const footer = await piece(file, start - magic.length, file.size - tailBytes)
  if (!footer.subarray(0, magic.length).equals(magic)) throw damage('its footer has no magic')
  const flags = tail.readUInt32LE(4)
  if (flags === 1) return undefined
  if (flags !== 0) throw damage(`its footer has flags ${flags} that are not known`)
  const json = parseJson(footer.subarray(magic.length), { name: 'its footer' })
  return objectsAt(objectOr(json, 'its footer'), 'blobs').map((blob) => ({
    type: textAt(blob, 'type'),
    offset: bigAt(blob, 'offset'),
    bytes: bigAt(blob, 'length'),
    codec: optionalText(blob, 'compression-codec'),
    properties: textsAt(blob, 'properties'),
  }))
}

/**
 * The positions of a `deletion-vector-v1` blob: its length, magic, set and checksum.
 * @returns how many there are
 * @throws SluiceError DATA_CORRUPT
 */
export function readVector(blob: Uint8Array, take: TakePositions): number {
  const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.length)
  if (bytes.length < 20) throw damage(`a deletion vector of ${bytes.length} bytes`)
  const length = bytes.readUInt32BE(0)
  if (length !== bytes.length - 8) {
    throw damage(`a deletion vector of ${bytes.length} bytes says its length is ${length}`)
  }
  if (!bytes.subarray(4, 8).equals(vectorMagic)) throw damage('a deletion vector without its magic')
  const [said, found] = [bytes.readUInt32BE(4 + length), crc32(bytes.subarray(4, 4 + length))]
  if (said !== found) {
    throw damage(`a deletion vector has the checksum ${hex(said)}, its bytes have ${hex(found)}`)
  }
  return readRoaring(bytes.subarray(8, 4 + length), take)
}

async function piece(file: Blob, from: number, to: number): Promise<Buffer> {
  return Buffer.from(await file.slice(from, to).arrayBuffer())
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0')
}

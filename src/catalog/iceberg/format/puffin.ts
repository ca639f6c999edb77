import { crc32 } from 'node:zlib'
import { SluiceError } from '../../../core/errors.ts'
import { decodePositions, encodePositions } from './roaring.ts'

/** A vector to be written: the deleted rows of one data file. */
export type Vector = {
  /** Byte for byte as the manifest names the data file. */
  readonly dataFile: string
  /** Row ordinals in the file, ascending, each once. */
  readonly positions: Uint32Array
}

export type BlobPlace = { readonly offset: number; readonly bytes: number }

const puffinMagic = Buffer.from('PFA1', 'latin1')
const vectorMagic = Buffer.from([0xd1, 0xd3, 0x39, 0x64])
/** Reserved id of a row's position, the one column a vector speaks of. */
const positionFieldId = 2_147_483_645

/**
 * A Puffin file of `deletion-vector-v1` blobs (Puffin spec), one for each data file.
 * @returns the file, and where each blob lies in it, in the order given
 */
export function writeVectors(vectors: readonly Vector[]): {
  readonly bytes: Uint8Array
  readonly blobs: readonly BlobPlace[]
} {
  const parts: Uint8Array[] = [puffinMagic]
  const blobs: BlobPlace[] = []
  let offset = puffinMagic.length
  for (const { positions } of vectors) {
    const blob = vectorBlob(positions)
    parts.push(blob)
    blobs.push({ offset, bytes: blob.length })
    offset += blob.length
  }
  const footer = Buffer.from(
    JSON.stringify({
      blobs: vectors.map(({ dataFile, positions }, index) => ({
        type: 'deletion-vector-v1',
        fields: [positionFieldId],
        // Inherited, as the commit that takes the file is not known yet.
        'snapshot-id': -1,
        'sequence-number': -1,
        offset: blobs[index]?.offset,
        length: blobs[index]?.bytes,
        properties: {
          'referenced-data-file': dataFile,
          cardinality: String(positions.length),
        },
      })),
      properties: { 'created-by': 'sluice' },
    }),
  )
  const tail = Buffer.alloc(8)
  tail.writeUInt32LE(footer.length, 0)
  parts.push(puffinMagic, footer, tail, puffinMagic)
  return { bytes: Buffer.concat(parts), blobs }
}

/** The positions in one blob, its checksum checked. @throws SluiceError DATA_CORRUPT */
export function readVector(blob: Uint8Array, name: string): Uint32Array {
  const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.length)
  const isWhole =
    bytes.length >= 12 &&
    bytes.readUInt32BE(0) === bytes.length - 8 &&
    bytes.subarray(4, 8).equals(vectorMagic)
  if (!isWhole) throw corrupt(name, 'it is cut, or none')
  const body = bytes.subarray(4, bytes.length - 4)
  if (crc32(body) !== bytes.readUInt32BE(bytes.length - 4)) throw corrupt(name, 'wrong checksum')
  return decodePositions(body.subarray(vectorMagic.length), name)
}

function vectorBlob(positions: Uint32Array): Uint8Array {
  const body = Buffer.concat([vectorMagic, encodePositions(positions)])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(body.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(crc32(body), body.length + 4)
  return out
}

function corrupt(name: string, reason: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', `${name}: not a deletion vector (${reason})`, {
    details: { file: name, reason },
  })
}

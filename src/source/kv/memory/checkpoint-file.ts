import { crc32 } from 'node:zlib'
import { SluiceError } from '../../../core/errors.ts'
import type { KvFiles } from '../files.ts'
import { KeyTable } from './key-table.ts'
import { MergedTables } from './merged-tables.ts'
import type { Tables } from './family.ts'
import { copyRecord, headerBytes, payloadAt } from './records.ts'

/**
 * All families of a store in one file:
 *
 *   magic · blocks · list of families as JSON · tail
 *   block: length u32 · CRC-32 u32 · entries, as they lie in memory, in the order of their keys
 *   tail:  length of the list u32 · CRC-32 of the list u32 · magic
 *
 * The list says which blocks are whose. A file that was cut, or altered anywhere, does not open.
 */
export type FamilyContent = { readonly name: string; readonly tables: Tables }

type Listed = {
  readonly name: string
  readonly entries: number
  /** Of keys and values. */
  readonly bytes: number
  readonly blocks: number
}

/** The parts of the file, one after another; reads the tables as it goes. */
export function* checkpointParts(families: readonly FamilyContent[]): Generator<Uint8Array> {
  yield magic
  const list: Listed[] = []
  for (const { name, tables } of families) list.push(yield* familyBlocks(name, tables))
  const text = Buffer.from(JSON.stringify({ families: list }))
  yield text
  const tail = Buffer.alloc(tailBytes)
  tail.writeUInt32LE(text.length, 0)
  tail.writeUInt32LE(crc32(text), 4)
  tail.set(magic, 8)
  yield tail
}

function* familyBlocks(name: string, tables: Tables): Generator<Uint8Array, Listed> {
  const content = new MergedTables(tables)
  let block = new Uint8Array(blockBytes)
  let end = blockHeaderBytes
  let entries = 0
  let bytes = 0
  let blocks = 0
  const take = (): Uint8Array => {
    const view = Buffer.from(block.buffer, 0, end)
    view.writeUInt32LE(end - blockHeaderBytes, 0)
    view.writeUInt32LE(crc32(view.subarray(blockHeaderBytes)), 4)
    blocks += 1
    end = blockHeaderBytes
    return view
  }
  while (content.next()) {
    if (content.isDelete) continue
    const payload = payloadAt(content.bytes, content.offset)
    const needed = payload + headerBytes
    if (end + needed > block.length) {
      if (end > blockHeaderBytes) yield take()
      block = new Uint8Array(Math.max(blockBytes, blockHeaderBytes + needed))
    }
    copyRecord(block, end, content.bytes, content.offset)
    end += needed
    entries += 1
    bytes += payload
  }
  if (end > blockHeaderBytes) yield take()
  return { name, entries, bytes, blocks }
}

/** The families of a checkpoint, with the bytes of their keys and values. */
export async function listCheckpoint(files: KvFiles, path: string): Promise<readonly Listed[]> {
  return (await readList(files, path)).families
}

/** One table for each family. */
export async function readCheckpoint(
  files: KvFiles,
  path: string,
  seed: number,
): Promise<ReadonlyMap<string, KeyTable>> {
  const { families, end } = await readList(files, path)
  const tables = new Map<string, KeyTable>()
  let at = magic.length
  for (const { name, entries, blocks } of families) {
    const table = new KeyTable(seed, entries)
    for (let block = 0; block < blocks; block += 1) {
      at = await readBlock(files, { path, at, end }, table)
    }
    if (table.keys !== entries) throw corrupt(path, `family ${name} has ${table.keys} entries`)
    tables.set(name, table)
  }
  if (at !== end) throw corrupt(path, `there are bytes after its blocks, from ${at} on`)
  return tables
}

type Place = { readonly path: string; readonly at: number; readonly end: number }

async function readBlock(files: KvFiles, place: Place, table: KeyTable): Promise<number> {
  const { path, at, end } = place
  const header = Buffer.from(await files.read(path, at, Math.min(end, at + blockHeaderBytes)))
  const length = header.length < blockHeaderBytes ? Infinity : header.readUInt32LE(0)
  const start = at + blockHeaderBytes
  if (start + length > end) throw corrupt(path, `the block at byte ${at} is cut`)
  const entries = await files.read(path, start, start + length)
  if (entries.length < length || crc32(entries) !== header.readUInt32LE(4)) {
    throw corrupt(path, `the block at byte ${at} does not match its checksum`)
  }
  let position = 0
  while (position < length) position = table.copyFrom(entries, position)
  return start + length
}

async function readList(
  files: KvFiles,
  path: string,
): Promise<{ readonly families: readonly Listed[]; readonly end: number }> {
  const size = await files.size(path)
  if (size === undefined) throw corrupt(path, 'it is not there')
  const tail = Buffer.from(await files.read(path, Math.max(0, size - tailBytes), size))
  if (tail.length < tailBytes || !magic.equals(tail.subarray(8))) {
    throw corrupt(path, 'its end is not that of a checkpoint')
  }
  const end = size - tailBytes - tail.readUInt32LE(0)
  const start = await files.read(path, 0, magic.length)
  if (end < magic.length || !magic.equals(start)) throw corrupt(path, 'its beginning is cut')
  const text = Buffer.from(await files.read(path, end, size - tailBytes))
  if (crc32(text) !== tail.readUInt32LE(4)) {
    throw corrupt(path, 'its list of families does not match its checksum')
  }
  const list = JSON.parse(text.toString()) as { readonly families: readonly Listed[] }
  return { families: list.families, end }
}

function corrupt(path: string, why: string): SluiceError {
  return new SluiceError('DATA_CORRUPT', `${path}: ${why}`, {
    fix: 'begin with another checkpoint, or with none: the log has what it held',
    details: { path },
  })
}

const magic = Buffer.from('sluicekv1')
const tailBytes = 8 + magic.length
const blockHeaderBytes = 8
const blockBytes = 1 << 20

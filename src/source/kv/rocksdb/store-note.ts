import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../../../core/errno.ts'
import { SluiceError } from '../../../core/errors.ts'
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from '../../../core/json64.ts'
import { replaceDurably } from './durable-file.ts'

/** Our one file among RocksDB's, which leaves names it does not know alone. */
export const noteName = 'SLUICE'

/** What RocksDB cannot keep about a store. */
export type StoreNote = {
  readonly storeId: string
  /** Files of lower numbers than `below` were made by that store, and came with a checkpoint. */
  readonly origins: readonly FileOrigin[]
  /** Families that were dropped: the binding can empty one and not take it away. */
  readonly retired: readonly string[]
  /** The write-ahead log that the last open began, and the manifest by which to know that open. */
  readonly wal: WalNote
  /** Only in a checkpoint: all its files but this one. */
  readonly files?: readonly { readonly name: string; readonly bytes: number }[]
}

export type FileOrigin = { readonly storeId: string; readonly below: number }
export type WalNote = { readonly manifest: string; readonly log: number }

/** Two stores restored from one checkpoint both count on: a number alone names no file. */
export function fileId(note: StoreNote, number: number): string {
  const origin = note.origins.find(({ below }) => number < below)
  return `${origin?.storeId ?? note.storeId}/${String(number)}`
}

export async function readNote(folder: string): Promise<StoreNote | undefined> {
  const path = join(folder, noteName)
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
  const note = decode(parseJson(bytes, { name: path }))
  if (note === undefined) {
    throw new SluiceError('DATA_CORRUPT', `KV store ${folder}: ${noteName} cannot be read`, {
      details: { folder, file: noteName },
    })
  }
  return note
}

export async function writeNote(folder: string, note: StoreNote): Promise<void> {
  await replaceDurably(join(folder, noteName), encodeNote(note))
}

export function encodeNote(note: StoreNote): string {
  const { storeId, origins, retired, wal, files } = note
  return `${stringifyJson({ version: 1, storeId, origins, retired, wal, files })}\n`
}

function decode(value: JsonValue): StoreNote | undefined {
  if (!isJsonObject(value) || value['version'] !== 1) return undefined
  const storeId = value['storeId']
  const wal = decodeWal(value['wal'])
  const origins = listOf(value['origins'], decodeOrigin)
  const retired = listOf(value['retired'], (each) => (typeof each === 'string' ? each : undefined))
  if (typeof storeId !== 'string') return undefined
  if (wal === undefined || origins === undefined || retired === undefined) return undefined
  const note = { storeId, origins, retired, wal }
  if (value['files'] === undefined) return note
  const files = listOf(value['files'], decodeFile)
  return files === undefined ? undefined : { ...note, files }
}

function decodeWal(value: JsonValue | undefined): WalNote | undefined {
  if (!isJsonObject(value)) return undefined
  const { manifest, log } = value
  if (typeof manifest !== 'string' || typeof log !== 'number') return undefined
  return { manifest, log }
}

function decodeOrigin(value: JsonValue): FileOrigin | undefined {
  const storeId = field(value, 'storeId')
  const below = field(value, 'below')
  return typeof storeId === 'string' && typeof below === 'number' ? { storeId, below } : undefined
}

function decodeFile(value: JsonValue): { name: string; bytes: number } | undefined {
  const name = field(value, 'name')
  const bytes = field(value, 'bytes')
  // A checkpoint may come from elsewhere: a name must not lead out of its folder.
  const isPlain = typeof name === 'string' && /^[\w-][\w.-]*$/.test(name)
  return isPlain && typeof bytes === 'number' ? { name, bytes } : undefined
}

function field(value: JsonValue, name: keyof JsonObject): JsonValue | undefined {
  return isJsonObject(value) ? value[name] : undefined
}

function listOf<Item>(
  value: JsonValue | undefined,
  decodeItem: (item: JsonValue) => Item | undefined,
): readonly Item[] | undefined {
  if (!isJsonArray(value)) return undefined
  const items = value.map(decodeItem)
  return items.every((item) => item !== undefined) ? items : undefined
}

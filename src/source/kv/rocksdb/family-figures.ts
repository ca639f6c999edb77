import { check } from '../../../core/never.ts'
import type { Session } from './binding.ts'

/** Buffers that are written to, sealed, or flushed and kept alive. */
export function heldOf(session: Session): Promise<number> {
  return numberOf(session, 'rocksdb.size-all-mem-tables')
}

/** An empty buffer takes 2 KiB that no flush gives back. */
export async function flushableOf(session: Session): Promise<number> {
  const entries =
    (await numberOf(session, 'rocksdb.num-entries-active-mem-table')) +
    (await numberOf(session, 'rocksdb.num-entries-imm-mem-tables'))
  return entries === 0 ? 0 : numberOf(session, 'rocksdb.cur-size-all-mem-tables')
}

async function numberOf(session: Session, property: string): Promise<number> {
  const text = await session.getProperty(property)
  check(text !== undefined, `RocksDB has the property ${property}`)
  return Number(text)
}

/** One line for each file: ` 9:1270[1 .. 1][…`, its number and its bytes. */
export async function fileSizes(session: Session): Promise<readonly number[]> {
  const text = (await session.getProperty('rocksdb.sstables')) ?? ''
  return [...text.matchAll(/^ \d+:(\d+)\[/gm)].map(([, bytes]) => Number(bytes))
}

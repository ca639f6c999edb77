/**
 * A process that applies a history to a store in RocksDB until it is killed. It tells its parent
 * what is acknowledged.
 */
import { join } from 'node:path'
import { appliedIn, apply, families, histories } from './kv-history.ts'
import { openRocks, rocksStores } from './rocksdb.ts'

export type WriterTask = {
  readonly folder: string
  readonly history: keyof typeof histories
  /** The memory of the store; little makes it flush often. */
  readonly memoryBytes: number
  readonly writeBufferSize: number
  /** Waits to be killed after so many changes; by default it goes on. */
  readonly end?: number
  /** Families to flush after the change of an offset. */
  readonly flushes?: Readonly<Record<string, string>>
  /** Offsets after which a checkpoint is taken, into this folder, named by the offset. */
  readonly checkpoints?: { readonly folder: string; readonly every: number }
}

export type WriterNews = { readonly acknowledged: number; readonly isDone: boolean }

const task = JSON.parse(process.argv[2] ?? '') as WriterTask
const stores = rocksStores({
  memoryBytes: task.memoryBytes,
  familyOptions: { writeBufferSize: task.writeBufferSize },
})
const store = await openRocks(task.folder, families, { stores, progressFamily: 'meta' })
const history = histories[task.history]
const tell = (news: WriterNews): void => {
  process.send?.(news)
}
for (let offset = ((await appliedIn(store)) ?? -1) + 1; ; offset += 1) {
  if (task.end !== undefined && offset >= task.end) {
    tell({ acknowledged: offset - 1, isDone: true })
    await new Promise((resolve) => setTimeout(resolve, 1e9))
  }
  await apply(store, history, offset)
  tell({ acknowledged: offset, isDone: false })
  const flushed = task.flushes?.[String(offset)]
  if (flushed !== undefined) await store.flush([await store.columnFamily(flushed)])
  const { every, folder } = task.checkpoints ?? { every: 0, folder: '' }
  if (every > 0 && offset % every === every - 1)
    await store.checkpoint(join(folder, `at-${offset}`))
}

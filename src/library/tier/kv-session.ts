import { memoryEngine } from '../../source/kv/memory/memory-engine.ts'
import { rocksDbEngine } from '../../source/kv/rocksdb/rocksdb-engine.ts'
import { kvMemoryDefault, type KvSessionOptions } from '../tiering-session.ts'
import type { KvRequest } from './tier-types.ts'

/** Where the rows of primary-key tables are kept, as it was asked for. */
export function kvSession({ engine, stateFolder, memoryBytes }: KvRequest): KvSessionOptions {
  return {
    engine: engine === 'rocksdb' ? rocksDbEngine() : memoryEngine(),
    memoryBytes: memoryBytes ?? kvMemoryDefault,
    stateFolder,
  }
}

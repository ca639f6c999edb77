import type { KvEngine } from '../../../src/source/kv/engine.ts'

/** An engine and what the suite must know of it. The suite is the same for all. */
export type EngineUnderTest = {
  readonly name: 'memory' | 'rocksdb'
  readonly engine: KvEngine
}

import { describe } from 'node:test'
import { rocksDbEngine } from '../../../src/source/kv/rocksdb/rocksdb-engine.ts'
import { skipWithoutRocksDb } from '../../support/rocksdb.ts'
import { describeKvEngine } from './conformance.ts'

describe('the RocksDB engine', { skip: skipWithoutRocksDb() }, () => {
  describeKvEngine({ name: 'rocksdb', engine: rocksDbEngine() })
})

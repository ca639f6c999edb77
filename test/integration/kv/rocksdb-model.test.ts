import { test } from 'node:test'
import { rocksDbEngine } from '../../../src/source/kv/rocksdb/rocksdb-engine.ts'
import { skipWithoutRocksDb } from '../../support/rocksdb.ts'
import { holdsAgainstModel } from '../../property/kv/store-model.ts'

test('C-01 C-28 C-30 rocksdb: any history leaves what plain maps hold', {
  skip: skipWithoutRocksDb(),
}, async () => {
  await holdsAgainstModel(
    { name: 'rocksdb', engine: rocksDbEngine() },
    { runs: 5, options: { writeBufferSize: 65_536, maxWriteBufferNumber: 2 } },
  )
})

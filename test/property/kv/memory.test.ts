import { test } from 'node:test'
import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import { kvFilesInMemory } from '../../support/kv-files.ts'
import { holdsAgainstModel } from './store-model.ts'

const under = { name: 'memory' as const, engine: memoryEngine({ files: kvFilesInMemory() }) }

test('C-01 C-28 C-30 memory: any history leaves what plain maps hold, in small buffers and runs', async () => {
  await holdsAgainstModel(under, {
    runs: 250,
    options: { writeBufferSize: 1_024, maxWriteBufferNumber: 2, level0FileNumCompactionTrigger: 2 },
  })
})

test('memory: any history leaves what plain maps hold, with several sealed buffers', async () => {
  await holdsAgainstModel(under, {
    runs: 100,
    options: { writeBufferSize: 2_048, maxWriteBufferNumber: 5, level0FileNumCompactionTrigger: 4 },
  })
})

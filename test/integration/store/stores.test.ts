import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { localStore, locationOf } from '../../../src/catalog/store/local-store.ts'
import { memoryStore } from '../../../src/catalog/store/memory-store.ts'
import { systemClock, systemIds } from '../../../src/core/system.ts'
import { describeStore } from './conformance.ts'

describeStore('memory', () =>
  Promise.resolve({ store: memoryStore(systemClock), root: 's3://memory/lake' }),
)

describeStore('a local folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-store-'))
  return {
    store: localStore(systemIds),
    root: locationOf(folder),
    close: () => rm(folder, { recursive: true, force: true }),
  }
})

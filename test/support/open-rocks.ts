/** Opens a store in RocksDB and prints the error, or `opened`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isSluiceError } from '../../src/core/errors.ts'
import { openRocks } from './rocksdb.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-open-rocks-'))
try {
  const store = await openRocks(join(folder, 'store'), ['rows'])
  await store.close()
  console.log('opened')
} catch (error) {
  if (!isSluiceError(error)) throw error
  console.log(`${error.code} ${error.message}\nfix: ${error.fix ?? ''}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

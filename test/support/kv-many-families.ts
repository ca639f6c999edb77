/**
 * Puts one row into each of many families, flushes them, and closes the store; prints how that ended
 * as JSON: where it stopped, and the error.
 */
import { isSluiceError } from '../../src/core/errors.ts'
import { bytes, openRocks } from './rocksdb.ts'

export type ManyFamiliesEnd = {
  readonly step: 'open' | 'write' | 'flush' | 'done'
  readonly code?: string
  readonly message?: string
  readonly fix?: string
  readonly details?: Readonly<Record<string, unknown>>
  /** What came of a write after the error. */
  readonly next?: string
}

const [folder = '', count = '0', round = ''] = process.argv.slice(2)
const names = Array.from({ length: Number(count) }, (_, at) => `user-${at}`)
let step: ManyFamiliesEnd['step'] = 'open'
try {
  const store = await openRocks(folder, names)
  try {
    step = 'write'
    for (const family of store.families().slice(1))
      await store.put(family, bytes(round), bytes('v'))
    step = 'flush'
    await store.flush()
    step = 'done'
    print({ step })
  } catch (error) {
    const next = await Promise.resolve(store.put(store.default, bytes('next'), bytes('v'))).then(
      () => 'written',
      (later: unknown) => (isSluiceError(later) ? later.code : String(later)),
    )
    print({ step, ...described(error), next })
  } finally {
    await store.close()
  }
} catch (error) {
  print({ step, ...described(error) })
}

function print(end: ManyFamiliesEnd): void {
  console.log(JSON.stringify(end))
}

function described(error: unknown): Omit<ManyFamiliesEnd, 'step'> {
  if (!isSluiceError(error)) throw error
  const { code, message, fix = '', details } = error
  return { code, message, fix, details }
}

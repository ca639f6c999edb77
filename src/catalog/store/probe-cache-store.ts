import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { type Millis, millis } from '../../core/ids.ts'
import type { IdSource } from '../../core/ports.ts'
import type { ProbeCache, ProbedStore } from './probe-cache.ts'

/** Keeps what passed in one small file for each store. A cache that cannot be written is none. */
export function fileProbeCache(folder: string, ids: IdSource): ProbeCache {
  const pathFor = ({ endpoint, bucket }: ProbedStore): string => {
    const digest = createHash('sha256')
      .update(JSON.stringify([endpoint, bucket]))
      .digest('hex')
    return join(folder, `conditional-writes-${digest.slice(0, 32)}.txt`)
  }
  return {
    async passedAt(store): Promise<Millis | undefined> {
      const text = await readFile(pathFor(store), 'utf8').catch(() => '')
      const digits = /^passed at (\d{1,15})\n/.exec(text)?.[1]
      return digits === undefined ? undefined : millis(Number.parseInt(digits, 10))
    },

    async remember(store, at): Promise<void> {
      const path = pathFor(store)
      const temporary = `${path}.${ids.bits128().slice(0, 8)}.tmp`
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        await writeFile(temporary, `passed at ${at}\n${store.endpoint} ${store.bucket}\n`)
        await rename(temporary, path)
      } catch {
        // The next start probes again.
      }
    },
  }
}

/** The folder for caches by the XDG base directory rules: a relative path there counts as unset. */
export function cacheFolder(environment: Readonly<Record<string, string | undefined>>): string {
  const named = environment['XDG_CACHE_HOME']
  const base = named !== undefined && isAbsolute(named) ? named : join(homedir(), '.cache')
  return join(base, 'sluice')
}

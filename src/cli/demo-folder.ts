import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathOf } from '../catalog/store/local-store.ts'
import { SluiceError } from '../core/errors.ts'
import type { Location } from './location.ts'

/** Says that a folder was made by the demo, so that the next demo may remove it. */
const marker = join('_sluice', 'demo')

/**
 * Makes room for a demo: a folder that is new, or empty, or an earlier demo's, which is removed.
 * @returns whether an earlier demo was removed
 * @throws SluiceError LOCATION_REFUSED for a folder with anything else in it
 */
export async function prepareFolder(location: Location): Promise<boolean> {
  const { shown } = location
  const path = pathOf(location.url)
  const names = await namesIn(path, shown)
  let isAgain = false
  if (names.length > 0) {
    if (!(await exists(join(path, marker)))) {
      throw new SluiceError('LOCATION_REFUSED', `${shown}: there is something that is no demo's`, {
        fix: '--warehouse with a new folder',
      })
    }
    for (const name of ['demo', '_sluice'])
      await rm(join(path, name), { recursive: true, force: true })
    isAgain = true
  }
  try {
    await mkdir(join(path, '_sluice'), { recursive: true })
    await writeFile(
      join(path, marker),
      'Made by sluice demo, which removes it when it runs again.\n',
    )
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    throw new SluiceError('STORE_DENIED', `${shown}: cannot create files (${code})`, {
      cause,
      state: 'nothing was written',
    })
  }
  return isAgain
}

async function namesIn(path: string, shown: string): Promise<readonly string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw new SluiceError('LOCATION_REFUSED', `${shown}: not a folder that can be read`, {
      cause: error,
    })
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch {
    return false
  }
}

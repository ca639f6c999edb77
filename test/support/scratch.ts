import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A folder of its own for one test; removed when the test ends. */
export function scratchFolder(context: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-e2e-'))
  context.after(() => {
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

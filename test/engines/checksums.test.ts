import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { readFooter } from '../../src/core/columns/parquet-groups.ts'
import { readFacts } from '../../src/verify/data-file.ts'
import { temporaryFolder } from '../support/torture-lake.ts'
import { engineScript, skipWithout } from './engines.ts'

const questions = { bucket: undefined, offset: undefined, hash: undefined, partition: undefined }

describe('checksums of pages that pyarrow wrote', { skip: skipWithout() }, async () => {
  const folder = await temporaryFolder('checksums')
  const { python, script } = engineScript('fast', 'checksum_files.py')
  await promisify(execFile)(python, [script, folder])

  for (const name of ['v1.parquet', 'v2.parquet']) {
    test(`the audit reads ${name} and finds each chunk of it that is damaged`, async () => {
      const whole = new Uint8Array(await readFile(path.join(folder, name)))
      const { groups } = await readFooter(new Blob([whole]))
      assert.equal(groups.length, 2)
      assert.equal((await readFacts(new Blob([whole]), questions)).rows, 2000n)
      for (const { end, path } of groups.flatMap(({ chunks }) => chunks)) {
        const damaged = whole.slice()
        damaged[end - 1] = (damaged[end - 1] ?? 0) ^ 1
        await assert.rejects(
          readFacts(new Blob([damaged]), questions),
          (error: Error) =>
            error.message.includes(`the page of column "${path.join('.')}" at byte `) &&
            / has the checksum [\da-f]{8}, its bytes have [\da-f]{8}/.test(error.message),
        )
      }
    })
  }

  test('the audit reads pages without checksums', async () => {
    const whole = new Uint8Array(await readFile(path.join(folder, 'plain.parquet')))
    assert.equal((await readFacts(new Blob([whole]), questions)).rows, 2000n)
  })
})

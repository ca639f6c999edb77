import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { extname, join } from 'node:path'
import { describe, test } from 'node:test'

const child = join(import.meta.dirname, `../../support/open-rocks${extname(import.meta.filename)}`)

/** What opening a store in RocksDB answers in a process in which its package resolves as told. */
function openingWhere(resolve: string): string {
  const hooks = `data:text/javascript,${encodeURIComponent(
    `export async function resolve(name, context, next) {
      if (name !== 'rocksdb-native') return next(name, context)
      ${resolve}
    }`,
  )}`
  const register = `data:text/javascript,${encodeURIComponent(
    `import { register } from 'node:module'; register(${JSON.stringify(hooks)})`,
  )}`
  const run = spawnSync(
    process.execPath,
    [...process.execArgv.filter((each) => each !== '--test'), '--import', register, child],
    { encoding: 'utf8' },
  )
  assert.equal(run.status, 0, run.stderr)
  return run.stdout
}

const moduleOf = (text: string): string => `return {
  shortCircuit: true, format: 'module', url: 'data:text/javascript,' + encodeURIComponent(${JSON.stringify(text)}),
}`

describe('RocksDB that cannot be used', () => {
  test('names what to install where the package is absent', () => {
    const answer = openingWhere(
      `throw Object.assign(new Error('not found'), { code: 'ERR_MODULE_NOT_FOUND' })`,
    )
    assert.match(answer, /^DEPENDENCY_MISSING .*rocksdb-native, which is not installed/)
    assert.match(answer, /npm install rocksdb-native@3\.18\.1/)
  })

  test('names the system library that is missing', () => {
    const reason = 'libatomic.so.1: cannot open shared object file: No such file or directory'
    const answer = openingWhere(
      moduleOf(
        `throw new Error('Cannot load addon', { cause: new Error(${JSON.stringify(reason)}) })`,
      ),
    )
    assert.match(answer, /^DEPENDENCY_MISSING .*does not load here: libatomic\.so\.1: cannot open/)
    assert.match(answer, /apt-get install libatomic1/)
  })

  test('refuses a package of that name which is something else', () => {
    const answer = openingWhere(moduleOf('export default class {}'))
    assert.match(answer, /^DEPENDENCY_MISSING .*this one is another/)
    assert.match(answer, /npm install rocksdb-native@3\.18\.1/)
  })
})

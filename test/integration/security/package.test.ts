import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '../../../src/core/json64.ts'
import { repository } from '../../support/cli.ts'

function objectIn(name: string): JsonObject {
  const value = parseJson(readFileSync(join(repository, name)), { name })
  assert.ok(isJsonObject(value))
  return value
}

/** A text, and for anything else what shows that it is none. */
function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : `no text: ${typeof value}`
}

function member(object: JsonObject, key: string): JsonObject {
  const value = object[key]
  assert.ok(isJsonObject(value), key)
  return value
}

const manifest = objectIn('package.json')
const own = { ...member(manifest, 'dependencies'), ...member(manifest, 'optionalDependencies') }

test('S-17 every dependency has one exact version and its reason in the decisions', () => {
  const reasons = readFileSync(join(repository, 'docs/decisions/0005-dependencies.md'), 'utf8')
  for (const [name, version] of Object.entries({
    ...own,
    ...member(manifest, 'devDependencies'),
  })) {
    assert.match(textOf(version), /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, name)
    if (name in own) assert.ok(reasons.includes(`\`${name}\``), `no reason for ${name}`)
  }
})

test('S-17 what users install is locked, freely licensed, and runs no scripts', () => {
  const free = new Set(['Apache-2.0', 'MIT', 'MIT OR Apache-2.0', 'ISC', '0BSD', 'BSD-3-Clause'])
  const packages = member(objectIn('package-lock.json'), 'packages')
  let count = 0
  for (const [path, found] of Object.entries(packages)) {
    if (path === '' || !isJsonObject(found) || found['dev'] === true) continue
    count += 1
    assert.ok(free.has(textOf(found['license'])), `${path}: ${textOf(found['license'])}`)
    assert.notEqual(found['hasInstallScript'], true, path)
    assert.match(textOf(found['integrity']), /^sha512-/, path)
  }
  assert.ok(count >= Object.keys(own).length)
})

test('S-17 our own package runs nothing when it is installed; prepare only compiles', () => {
  const scripts = member(manifest, 'scripts')
  for (const name of ['preinstall', 'install', 'postinstall', 'prepublish', 'postprepare']) {
    assert.equal(scripts[name], undefined, name)
  }
  assert.equal(scripts['prepare'], 'npm run build')
  assert.match(textOf(scripts['build']), /^tsc -p [\w.]+$/)
})

test('S-18 the package holds what it lists and nothing else', () => {
  const packed = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: repository,
    encoding: 'utf8',
  })
  assert.equal(packed.status, 0, packed.stderr)
  const [report] = [parseJson(packed.stdout, { name: 'npm pack' })].flatMap((value) =>
    isJsonArray(value) ? value.filter(isJsonObject) : [],
  )
  const files = report?.['files']
  assert.ok(isJsonArray(files))
  const paths = files.filter(isJsonObject).map((file) => textOf(file['path']))
  const allowed =
    /^(?:package\.json|README\.md|CHANGELOG\.md|LICENSE|(?:dist\/src|examples|docs)\/[^\0]+)$/
  for (const path of paths) assert.match(path, allowed)
  for (const path of paths) assert.doesNotMatch(path, /(?:^|\/)(?:\.env|\.npmrc|.*\.pem|.*\.key)$/)
  assert.ok(paths.includes('dist/src/cli/main.js'), 'the command is in it')
  assert.ok(paths.includes('LICENSE'))
})

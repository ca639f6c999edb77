import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, readConfig } from '../../../src/cli/config.ts'
import { ManyProblems } from '../../../src/cli/problems.ts'
import { isSluiceError } from '../../../src/core/errors.ts'

function read(yaml: string, environment: Record<string, string> = {}): Config {
  return readConfig(yaml, '/work/sluice.yaml', environment)
}

function messages(yaml: string, environment: Record<string, string> = {}): readonly string[] {
  try {
    read(yaml, environment)
  } catch (error) {
    assert.ok(isSluiceError(error, 'CONFIG_INVALID'))
    return (error instanceof ManyProblems ? error.problems : [error]).map(({ message }) => message)
  }
  assert.fail('nothing was refused')
}

test('reads what this version knows, with the place of each value', () => {
  const config = read('version: 1\nwarehouse: ./lake\njob:\n  readers: 8\nlog: {format: json}\n')
  assert.deepEqual(config.options.get('warehouse'), {
    text: './lake',
    where: 'sluice.yaml:2:12: warehouse',
  })
  assert.equal(config.options.get('readers')?.text, '8')
  assert.equal(config.options.get('log-format')?.text, 'json')
  assert.equal(read('').options.size, 0)
})

test('refuses unknown keys by place, with the nearest key and what is allowed', () => {
  try {
    read('warehouse: ./lake\njob:\n  raeders: 3\n')
    assert.fail('nothing was refused')
  } catch (error) {
    assert.ok(isSluiceError(error, 'CONFIG_INVALID'))
    assert.equal(error.message, 'sluice.yaml:3:3: unknown key "raeders". Did you mean readers?')
    assert.equal(error.fix, 'allowed here: readers, memory, shutdown-timeout')
  }
})

test('refuses keys that are there twice, tags, aliases and what is not YAML', () => {
  assert.deepEqual(messages('warehouse: a\nwarehouse: b\n'), [
    'sluice.yaml:2:1: key "warehouse" is there twice',
  ])
  assert.match(
    messages('warehouse: !!js/function x\n')[0] ?? '',
    /^sluice\.yaml:1:\d+: tags are not taken$/,
  )
  assert.deepEqual(
    messages('warehouse: &a x\ncolor: *a\n')[0],
    'sluice.yaml:2:8: aliases are not taken',
  )
  assert.match(messages('warehouse: [a\n')[0] ?? '', /^sluice\.yaml:\d+:\d+: not YAML: /)
  assert.match(messages('- a\n')[0] ?? '', /the file must be a mapping/)
  assert.match(messages('tables: {a..b: {}}\n')[0] ?? '', /^sluice\.yaml:1:10: table name "a\.\.b"/)
  assert.deepEqual(messages('tables: {b: {}, default.b: {}}\n'), [
    'sluice.yaml:1:17: table default.b is there twice',
  ])
})

test('replaces ${NAME} in values only, with a default, and keeps $${', () => {
  const environment = { PLACE: '/data', EMPTY: '' }
  const yaml = (value: string): string | undefined =>
    read(`warehouse: ${value}\n`, environment).options.get('warehouse')?.text
  assert.equal(yaml('${PLACE}/lake'), '/data/lake')
  assert.equal(yaml('${NOPE:-/other}/lake'), '/other/lake')
  assert.equal(yaml('${EMPTY:-x}'), 'x')
  assert.equal(yaml("'$${PLACE}'"), '${PLACE}')
  assert.deepEqual(messages('warehouse: ${NOPE}\n'), ['sluice.yaml:1:12: "${NOPE}" is not set'])
  assert.match(messages('${PLACE}: x\n', environment)[0] ?? '', /unknown key/)
})

test('says what the keys of later versions come with', () => {
  assert.deepEqual(messages('serve: {}\ntables:\n  a.b:\n    partitioned-by: [id]\n'), [
    'sluice.yaml:1:1: serve comes with sluice serve, not in this version',
    'sluice.yaml:4:5: partitioned-by comes with partitioned tables, not in this version',
  ])
  assert.deepEqual(messages('version: 2\n'), ['sluice.yaml:1:1: version "2" is not known; it is 1'])
})

test('keeps dotted keys, quoted table names and paths beside the file', () => {
  const config = read('tables:\n  \'demo."A.b"\':\n    schema: a.schema.json\n    bucket.num: 2\n')
  const table = config.tables.get('demo."A.b"')
  assert.equal(table?.options.get('schema')?.text, '/work/a.schema.json')
  assert.equal(table.options.get('buckets')?.text, '2')
})

test('keeps integers as they are written, without a number in between', () => {
  const config = read('defaults: {x: 9223372036854775807, y: 1.50, z: yes}\n')
  assert.deepEqual(
    [...config.defaults.values()].map(({ text }) => text),
    ['9223372036854775807', '1.50', 'yes'],
  )
})

test('takes the columns of a primary key as a list, or as one text', () => {
  const keyOf = (yaml: string): string | undefined =>
    read(`tables:\n  a.b:\n    primary-key: ${yaml}\n`)
      .tables.get('a.b')
      ?.options.get('primary-key')?.text
  assert.equal(keyOf('[id]'), 'id')
  assert.equal(keyOf('["a,b", c]'), '"a,b",c')
  assert.equal(keyOf('id'), 'id')
  assert.deepEqual(messages('tables:\n  a.b:\n    primary-key: []\n'), [
    'sluice.yaml:3:5: "primary-key" is an empty list',
  ])
})

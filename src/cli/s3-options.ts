import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { S3Credentials, S3Options } from '../catalog/store/s3-client.ts'
import { checkEndpoint } from '../catalog/store/s3-endpoint.ts'
import { SluiceError } from '../core/errors.ts'
import { Secret } from '../core/secret.ts'
import { quoteValue } from '../core/text.ts'
import type { Config, Environment } from './config.ts'
import type { Problems } from './problems.ts'
import { choice, type Given, type Settings } from './settings.ts'

export type S3Surroundings = {
  readonly environment: Environment
  readonly folder: string
  readonly config: Config | undefined
}

/**
 * How S3 is reached. Credentials come from the environment, from files that it names, or from the
 * configuration by reference; what none of them has is left to the profiles of AWS tools.
 */
export function readS3Options(
  settings: Settings,
  around: S3Surroundings,
  problems: Problems,
): S3Options {
  const read = <T>(option: string, reader: (value: Given) => T): T | undefined => {
    const value = settings.get(option)
    return value === undefined ? undefined : problems.attempt(() => reader(value))
  }
  const endpoint = read('s3-endpoint', readEndpoint)
  const region = read('s3-region', readRegion)
  const pathStyleAccess = read('s3-path-style', readYesNo)
  const credentials = problems.attempt(() => credentialsOf(around))
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(pathStyleAccess === undefined ? {} : { pathStyleAccess }),
    ...(credentials === undefined ? {} : { credentials }),
  }
}

/** What a person should know of the files that hold credentials. */
export function credentialNotes({ environment, folder }: S3Surroundings): readonly string[] {
  if (process.platform === 'win32') return []
  return variables.flatMap((name) => {
    const file = environment[`${name}_FILE`]
    if (file === undefined || file === '') return []
    const mode = statSync(resolve(folder, file), { throwIfNoEntry: false })?.mode ?? 0
    if ((mode & 0o077) === 0) return []
    const shown = (mode & 0o777).toString(8)
    return [`${name}_FILE: others may read ${file} (mode ${shown}); chmod 600 it`]
  })
}

const variables = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'] as const
type Variable = (typeof variables)[number]

/** @returns undefined when the S3 client finds all there is by itself. */
function credentialsOf(around: S3Surroundings): S3Options['credentials'] {
  const { environment, config } = around
  const isOwn = variables.some((name) => {
    if (isSet(environment[name])) return false
    return isSet(environment[`${name}_FILE`]) || config?.secrets.has(name) === true
  })
  if (!isOwn) return undefined
  // Files are read now, so that a wrong one is told at once, and again when a token has expired.
  const read = (): S3Credentials => {
    const [id, secret, token] = variables.map((name) => valueOf(name, around))
    if (id === undefined || secret === undefined) {
      const missing = id === undefined ? variables[0] : variables[1]
      throw new SluiceError('CONFIG_INVALID', `${missing} is not set, its companion is`, {
        fix: `set ${missing}, or ${missing}_FILE`,
      })
    }
    return {
      accessKeyId: id.reveal(),
      secretAccessKey: secret.reveal(),
      ...(token === undefined ? {} : { sessionToken: token.reveal() }),
    }
  }
  read()
  return async () => Promise.resolve(read())
}

function valueOf(
  name: Variable,
  { environment, folder, config }: S3Surroundings,
): Secret | undefined {
  const value = environment[name]
  if (isSet(value)) return new Secret(value)
  const file = environment[`${name}_FILE`]
  return isSet(file) ? secretIn(`${name}_FILE`, file, folder) : config?.secrets.get(name)
}

function secretIn(variable: string, file: string, folder: string): Secret {
  let text
  try {
    const path = resolve(folder, file)
    if (statSync(path).size > secretBytesMax) {
      throw new SluiceError('CONFIG_INVALID', `${variable}: ${file} is too large for a secret`)
    }
    text = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    if (cause instanceof SluiceError) throw cause
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'not readable'
    const why = reason === 'ENOENT' ? 'no such file' : `cannot be read (${reason})`
    throw new SluiceError('CONFIG_INVALID', `${variable}: ${file}: ${why}`)
  }
  if (text !== '' && !/[\s\p{Cc}]/u.test(text)) return new Secret(text)
  throw new SluiceError('CONFIG_INVALID', `${variable}: ${file} holds no single word`)
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== ''
}

function readEndpoint({ text, subject }: Given): string {
  checkEndpoint(text, subject)
  return text.replace(/\/+$/, '')
}

function readRegion({ text, subject }: Given): string {
  if (/^[a-z0-9][a-z0-9-]{0,62}$/i.test(text)) return text
  throw new SluiceError('CONFIG_INVALID', `${subject} ${quoteValue(text)} is no region`, {
    fix: 'for example eu-north-1',
  })
}

/** A configuration says `true`, the command line `yes`. */
function readYesNo(given: Given): boolean {
  if (given.origin === 'config' && /^(?:true|false)$/.test(given.text)) return given.text === 'true'
  return choice(given, ['yes', 'no']) === 'yes'
}

const secretBytesMax = 64 * 1024

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type CliEnd, type CliOptions, sluice } from './cli.ts'
import type { S3Server } from './s3-server.ts'

/** How commands reach a server: keys in the environment, caches and temporary files in the folder. */
export function s3Environment(
  server: Pick<S3Server, 'endpoint' | 'credentials'>,
  folder: string,
): Record<string, string> {
  mkdirSync(join(folder, 'tmp'), { recursive: true })
  return {
    AWS_ACCESS_KEY_ID: server.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: server.credentials.secretAccessKey,
    SLUICE_S3_ENDPOINT: server.endpoint,
    XDG_CACHE_HOME: join(folder, 'cache'),
    TMPDIR: join(folder, 'tmp'),
  }
}

/** Runs commands in one folder against one server. */
export function s3Cli(
  server: Pick<S3Server, 'endpoint' | 'credentials'>,
  cwd: string,
): (args: readonly string[], more?: Pick<CliOptions, 'env' | 'input'>) => Promise<CliEnd> {
  const env = s3Environment(server, cwd)
  return (args, more = {}) => sluice(args, { cwd, ...more, env: { ...env, ...more.env } })
}

import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const packageFile = createRequire(import.meta.url).resolve('s3rver/package.json')

/**
 * Starts s3rver, which ignores conditional headers, with a bucket `unsafe`; both keys are `S3RVER`.
 * @returns its endpoint and how to end it
 */
export async function startS3rver(): Promise<{ endpoint: string; stop: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-s3rver-'))
  const child = spawn(
    process.execPath,
    [
      join(dirname(packageFile), 'bin/s3rver.js'),
      ...['--address', '127.0.0.1', '--port', '0', '--directory', folder],
      ...['--no-vhost-buckets', '--configure-bucket', 'unsafe', '--silent'],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = new Promise((resolve) => child.once('exit', resolve))
  process.once('exit', () => child.kill('SIGKILL'))
  const address = await new Promise<string | undefined>((resolve) => {
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      const found = /127\.0\.0\.1:\d+/.exec(output)?.[0]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', () => {
      resolve(undefined)
    })
  })
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  if (address !== undefined) return { endpoint: `http://${address}`, stop }
  await stop()
  throw new Error('s3rver does not start')
}

import assert from 'node:assert/strict'
import { promises as files } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { afterEach, describe, test, type TestContext } from 'node:test'
import { numberedRegister } from '../../../src/catalog/register/numbered.ts'
import { localStore, locationOf } from '../../../src/catalog/store/local-store.ts'
import { isSluiceError, type SluiceError } from '../../../src/core/errors.ts'
import { systemIds } from '../../../src/core/system.ts'
import { scratchFolder } from '../../support/scratch.ts'
import { runCli } from '../../unit/cli/lake-fixture.ts'

/*
 * What a disk may do to the store: system calls that fail, put in under `node:fs/promises` itself, so
 * that the store runs as it is.
 */

type Handle = Awaited<ReturnType<typeof files.open>>
type Broken = {
  /** Fails calls on files that are opened for writing: `write`, `sync`, `close`. */
  readonly handle?: (call: 'write' | 'sync', path: string) => void
  readonly open?: (path: string, flags: unknown) => void
  /** In the place of a link, which `make` makes. */
  readonly link?: (make: () => Promise<void>) => Promise<void>
  /** Of a folder. */
  readonly syncFolder?: (path: string) => void
}

const sound = { open: files.open, link: files.link }

function breakDisk(broken: Broken): void {
  const open = async (path: string, flags: unknown): Promise<Handle> => {
    broken.open?.(path, flags)
    const handle = await sound.open(path, flags as string)
    const isFolder = (await handle.stat()).isDirectory()
    const before = (call: 'write' | 'sync'): void => {
      if (isFolder) broken.syncFolder?.(path)
      else broken.handle?.(call, path)
    }
    return new Proxy(handle, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...given: unknown[]): unknown => {
          if (name === 'write' || name === 'sync') before(name)
          return Reflect.apply(value, target, given)
        }
      },
    })
  }
  const link = async (from: string, to: string): Promise<void> => {
    const make = (): Promise<void> => sound.link(from, to)
    await (broken.link ?? ((plainly) => plainly()))(make)
  }
  Object.assign(files, { open, link })
  syncBuiltinESMExports()
}

function mendDisk(): void {
  Object.assign(files, sound)
  syncBuiltinESMExports()
}

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: put in by a test`), { code, errno: -1 })
}

function fails(code: string): () => never {
  return () => {
    throw systemError(code)
  }
}

async function refusal(work: Promise<unknown>): Promise<SluiceError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(isSluiceError(error), `a SluiceError, not ${String(error)}`)
  return error
}

describe('a local store whose disk', () => {
  afterEach(mendDisk)
  const store = localStore(systemIds)
  const body = Buffer.from('whole')
  const place = (context: TestContext): { folder: string; at: (name: string) => string } => {
    const folder = scratchFolder(context)
    return { folder, at: (name) => locationOf(join(folder, name)) }
  }

  /** Writes a data file. */
  const write = async (location: string): Promise<number> => {
    const writer = await store.open(location)
    try {
      await writer.write(body)
      return await writer.finish()
    } catch (error) {
      await writer.abandon()
      throw error
    }
  }

  for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG']) {
    test(`F-23 F-24 is full (${code}) leaves nothing, and goes on when it has room`, async (t) => {
      const { folder, at } = place(t)
      breakDisk({ handle: fails(code) })
      for (const work of [() => write(at('data')), () => store.createIfAbsent(at('v1'), body)]) {
        const error = await refusal(work())
        assert.deepEqual([error.code, error.effect], ['DISK_FULL', 'none'])
        assert.deepEqual(await readdir(folder), [])
      }
      mendDisk()
      assert.equal(await write(at('data')), 5)
      assert.deepEqual(await store.createIfAbsent(at('v1'), body), { kind: 'applied' })
      assert.deepEqual((await readdir(folder)).sort(), ['data', 'v1'])
    })
  }

  test('F-25 cannot sync a file: that file is given up, and the next try is another one', async (t) => {
    const { folder, at } = place(t)
    const synced: string[] = []
    breakDisk({
      handle: (call, path) => {
        if (call !== 'sync') return
        synced.push(path)
        throw systemError('EIO')
      },
    })
    for (const work of [() => write(at('data')), () => store.createIfAbsent(at('v1'), body)]) {
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const error = await refusal(work())
        assert.deepEqual([error.code, error.effect], ['STORE_UNAVAILABLE', 'none'])
        assert.deepEqual(await readdir(folder), [])
      }
    }
    // A second sync of the same file would say that all is well.
    assert.equal(synced.length, 4)
    assert.equal(new Set(synced).size, 4)
  })

  test('F-27 cannot make a name last: a commit is in doubt, and not reported', async (t) => {
    const { folder, at } = place(t)
    breakDisk({ syncFolder: fails('EIO') })
    assert.equal((await store.createIfAbsent(at('v1'), body)).kind, 'unknown')
    assert.equal((await refusal(write(at('data')))).code, 'STORE_UNAVAILABLE')
    assert.deepEqual((await readdir(folder)).sort(), ['data', 'v1'])
  })

  test('F-28 has a file of that name keeps it', async (t) => {
    const { folder, at } = place(t)
    await writeFile(join(folder, 'v1'), 'theirs')
    const outcome = await store.createIfAbsent(at('v1'), body)
    assert.deepEqual(outcome, { kind: 'rejected', reason: 'exists' })
    await writeFile(join(folder, 'data'), 'theirs')
    assert.equal((await refusal(write(at('data')))).code, 'STORE_UNAVAILABLE')
    assert.equal(await readFile(join(folder, 'v1'), 'utf8'), 'theirs')
    assert.equal(await readFile(join(folder, 'data'), 'utf8'), 'theirs')
    assert.deepEqual((await readdir(folder)).sort(), ['data', 'v1'])
  })

  test('F-29 is read at any time shows whole files: nothing is opened for writing by its final name', async (t) => {
    const { folder } = place(t)
    const opened: string[] = []
    breakDisk({
      open: (path, flags) => {
        if (path.startsWith(join(folder, 'lake')) && flags !== 'r' && flags !== 0) {
          opened.push(basename(path))
        }
      },
    })
    const input = join(folder, 'a.ndjson')
    await writeFile(input, '{"id":1}\n{"id":2}\n')
    const lake = join(folder, 'lake')
    const run = await runCli(['tier', input, '--warehouse', lake, '--table', 'demo.t'], { folder })
    assert.equal(run.exit, 0, run.err)
    assert.ok(opened.length > 4, opened.join())
    for (const name of opened) assert.match(name, /^\.sluice-[0-9a-f]+\.tmp$/)
  })

  test('F-31 gives no rights, is read only or out of files says so, and that nothing was written', async (t) => {
    const { folder, at } = place(t)
    for (const [errno, code] of [
      ['EACCES', 'STORE_DENIED'],
      ['EROFS', 'STORE_DENIED'],
      ['EMFILE', 'LIMIT_EXCEEDED'],
      ['ENFILE', 'LIMIT_EXCEEDED'],
    ] as const) {
      breakDisk({ open: fails(errno) })
      for (const work of [
        () => write(at('data')),
        () => store.createIfAbsent(at('v1'), body),
        () => store.read(at('v1')),
      ]) {
        const error = await refusal(work())
        assert.deepEqual([error.code, error.effect], [code, 'none'], errno)
      }
      mendDisk()
      assert.deepEqual(await readdir(folder), [])
    }
  })

  for (const code of ['EPERM', 'ENOTSUP', 'EOPNOTSUPP']) {
    test(`has no links (${code}) is refused`, async (t) => {
      const { folder, at } = place(t)
      breakDisk({ link: () => Promise.reject(systemError(code)) })
      const error = await refusal(store.createIfAbsent(at('v1'), body))
      assert.deepEqual([error.code, error.effect], ['STORE_UNSUPPORTED', 'none'])
      assert.deepEqual(await readdir(folder), [])
    })
  }

  for (const code of ['EIO', 'ESTALE', 'ETIMEDOUT']) {
    test(`gives no clear answer to a link (${code}) is read to settle a version`, async (t) => {
      const { folder } = place(t)
      const table = locationOf(join(folder, 't'))
      const ours = numberedRegister(store, table)
      assert.equal((await ours.create(1, Buffer.from('{"v":1}'))).kind, 'applied')
      const unmade = (): Promise<void> => Promise.reject(systemError(code))
      const unsaid = async (make: () => Promise<void>): Promise<void> => {
        await make()
        throw systemError(code)
      }
      // Nobody has the number: it may still come.
      breakDisk({ link: unmade })
      assert.equal((await ours.create(2, Buffer.from('{"v":2}'))).kind, 'unknown')
      breakDisk({ link: unsaid })
      assert.equal((await ours.create(2, Buffer.from('{"v":2}'))).kind, 'applied')
      mendDisk()
      const theirs = numberedRegister(store, table)
      assert.equal((await theirs.create(3, Buffer.from('{"theirs":3}'))).kind, 'applied')
      breakDisk({ link: unmade })
      assert.equal((await ours.create(3, Buffer.from('{"v":3}'))).kind, 'rejected')
    })
  }
})

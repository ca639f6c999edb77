import { rmSync } from 'node:fs'
import { mkdtemp, open, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ScannedFile } from '../catalog/iceberg/scan.ts'
import { locationOf } from '../catalog/store/local-store.ts'
import type { ObjectStore } from '../catalog/store/object-store.ts'
import { SluiceError } from '../core/errors.ts'
import { counted, formatBytes } from '../core/text.ts'
import type { NamedScan } from './duckdb-views.ts'

/** Copies of data files on this machine. Disposing of them removes them. */
export interface StagedFiles extends AsyncDisposable {
  /** The tables, with the copies for their files. */
  readonly scans: readonly NamedScan[]
}

export type StageOptions = {
  readonly signal: AbortSignal
  readonly note: (message: string) => void
  readonly bytesMax?: number
}

/**
 * Copies the data files of tables into a folder of their own below the system's temporary one:
 * DuckDB as npm has it reads local files only. Nobody else may read them, and they go with the
 * command.
 * @throws SluiceError LIMIT_EXCEEDED before anything is copied, DATA_CORRUPT, DISK_FULL, STOPPED
 */
export async function stageFiles(
  store: ObjectStore,
  scans: readonly NamedScan[],
  options: StageOptions,
): Promise<StagedFiles> {
  const files = scans.flatMap(({ scan }) => scan.files)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const base = tmpdir()
  await requireSpace(base, bytes, options.bytesMax ?? stagedBytesMax)
  const folder = await mkdtemp(join(base, 'sluice-query-'))
  const removeNow = (): void => {
    rmSync(folder, { recursive: true, force: true })
  }
  // A second Ctrl-C ends the process without coming back here.
  process.once('exit', removeNow)
  const remove = async (): Promise<void> => {
    await rm(folder, { recursive: true, force: true })
    process.off('exit', removeNow)
  }
  try {
    if (files.length > 0) {
      options.note(
        `${counted(files.length, 'file')}, ${formatBytes(bytes)}, copied to ${base} first`,
      )
    }
    const copies = new Map<ScannedFile, string>()
    const waiting = files.values()
    const copyNext = async (): Promise<void> => {
      for (const file of waiting) {
        const path = join(folder, `${copies.size}.parquet`)
        copies.set(file, path)
        await copy(store, file, path, options.signal)
      }
    }
    await Promise.all(Array.from({ length: parallelCopies }, copyNext))
    const staged = scans.map(({ name, scan }) => ({
      name,
      scan: { ...scan, files: scan.files.map((file) => inPlace(file, copies.get(file))) },
    }))
    return { scans: staged, [Symbol.asyncDispose]: remove }
  } catch (error) {
    await remove()
    throw error
  }
}

function inPlace(file: ScannedFile, path: string | undefined): ScannedFile {
  return path === undefined ? file : { ...file, resolved: locationOf(path) }
}

async function copy(
  store: ObjectStore,
  file: ScannedFile,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const handle = await open(path, 'wx', 0o600)
  try {
    for (let at = 0; at < file.bytes; ) {
      if (signal.aborted) throw new SluiceError('STOPPED', 'the query was interrupted')
      const piece = await store.readRange(file.resolved, at, Math.min(at + pieceBytes, file.bytes))
      if (piece === undefined || piece.length === 0) throw cutFile(file, piece && at)
      await handle.appendFile(piece)
      at += piece.length
    }
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause) || cause.code !== 'ENOSPC') throw cause
    throw new SluiceError('DISK_FULL', `${path}: disk full while copying ${file.resolved}`, {
      cause,
      fix: moreSpace,
    })
  } finally {
    await handle.close()
  }
}

function cutFile(file: ScannedFile, length: number | undefined): SluiceError {
  const { resolved: location, bytes } = file
  const what = length === undefined ? 'is not there' : `has ${length} of its ${bytes} bytes`
  return new SluiceError('DATA_CORRUPT', `${location}: a file that the metadata names ${what}`, {
    details: { file: location },
    fix: 'restore the file, or query an older state with --as-of',
  })
}

async function requireSpace(folder: string, bytes: number, bytesMax: number): Promise<void> {
  if (bytes > bytesMax) {
    throw new SluiceError(
      'LIMIT_EXCEEDED',
      `the tables of this query have ${formatBytes(bytes)}; up to ${formatBytes(bytesMax)} are copied here`,
      { fix: 'read them with an engine that reads S3 by itself' },
    )
  }
  const { bavail, bsize } = await statfs(folder)
  if (bytes <= bavail * bsize) return
  throw new SluiceError(
    'DISK_FULL',
    `${folder}: ${formatBytes(bytes)} are to be copied here, ${formatBytes(bavail * bsize)} are free`,
    { fix: moreSpace },
  )
}

const parallelCopies = 4
const pieceBytes = 8 << 20
const stagedBytesMax = 4 * 1024 ** 3
const moreSpace = 'free space, or name a larger folder by TMPDIR'

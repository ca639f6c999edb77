import { constants, type FileHandle, open, stat } from 'node:fs/promises'
import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { type Compression, compressionOf, decompressed } from './decompress.ts'
import { fileProblem } from './file-problem.ts'
import { type FollowOptions, followFile } from './follow.ts'

const readBytes = 1024 * 1024

export type InputLocation =
  | { readonly kind: 'file'; readonly path: string }
  /** stdin, a pipe, a request: bytes that come once. */
  | { readonly kind: 'stream'; readonly bytes: AsyncIterable<Uint8Array> }

/** How a reader of text learns that nothing more is there at the moment; only under `follow`. */
export const idle = new Uint8Array(0)

export type OpenBytesOptions = {
  /** As the user wrote it; messages begin with it. */
  readonly name: string
  readonly location: InputLocation
  /** Goes on after the end of the file, until the signal. */
  readonly follow?: FollowOptions
  /** Ends waiting for the writer of a named pipe; it then has no bytes. */
  readonly signal?: AbortSignal
}

/**
 * The bytes of an input from its start, decompressed, to be read once; `head` looks ahead. Holds
 * what it looked ahead at and one chunk, never the file.
 */
export class InputBytes {
  readonly name: string
  readonly location: InputLocation
  readonly compression: Compression
  /** Bytes of the file as stored, when it was opened. */
  readonly bytesTotal: number | undefined
  readonly #stored: StoredBytes
  readonly #chunks: AsyncIterator<Uint8Array>
  #ahead: Buffer[] = []
  /** Looking ahead found that nothing more is there now. */
  #idleAhead = false
  #ended = false
  #failure: SluiceError | undefined

  private constructor(
    options: OpenBytesOptions,
    stored: StoredBytes,
    compression: Compression,
    chunks: AsyncIterator<Uint8Array>,
  ) {
    this.name = options.name
    this.location = options.location
    this.compression = compression
    this.bytesTotal = stored.total
    this.#stored = stored
    this.#chunks = chunks
  }

  /** @throws SluiceError INPUT_UNREADABLE, with the nearest name when the file does not exist. */
  static async open(options: OpenBytesOptions): Promise<InputBytes> {
    const stored = await StoredBytes.open(options)
    try {
      const raw = stored.chunks()
      const head: Uint8Array[] = []
      let size = 0
      while (size < 4) {
        const next = await raw.next()
        if (next.done === true) break
        head.push(next.value)
        size += next.value.length
        if (next.value === idle) break
      }
      const compression = compressionOf(Buffer.concat(head))
      if (options.follow !== undefined && compression !== 'none') {
        const message = `${options.name}: a ${compression} file cannot be followed`
        throw new SluiceError('CONFIG_INVALID', message, { fix: 'leave --follow out' })
      }
      const whole = prepend(head, raw)
      const { name } = options
      const again = stored.total === undefined ? undefined : () => stored.again()
      const chunks = compression === 'none' ? whole : decompressed(whole, compression, name, again)
      return new InputBytes(options, stored, compression, chunks)
    } catch (error) {
      await stored.close()
      throw error
    }
  }

  /** Bytes read so far, as stored. */
  get bytesRead(): number {
    return this.#stored.bytesRead
  }

  /**
   * Why the bytes end before their end, once that was met: a compressed stream that is damaged, a
   * file that cannot be read on. What was there before is handed out first.
   */
  get failure(): SluiceError | undefined {
    return this.#failure
  }

  /**
   * The next bytes, without taking them: at least `size`, or all there are.
   * @throws SluiceError `failure` when there are none before it
   */
  async head(size: number): Promise<Buffer> {
    let have = this.#ahead.reduce((sum, chunk) => sum + chunk.length, 0)
    while (have < size && !this.#ended && !this.#idleAhead) {
      const chunk = await this.#nextBefore(have > 0)
      this.#idleAhead = chunk === idle
      if (chunk === undefined || chunk === idle) break
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
      this.#ahead.push(bytes)
      have += bytes.length
    }
    const [first] = this.#ahead
    const head =
      this.#ahead.length === 1 && first !== undefined ? first : Buffer.concat(this.#ahead)
    this.#ahead = head.length === 0 ? [] : [head]
    return head
  }

  /** Takes the next bytes: `idle` when there are none now, nothing when there will be none. */
  async read(): Promise<Uint8Array | undefined> {
    const ahead = this.#ahead.shift()
    if (ahead !== undefined) return ahead
    if (!this.#idleAhead) return await this.#next()
    this.#idleAhead = false
    return idle
  }

  async close(): Promise<void> {
    this.#ended = true
    await this.#stored.close()
    // Not awaited: a read of a pipe that is under way ends only when its writer does something.
    void this.#chunks.return?.().catch(() => undefined)
  }

  async #next(): Promise<Uint8Array | undefined> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#ended) return undefined
    try {
      const next = await this.#chunks.next()
      if (next.done !== true) return next.value
    } catch (error) {
      if (isSluiceError(error)) this.#failure = error
      throw error
    }
    this.#ended = true
    return undefined
  }

  /** A failure ends what is ahead, if something is. */
  async #nextBefore(hasSome: boolean): Promise<Uint8Array | undefined> {
    try {
      return await this.#next()
    } catch (error) {
      if (hasSome && this.#failure !== undefined) return undefined
      throw error
    }
  }
}

/** Bytes as they are stored, with a count of what was read. */
class StoredBytes {
  bytesRead = 0
  readonly total: number | undefined
  readonly #options: OpenBytesOptions
  readonly #file: FileHandle | undefined
  #closed = false

  private constructor(options: OpenBytesOptions, file?: FileHandle, total?: number) {
    this.#options = options
    this.#file = file
    this.total = total
  }

  static async open(options: OpenBytesOptions): Promise<StoredBytes> {
    const { location, name } = options
    if (location.kind === 'stream') return new StoredBytes(options)
    let file: FileHandle | undefined
    try {
      file = await openPipe(location.path, options.signal)
      const status = await file.stat()
      if (status.isDirectory()) {
        throw new SluiceError('INPUT_UNREADABLE', `${name}: is a folder`, {
          fix: `name files, for example '${name.replace(/\/+$/, '')}/*.ndjson'`,
        })
      }
      return new StoredBytes(options, file, status.isFile() ? status.size : undefined)
    } catch (error) {
      await file?.close()
      throw await fileProblem(error, location.path, name)
    }
  }

  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    const { location, follow, name } = this.#options
    if (location.kind === 'stream') {
      for await (const chunk of readable(location.bytes, name)) {
        this.bytesRead += chunk.length
        if (chunk.length > 0) yield chunk
        if (follow !== undefined) yield idle
      }
      return
    }
    const file = this.#file
    while (file !== undefined && !this.#closed) {
      const buffer = Buffer.allocUnsafeSlow(readBytes)
      // A pipe has no positions, so the file's own is used for it.
      const position = this.total === undefined ? null : this.bytesRead
      const { bytesRead } = await this.#read(file, buffer, position)
      if (bytesRead > 0) {
        this.bytesRead += bytesRead
        yield buffer.subarray(0, bytesRead)
      } else {
        if (follow === undefined) break
        yield idle
        const at = { file, path: location.path, name, position: this.bytesRead }
        if (!(await followFile(at, follow))) break
      }
    }
    await this.close()
  }

  /** What was read so far, once more; only a file can. */
  async *again(): AsyncGenerator<Uint8Array, void, undefined> {
    const file = this.#file
    for (let at = 0; file !== undefined && !this.#closed && at < this.bytesRead; ) {
      const buffer = Buffer.allocUnsafeSlow(Math.min(readBytes, this.bytesRead - at))
      const { bytesRead } = await this.#read(file, buffer, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#file?.close()
  }

  async #read(
    file: FileHandle,
    buffer: Buffer,
    position: number | null,
  ): Promise<{ bytesRead: number }> {
    try {
      return await file.read(buffer, 0, buffer.length, position)
    } catch (error) {
      throw await fileProblem(error, this.#options.name, this.#options.name)
    }
  }
}

/** @throws SluiceError INPUT_UNREADABLE for whatever the stream fails with */
async function* readable(
  bytes: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* bytes
  } catch (error) {
    throw await fileProblem(error, name, name)
  }
}

/**
 * Opens a file, or a pipe as soon as it has a writer. That wait cannot be called off, and would keep the
 * process alive: at the signal, this process is the writer for a moment.
 */
async function openPipe(path: string, signal: AbortSignal | undefined): Promise<FileHandle> {
  const release = (): void => {
    void open(path, constants.O_WRONLY | constants.O_NONBLOCK)
      .then((writer) => writer.close())
      .catch(() => undefined)
  }
  const isPipe = signal !== undefined && (await stat(path)).isFIFO()
  if (isPipe) signal.addEventListener('abort', release)
  if (isPipe && signal.aborted) release()
  try {
    return await open(path, 'r')
  } finally {
    if (isPipe) signal.removeEventListener('abort', release)
  }
}

async function* prepend(
  head: readonly Uint8Array[],
  rest: AsyncGenerator<Uint8Array, void, undefined>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield* head
  yield* rest
}

import { Readable } from 'node:stream'
import { SluiceError } from '../../core/errors.ts'
import { formatBytes } from '../../core/text.ts'
import type { Deadline } from './s3-client.ts'
import { ShortBodyError } from './s3-errors.ts'

export type ReadLimits = {
  /** Bytes that must come, when known. */
  readonly expected: number | undefined
  readonly bytesMax: number
  readonly location: string
}

/**
 * Reads a reply to its end. Short bytes are never returned: connections break at any byte, and what
 * came until then looks like a smaller object.
 * @throws ShortBodyError, and SluiceError LIMIT_EXCEEDED
 */
export async function readBody(
  body: unknown,
  limits: ReadLimits,
  deadline: Deadline,
): Promise<Uint8Array> {
  if (!(body instanceof Readable)) throw new ShortBodyError('the reply has no body')
  const { expected, bytesMax, location } = limits
  const give = (): void => {
    body.destroy(new ShortBodyError('the reply came too slowly'))
  }
  try {
    if ((expected ?? 0) > bytesMax) throw tooLarge(location, bytesMax)
    deadline.allow(expected ?? 0)
    deadline.signal.addEventListener('abort', give, { once: true })
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) throw new ShortBodyError('the reply is no bytes')
      chunks.push(chunk)
      length += chunk.length
      if (length > bytesMax) throw tooLarge(location, bytesMax)
    }
    if (expected !== undefined && length !== expected) {
      throw new ShortBodyError(`${length} bytes came where ${expected} were announced`)
    }
    return Buffer.concat(chunks, length)
  } finally {
    deadline.signal.removeEventListener('abort', give)
    body.destroy()
  }
}

/**
 * Reads a reply that is no object: a page of a list, an error. Such a reply is read whole before
 * anything can be said of it, so a server that never ends it would fill the memory.
 * @throws ShortBodyError
 */
export async function readReply(body: unknown): Promise<Uint8Array> {
  if (!(body instanceof Readable)) throw new ShortBodyError('the reply has no body')
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new ShortBodyError('the reply is no bytes')
    chunks.push(chunk)
    length += chunk.length
    if (length > replyBytesMax) {
      throw new ShortBodyError(`the reply goes on after ${formatBytes(replyBytesMax)}`)
    }
  }
  return Buffer.concat(chunks, length)
}

/** A page of a thousand keys, each as long as a key can be, is a tenth of it. */
const replyBytesMax = 32_000_000

/** Ends the connection of a reply that is of no use. */
export function discardBody(body: unknown): void {
  if (body instanceof Readable) body.destroy()
}

function tooLarge(location: string, bytesMax: number): SluiceError {
  return new SluiceError(
    'LIMIT_EXCEEDED',
    `${location}: more than the ${formatBytes(bytesMax)} that are read of one object`,
  )
}

import type { KvRange } from './ports.ts'

/** A range without a prefix. */
export function boundsOf({ from, to, prefix }: KvRange): Pick<KvRange, 'from' | 'to'> {
  const least = prefix === undefined ? from : later(from, prefix)
  const most = prefix === undefined ? to : earlier(to, afterPrefix(prefix))
  return {
    ...(least === undefined ? {} : { from: least }),
    ...(most === undefined ? {} : { to: most }),
  }
}

/** The first key after all that begin so; undefined where there is none. */
function afterPrefix(prefix: Uint8Array): Uint8Array | undefined {
  let length = prefix.length
  while (length > 0 && prefix[length - 1] === 0xff) length -= 1
  if (length === 0) return undefined
  const next = prefix.slice(0, length)
  next[length - 1] = (next[length - 1] ?? 0) + 1
  return next
}

function later(first: Uint8Array | undefined, second: Uint8Array): Uint8Array {
  return first !== undefined && Buffer.compare(first, second) > 0 ? first : second
}

function earlier(
  first: Uint8Array | undefined,
  second: Uint8Array | undefined,
): Uint8Array | undefined {
  if (first === undefined || second === undefined) return first ?? second
  return Buffer.compare(first, second) < 0 ? first : second
}

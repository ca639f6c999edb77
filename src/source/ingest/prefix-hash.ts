import { createHash, type Hash } from 'node:crypto'
import type { BlockDigests } from '../ports.ts'

const blockBytesMin = 64 * 1024
const blocksMax = 64
const digitsPerBlock = 8

/** What was hashed up to one place. */
export type PrefixDigests = {
  /** SHA-256 in hex of everything. */
  readonly digest: () => string
  /** Undefined before the first block is full. */
  readonly blocks: BlockDigests | undefined
}

/**
 * SHA-256 over the beginning of an input, with a digest at the end of each block on the way. Beyond 64
 * blocks they become twice as wide, which leaves every second digest: what is kept depends on the
 * bytes alone, and is small however many they are.
 */
export class PrefixHash {
  readonly #hash: Hash
  #size = 0
  #blockBytes = blockBytesMin
  #digests: string[] = []

  constructor(hash: Hash = createHash('sha256')) {
    this.#hash = hash
  }

  /** The same beginning, which can go on in another way. */
  copy(): PrefixHash {
    const copy = new PrefixHash(this.#hash.copy())
    copy.#size = this.#size
    copy.#blockBytes = this.#blockBytes
    copy.#digests = [...this.#digests]
    return copy
  }

  update(part: Uint8Array): void {
    for (let from = 0; from < part.length; ) {
      const left = this.#blockBytes - (this.#size % this.#blockBytes)
      const size = Math.min(left, part.length - from)
      this.#hash.update(part.subarray(from, from + size))
      this.#size += size
      from += size
      if (size === left) this.#endBlock()
    }
  }

  here(): PrefixDigests {
    const hash = this.#hash.copy()
    let digest: string | undefined
    const digests = this.#digests.join('')
    return {
      digest: () => (digest ??= hash.digest('hex')),
      blocks: digests === '' ? undefined : { bytes: this.#blockBytes, digests },
    }
  }

  #endBlock(): void {
    this.#digests.push(this.#hash.copy().digest('hex').slice(0, digitsPerBlock))
    if (this.#digests.length <= blocksMax) return
    this.#digests = this.#digests.filter((_, index) => index % 2 === 1)
    this.#blockBytes *= 2
  }
}

/**
 * How far two inputs are the same, as far as both have digests: `same` is where a block begins, and
 * `differs` says whether that very block is another. Undefined where there is nothing to compare.
 */
export function compareBlocks(
  known: BlockDigests | undefined,
  found: BlockDigests | undefined,
): { readonly same: number; readonly differs: boolean } | undefined {
  if (known === undefined || found === undefined) return undefined
  const theirs = new Map(endsOf(found))
  let same = 0
  for (const [end, digest] of endsOf(known)) {
    const other = theirs.get(end)
    if (other === undefined) continue
    if (other !== digest) return { same, differs: true }
    same = end
  }
  return { same, differs: false }
}

/** The end of each block with its digest, ascending. */
function endsOf({ bytes, digests }: BlockDigests): readonly (readonly [number, string])[] {
  return (digests.match(/.{8}/g) ?? []).map((digest, index) => [(index + 1) * bytes, digest])
}

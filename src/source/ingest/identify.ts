import { createHash, type Hash } from 'node:crypto'
import type { SluiceError } from '../../core/errors.ts'
import type { BlockDigests } from '../ports.ts'
import { InputBytes, type InputLocation } from './input-bytes.ts'
import type { FoundPrefix } from './input-changed.ts'
import { PrefixHash } from './prefix-hash.ts'

/** Below this size the beginning of a file says too little, so the name must match too. */
const tellingBytes = 1024
const idBytes = 64 * 1024

/** An input the lake holds records of, or one read earlier in this run. */
export type KnownInput = {
  readonly id: string
  /** As the lake remembers it; compared with the name of a file. */
  readonly name: string
  readonly position: bigint
  /** SHA-256 in hex of everything before `position`; of the whole file if `whole`. */
  readonly digest: string
  readonly blocks?: BlockDigests
  readonly tieredAt?: number
  /** A Parquet or Arrow file: it is this input only if all its bytes are the same. */
  readonly whole?: boolean
}

export type InputIdentity =
  /** All its bytes are known: nothing is new, unless a run was cut short. */
  | { readonly kind: 'same'; readonly id: string; readonly known: KnownInput }
  /** It begins with all bytes of a known input, and goes on. */
  | { readonly kind: 'grown'; readonly id: string; readonly known: KnownInput }
  /** Its name is known, its beginning is another: refused, see `inputChanged`. */
  | { readonly kind: 'changed'; readonly known: KnownInput; readonly found?: FoundPrefix }
  /**
   * `misses`: what it begins with instead of the known inputs it was compared with, by their ids.
   * `failure`: why no more of it could be compared.
   */
  | {
      readonly kind: 'new'
      readonly id: string
      readonly misses: Misses
      readonly failure: SluiceError | undefined
    }

type Misses = ReadonlyMap<string, FoundPrefix>

/**
 * Tells which input a file is, by its content (docs/inputs.md), reading it once and no further than
 * the known inputs reach. Positions and digests are those of the decompressed text.
 *
 * The id of a new input is `sha256:` and the digest of its first 64 KiB (after name and a zero byte
 * if it has less than 1 KiB). It is given once and then kept, so it may depend on the size the file
 * had. While another input has that id, which did not turn out to be this one, twice as much of the
 * file is taken, and at its end a number is added.
 *
 * @throws SluiceError INPUT_UNREADABLE
 */
export async function identifyInput(file: {
  readonly name: string
  readonly location: InputLocation & { readonly kind: 'file' }
  /** Parquet or Arrow. */
  readonly whole: boolean
  readonly known: readonly KnownInput[]
}): Promise<InputIdentity> {
  const { name, location } = file
  const known = file.known.filter((each) => (each.whole ?? false) === file.whole)
  const misses = new Map<string, FoundPrefix>()
  const bytes = await InputBytes.open({ name, location })
  let failure: SluiceError | undefined
  try {
    const candidates = known.filter((each) => mayBe(each, name))
    const match = file.whole
      ? await matchWhole(bytes, known)
      : await matchPrefix(bytes, candidates, misses)
    if (match !== undefined) return match
    failure = bytes.failure
  } finally {
    await bytes.close()
  }
  const sameName = known.find((each) => each.name === name && each.position > 0n)
  if (sameName !== undefined) {
    // What is there of it does not tell whether the whole is what was tiered.
    if (failure !== undefined) throw failure
    const found = misses.get(sameName.id)
    return { kind: 'changed', known: sameName, ...(found === undefined ? {} : { found }) }
  }
  return { kind: 'new', id: await newId(file), misses, failure }
}

function mayBe(known: KnownInput, name: string): boolean {
  return known.position >= BigInt(tellingBytes) || known.name === name
}

/** The longest known input whose bytes the file begins with. */
async function matchPrefix(
  bytes: InputBytes,
  candidates: readonly KnownInput[],
  misses: Map<string, FoundPrefix>,
): Promise<InputIdentity | undefined> {
  const ascending = [...candidates].sort((a, b) => (a.position < b.position ? -1 : 1))
  const hash = new PrefixHash()
  let position = 0n
  let rest: Uint8Array = new Uint8Array(0)
  let found: KnownInput | undefined
  let grown = false
  for (const candidate of ascending) {
    while (position < candidate.position) {
      if (rest.length === 0) rest = (await partOf(bytes)) ?? rest
      if (rest.length === 0) break
      const left = candidate.position - position
      const size = left < BigInt(rest.length) ? Number(left) : rest.length
      hash.update(rest.subarray(0, size))
      position += BigInt(size)
      rest = rest.subarray(size)
      grown = true
    }
    const { digest, blocks } = hash.here()
    if (position < candidate.position || digest() !== candidate.digest) {
      misses.set(candidate.id, { size: position, blocks })
      continue
    }
    found = candidate
    grown = false
  }
  if (found === undefined) return undefined
  return identityOf(found, grown || rest.length > 0 || (await partOf(bytes)) !== undefined)
}

/** The next bytes; bytes that cannot be read on end there. */
async function partOf(bytes: InputBytes): Promise<Uint8Array | undefined> {
  try {
    return await bytes.read()
  } catch (error) {
    if (bytes.failure !== undefined) return undefined
    throw error
  }
}

function identityOf(known: KnownInput | undefined, grown: boolean): InputIdentity | undefined {
  if (known === undefined) return undefined
  return { kind: grown ? 'grown' : 'same', id: known.id, known }
}

async function matchWhole(
  bytes: InputBytes,
  candidates: readonly KnownInput[],
): Promise<InputIdentity | undefined> {
  if (candidates.length === 0) return undefined
  const digest = await digestOf(bytes)
  const known = candidates.find((each) => each.digest === digest)
  return known === undefined ? undefined : { kind: 'same', id: known.id, known }
}

/** SHA-256 in hex of all bytes. */
export async function digestOf(bytes: InputBytes): Promise<string> {
  const hash = createHash('sha256')
  for (;;) {
    const chunk = await bytes.read()
    if (chunk === undefined) return hash.digest('hex')
    hash.update(chunk)
  }
}

async function newId(file: {
  readonly name: string
  readonly location: InputLocation
  readonly known: readonly KnownInput[]
}): Promise<string> {
  const taken = new Set(file.known.map((known) => known.id))
  const { name, location } = file
  const bytes = await InputBytes.open({ name, location })
  try {
    const hash = createHash('sha256')
    let size = 0
    let rest: Uint8Array = await bytes.head(idBytes)
    if (rest.length < tellingBytes) hash.update(`${file.name}\0`)
    await bytes.read()
    for (let target = idBytes; ; target *= 2) {
      while (size < target) {
        if (rest.length === 0) rest = (await partOf(bytes)) ?? rest
        if (rest.length === 0) return unusedId(idOf(hash), taken)
        const part = rest.subarray(0, target - size)
        hash.update(part)
        size += part.length
        rest = rest.subarray(part.length)
      }
      const id = idOf(hash)
      if (!taken.has(id)) return id
    }
  } finally {
    await bytes.close()
  }
}

function idOf(hash: Hash): string {
  return `sha256:${hash.copy().digest('hex')}`
}

function unusedId(id: string, taken: ReadonlySet<string>): string {
  if (!taken.has(id)) return id
  let number = 2
  while (taken.has(`${id}-${number}`)) number += 1
  return `${id}-${number}`
}

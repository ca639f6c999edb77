import { createHash } from 'node:crypto'
import { SluiceError } from '../../core/errors.ts'
import type { InputProgress, InputsProgress } from '../ports.ts'
import { type InputBytes, idle } from './input-bytes.ts'

/*
 * Which input of the table is this? Content decides. The lake keeps, for each input, the digest of
 * everything before its position; a file that begins with exactly those bytes is that input, whatever
 * it is called now and however much has been added to it. Of several such inputs it is the longest.
 * Under 1 KiB content says too little (a header line is shared by many files), so the name must match
 * as well.
 */

export type Identity =
  /** Grown, renamed, or just the same. */
  | { readonly kind: 'known'; readonly id: string; readonly progress: InputProgress }
  | { readonly kind: 'new'; readonly id: string }

/** Below this many bytes content alone does not identify an input. */
const tellingBytes = 1024
/** An id is made of this much of a new input. */
const idBytes = 65_536

/** A place whose digest the lake knows. */
type Evidence = {
  readonly id: string
  readonly progress: InputProgress
  readonly position: bigint
  readonly digest: string
}

/**
 * Reads an input once, as far as the lake knows any, and says which it is.
 *
 * @param bytes Opened by `InputBytes.open` and not used for anything else afterwards.
 * @throws SluiceError INPUT_CHANGED when the name is known and the content is another
 */
export async function identifyInput(
  bytes: InputBytes,
  name: string,
  known: InputsProgress,
  options: { readonly isWhole?: boolean } = {},
): Promise<Identity> {
  if (options.isWhole === true) return identifyWhole(bytes, name, known)
  const evidence = evidenceOf(known)
  const read = await digestsAt(bytes, [...new Set(evidence.map((each) => each.position))])
  const matches = evidence.filter(
    (each) =>
      read.digests.get(each.position) === each.digest &&
      (each.position >= tellingBytes || each.progress.name === name),
  )
  const longest = matches.reduce<Evidence | undefined>(
    (best, each) => (best === undefined || each.position > best.position ? each : best),
    undefined,
  )
  if (longest !== undefined) {
    return { kind: 'known', id: longest.id, progress: longest.progress }
  }
  const namesake = evidence.find((each) => each.progress.name === name)
  if (namesake !== undefined) throw changedError(name, namesake, read.bytes)
  return { kind: 'new', id: unusedId(`sha256:${read.firstDigest}`, known) }
}

/**
 * Parquet and Arrow files count as wholes: one that has changed is another input. Their digest is that
 * of the file, their position a row.
 */
async function identifyWhole(
  bytes: InputBytes,
  name: string,
  known: InputsProgress,
): Promise<Identity> {
  const hash = createHash('sha256')
  for (;;) {
    const chunk = await bytes.read()
    if (chunk === undefined || chunk === idle) break
    hash.update(chunk)
  }
  const digest = hash.digest('hex')
  for (const [id, progress] of known) {
    if (progress.digest === digest) return { kind: 'known', id, progress }
  }
  for (const [id, progress] of known) {
    if (progress.name !== name) continue
    throw new SluiceError('INPUT_CHANGED', `${name}: is not the file that was tiered`, {
      details: { input: name, id },
      fix: `restore the file, or tier it as another input: --input-id ${stemOf(name)}-2`,
    })
  }
  return { kind: 'new', id: unusedId(`sha256:${digest}`, known) }
}

/** Digests are known where an input stands, and where a part of it that is in the lake ends. */
function evidenceOf(known: InputsProgress): readonly Evidence[] {
  const evidence: Evidence[] = []
  for (const [id, progress] of known) {
    const { position, digest } = progress.ahead ?? {
      position: progress.position,
      digest: progress.digest,
    }
    if (digest === undefined || !/^\d{1,18}$/.test(position) || position === '0') continue
    evidence.push({ id, progress, position: BigInt(position), digest })
  }
  return evidence
}

async function digestsAt(
  bytes: InputBytes,
  positions: readonly bigint[],
): Promise<{
  readonly digests: ReadonlyMap<bigint, string>
  readonly firstDigest: string
  readonly bytes: bigint
}> {
  const first = createHash('sha256').update((await bytes.head(idBytes)).subarray(0, idBytes))
  const digests = new Map<bigint, string>()
  const ascending = positions.toSorted((a, b) => (a < b ? -1 : 1))
  const hash = createHash('sha256')
  let at = 0n
  let next = 0
  while (next < ascending.length) {
    const chunk = await bytes.read()
    if (chunk === undefined || chunk === idle) break
    let from = 0
    for (; next < ascending.length; next += 1) {
      const goal = ascending[next] ?? 0n
      const size = goal - at
      if (size > BigInt(chunk.length - from)) break
      hash.update(chunk.subarray(from, from + Number(size)))
      from += Number(size)
      at = goal
      digests.set(goal, hash.copy().digest('hex'))
    }
    hash.update(chunk.subarray(from))
    at += BigInt(chunk.length - from)
  }
  return { digests, firstDigest: first.digest('hex'), bytes: at }
}

function unusedId(id: string, known: InputsProgress): string {
  let unused = id
  for (let count = 2; known.has(unused); count += 1) unused = `${id}-${String(count)}`
  return unused
}

function changedError(name: string, namesake: Evidence, read: bigint): SluiceError {
  const size = namesake.position.toLocaleString('en-US')
  const isShorter = read < namesake.position
  const what = isShorter
    ? `has ${read.toLocaleString('en-US')} bytes, ${size} were tiered`
    : `its first ${size} bytes are not the ones tiered`
  return new SluiceError('INPUT_CHANGED', `${name}: ${what}`, {
    details: { input: name, id: namesake.id, position: namesake.position },
    fix: `restore the file, or tier it as another input: --input-id ${stemOf(name)}-2`,
  })
}

function stemOf(name: string): string {
  return name.replace(/\.[^.]*$/, '')
}

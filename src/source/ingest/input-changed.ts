import { SluiceError } from '../../core/errors.ts'
import { formatCount } from '../../core/text.ts'
import type { BlockDigests } from '../ports.ts'
import { stemOf } from './input-format.ts'
import { compareBlocks } from './prefix-hash.ts'

/** What the lake knows of the beginning of an input. */
export type KnownPrefix = {
  readonly position: bigint
  /** Milliseconds since 1970; undefined where the lake does not say. */
  readonly tieredAt?: number
  readonly blocks?: BlockDigests
  /** A Parquet or Arrow file, of which only the whole is known. */
  readonly whole?: boolean
  /** The id of the input, if it is known. */
  readonly id?: string
}

/** What was found instead: how many bytes, at most as many as are known, and their digests. */
export type FoundPrefix = { readonly size: bigint; readonly blocks: BlockDigests | undefined }

/**
 * The error for an input that does not begin with what was tiered of it.
 * @param found Undefined when it was not compared byte by byte.
 */
export function inputChanged(
  name: string,
  known: KnownPrefix,
  found: FoundPrefix | undefined,
): SluiceError {
  const { position, tieredAt, id } = known
  const isShorter = found !== undefined && found.size < position
  const compared = compareBlocks(known.blocks, found?.blocks)
  // What is left of a shorter one may be the same.
  const byte = isShorter && compared?.differs === false ? undefined : compared?.same
  const on = tieredAt === undefined ? '' : ` on ${minuteOf(tieredAt)}`
  const where =
    byte === undefined ? '' : `first difference in the block at byte ${formatCount(byte)}`
  return new SluiceError('INPUT_CHANGED', `${name}: ${whatOf()}`, {
    fix: `restore the file, or tier it as another input: --input-id ${stemOf(name)}-2`,
    details: {
      input: name,
      position,
      ...(id === undefined ? {} : { id }),
      ...(tieredAt === undefined ? {} : { tieredAt: new Date(tieredAt).toISOString() }),
      ...(isShorter ? { size: found.size } : {}),
      ...(byte === undefined ? {} : { byte }),
    },
  })

  function whatOf(): string {
    if (known.whole === true) return `its content is not what was tiered${on}`
    const wanted = formatCount(position)
    if (!isShorter) {
      const place = where === '' ? '' : ` (${where})`
      return `its first ${wanted} bytes are not the ones tiered${on}${place}`
    }
    const sizes = `${formatCount(found.size)} bytes, ${wanted} are in the lake`
    return `is shorter than what was tiered${on} (${sizes}${where === '' ? '' : `; ${where}`})`
  }
}

/** Messages are for people of any place, who may compare them. */
function minuteOf(millis: number): string {
  return `${new Date(millis).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

import { isSluiceError, SluiceError } from '../../core/errors.ts'
import { counted } from '../../core/text.ts'
import type { Quarantine } from './quarantine.ts'

/**
 * Says with the error of a changed input that records of it were set aside: mending them in place is
 * the likely change, and it does not bring them into the lake.
 * @param id Of the input, where the error does not say it.
 */
export async function explainChanged(
  error: unknown,
  id: string | undefined,
  quarantine: Quarantine,
): Promise<unknown> {
  if (!isSluiceError(error, 'INPUT_CHANGED')) return error
  const { id: found = id, position } = error.details
  if (typeof found !== 'string' || typeof position !== 'bigint') return error
  const bytes = await quarantine.placesOf(found).catch(() => [])
  const count = bytes.filter((byte) => byte < position).length
  if (count === 0) return error
  const [were, they] = count === 1 ? ['was', 'it'] : ['were', 'they']
  return new SluiceError(error.code, error.message, {
    details: { ...error.details, setAside: count },
    cause: error,
    state: `${counted(count, 'record')} of it ${were} set aside; mended in place, ${they} cannot be read again`,
    fix: `restore the file, and tier the mended records from a file of their own`,
  })
}

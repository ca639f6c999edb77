import { SluiceError } from '../../core/errors.ts'
import { quoteValue } from '../../core/text.ts'

export const defaultFamily = 'default'

const nameBytesMax = 255

/**
 * Checks the name of a state, which is that of its column family.
 * @throws SluiceError NAME_INVALID
 */
export function checkFamilyName(name: string): void {
  const bytes = Buffer.byteLength(name)
  const why =
    name === ''
      ? 'must not be empty'
      : name === defaultFamily
        ? 'is taken: every store has that family, and it is no state'
        : bytes > nameBytesMax
          ? `has ${bytes} bytes; at most ${nameBytesMax} are possible`
          : Buffer.from(name).toString() !== name
            ? 'is not Unicode text'
            : undefined
  if (why === undefined) return
  throw new SluiceError('NAME_INVALID', `column family ${quoteValue(name)}: the name ${why}`, {
    details: { name },
  })
}

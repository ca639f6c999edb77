import { isSluiceError, SluiceError } from '../../core/errors.ts'
import type { Before } from './bad-records.ts'
import { isCut } from './decompress.ts'
import type { TextPlace } from './input.ts'
import type { InputBytes } from './input-bytes.ts'

/** How much of a stream is unfolded to learn whether it is damaged. */
const lookBytes = 256 * 1024 * 1024

/** The error of a text that cannot be read on: everything before `place` was handed out. */
export function endsEarly(
  bytes: InputBytes,
  failure: SluiceError,
  place: TextPlace,
  before: Before,
): SluiceError {
  const { name, compression } = bytes
  const unfolded = compression === 'none' ? '' : ' of the text'
  const at = `${name}:${String(place.line)}:${String(place.column)}`
  return new SluiceError(failure.code, failure.message, {
    where: `${at} (byte ${place.byte.toLocaleString('en-US')}${unfolded})`,
    details: {
      ...failure.details,
      input: name,
      ...place,
      recordLine: place.line,
      ...(before.records === undefined ? {} : { recordsBefore: before.records }),
      ...(before.firstLine === undefined ? {} : { firstLine: before.firstLine }),
    },
    cause: failure,
    ...(failure.fix === undefined ? {} : { fix: failure.fix }),
  })
}

/**
 * What stops reading may be no fault of the text but of the compressed stream around it, whose
 * checksum comes later. Reads on in a file, within a bound, to find out.
 * @returns the damage, told at the place where it showed itself first; else what stopped reading
 */
export async function orDamage(bytes: InputBytes, stopped: SluiceError): Promise<SluiceError> {
  if (bytes.compression === 'none' || stopped.code === 'DATA_CORRUPT') return stopped
  // A pipe may have nothing more to read for ever.
  if (bytes.bytesTotal === undefined) return stopped
  const damage = await damageAhead(bytes)
  // What comes before a cut is right.
  if (damage === undefined || isCut(damage)) return stopped
  const { where } = stopped
  return new SluiceError(damage.code, `${damage.message}; it shows first in ${stopped.message}`, {
    details: { ...stopped.details, ...damage.details },
    cause: stopped,
    ...(where === undefined ? {} : { where }),
    ...(damage.fix === undefined ? {} : { fix: damage.fix }),
  })
}

async function damageAhead(bytes: InputBytes): Promise<SluiceError | undefined> {
  try {
    for (let seen = 0; seen < lookBytes; ) {
      const chunk = await bytes.read()
      if (chunk === undefined) return undefined
      seen += chunk.length
    }
    return undefined
  } catch (error) {
    if (isSluiceError(error)) return isSluiceError(error, 'DATA_CORRUPT') ? error : undefined
    throw error
  }
}

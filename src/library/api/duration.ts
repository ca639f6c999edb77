import { parseDuration } from '../../core/duration.ts'

/** `30s`, `PT5M`; a number is milliseconds. */
export type Duration = string | number

/**
 * Milliseconds of a duration.
 * @param what Begins the message: `freshness`.
 * @throws SluiceError CONFIG_INVALID
 */
export function durationMs(
  duration: Duration,
  what: string,
  options: { readonly zero?: 'allowed' | 'refused' } = {},
): number {
  return parseDuration(durationText(duration), what, options)
}

/** As table properties have it. */
export function durationText(duration: Duration): string {
  return typeof duration === 'number' ? `${duration}ms` : duration
}

import { SluiceError } from '../../core/errors.ts'

/**
 * Waits for reading that may wait for ever, such as that of a silent pipe, but no longer than until
 * the signal. What the work gives after that is dropped.
 * @throws SluiceError STOPPED
 */
export function orStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(new SluiceError('STOPPED', 'interrupted while it waited for input'))
    }
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort)
    })
  })
}

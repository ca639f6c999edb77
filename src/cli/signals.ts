export type StopSignalName = 'SIGINT' | 'SIGTERM'

/** What a command sees of the signals that ask it to end. */
export type StopRequest = {
  /** Aborts at the first signal. */
  readonly signal: AbortSignal
  /** The first signal, if there was one. */
  by(): StopSignalName | undefined
}

export type SignalSource = {
  on(event: StopSignalName, listener: () => void): unknown
  off(event: StopSignalName, listener: () => void): unknown
}

/** The terminal and `npx` may both hand on the same Ctrl-C. */
const sameSignalMs = 1000

/**
 * The first signal asks for a clean end; a second one leaves at once, unless it follows within a
 * second and is the same Ctrl-C seen twice.
 */
export function watchSignals(
  source: SignalSource,
  options: { readonly now: () => number; readonly leave: (exit: number) => void },
): StopRequest & { close(): void } {
  const abort = new AbortController()
  let first: { readonly name: StopSignalName; readonly at: number } | undefined
  const onSignal = (name: StopSignalName) => (): void => {
    const at = options.now()
    if (first === undefined) {
      first = { name, at }
      abort.abort()
    } else if (at - first.at >= sameSignalMs) {
      options.leave(exitOfSignal(name))
    }
  }
  const onInterrupt = onSignal('SIGINT')
  const onTerminate = onSignal('SIGTERM')
  source.on('SIGINT', onInterrupt)
  source.on('SIGTERM', onTerminate)
  return {
    signal: abort.signal,
    by: () => first?.name,
    close: () => {
      source.off('SIGINT', onInterrupt)
      source.off('SIGTERM', onTerminate)
    },
  }
}

export function exitOfSignal(name: StopSignalName): number {
  return name === 'SIGTERM' ? 143 : 130
}

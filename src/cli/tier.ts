import { formatDuration } from '../core/duration.ts'
import type { Command, CommandContext } from './command.ts'
import { snakeCase, writeJson } from './json.ts'
import { showProgress } from './progress.ts'
import { exitOf, renderError } from './render-error.ts'
import { receiptJson, renderReceipt, roundJson } from './render-receipt.ts'
import { credentialNotes } from './s3-options.ts'
import { readTierRequest } from './tier-options.ts'
import type { Receipt, TierEvent, TierRequest, TierRun } from './tier-request.ts'

/** `sluice tier`. */
export const tierCommand: Command = async (context) => {
  const request = readTierRequest(context.given, context.around, context.found)
  context.found.settle()
  if (request === undefined) return 2
  if (request.s3 !== undefined) {
    for (const message of credentialNotes(context.around))
      context.terminal.note(`  note  ${message}`)
  }
  const { tierRun } = await import('./tier-run.ts')
  return await tierWith(tierRun, request, context)
}

/** Runs one request and tells about it. Apart from the run so that it can be tested without one. */
export async function tierWith(
  run: TierRun,
  request: TierRequest,
  context: CommandContext,
): Promise<number> {
  const { terminal, json, stop } = context
  const progress = showProgress(terminal, context.now)
  const isStreaming = json !== undefined && request.follow
  const onStop = (): void => {
    const most = formatDuration(request.shutdownTimeoutMs)
    terminal.note(`stopping: the running round has ${most} to be committed, ^C again to leave now`)
  }
  stop.signal.addEventListener('abort', onStop, { once: true })
  let receipt: Receipt
  try {
    receipt = await run(request, {
      signal: stop.signal,
      stdin: context.stdin,
      journal: context.journal,
      onEvent: (event) => {
        progress.event(event)
        if (isStreaming) writeEvent(event, context)
      },
    })
  } finally {
    stop.signal.removeEventListener('abort', onStop)
    progress.end()
  }
  return report(receipt, request, context, isStreaming)
}

function report(
  receipt: Receipt,
  request: TierRequest,
  context: CommandContext,
  isStreaming: boolean,
): number {
  const { terminal, json, stop } = context
  const signal = stop.by()
  if (json === undefined) {
    const view = { style: terminal.outStyle, marks: terminal.marks }
    // A run that failed before its first commit has nothing to show but its error.
    if (receipt.ok || receipt.rounds.length > 0) terminal.result(renderReceipt(receipt, view))
  } else {
    const document = receiptJson(receipt, signal)
    const event = isStreaming ? { event: 'receipt', ...document } : document
    terminal.result(writeJson(event, json))
  }
  if (receipt.error === undefined) return 0
  // Being told to stop is how a run that follows its input ends.
  if (request.follow && 'code' in receipt.error && receipt.error.code === 'STOPPED') return 0
  const view = {
    style: terminal.style,
    verbose: context.verbose,
    signal,
    folder: context.around.folder,
  }
  terminal.error(renderError(receipt.error, view))
  return exitOf(receipt.error, signal)
}

function writeEvent(event: TierEvent, { terminal, json = 'number' }: CommandContext): void {
  const { event: name, ...rest } = event
  const members =
    event.event === 'committed'
      ? { table: event.table, ...roundJson(event) }
      : Object.fromEntries(Object.entries(rest).map(([key, value]) => [snakeCase(key), value]))
  terminal.result(writeJson({ event: name, ...members }, json))
}

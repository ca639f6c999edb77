import { type Batch, runBatch, type Tally } from './batch.ts'

export type WorkerMessage = { readonly part: Tally } | { readonly done: true }

// Stacks of expected errors are never read, and cost more than the errors.
Error.stackTraceLimit = 0

process.on('message', (batch: Batch) => {
  const send = (message: WorkerMessage): void => {
    process.send?.(message)
  }
  runBatch(batch, Date.now, (part) => {
    send({ part })
  }).then(
    () => {
      send({ done: true })
      process.disconnect()
    },
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? String(error.stack) : String(error)}\n`)
      process.exit(70)
    },
  )
})

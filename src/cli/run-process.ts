import { run } from './run.ts'
import { watchSignals } from './signals.ts'

/** Runs the command line of this process and ends it. The one place that touches `process`. */
export async function runProcess(): Promise<void> {
  const now = (): number => performance.now()
  for (const stream of [process.stdout, process.stderr]) {
    // A reader that has seen enough, such as `head`, is not an error.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(0)
    })
  }
  const stop = watchSignals(process, {
    now,
    leave: (exit) => {
      process.stderr.write('\u001b[?25h'.repeat(process.stderr.isTTY ? 1 : 0))
      process.exit(exit)
    },
  })
  const exit = await run({
    argv: process.argv.slice(2),
    environment: process.env,
    folder: process.cwd(),
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    stop,
    now,
  })
  // Open handles of engines and of an unread stdin must not keep a finished command alive.
  process.exit(exit)
}

#!/usr/bin/env node
import { whyNotHere } from './platform.ts'

// Everything else is loaded after this check: an old Node could not even parse it.
const reason = whyNotHere(process.platform, process.versions.node)
if (reason === undefined) {
  const { runProcess } = await import('./run-process.ts')
  await runProcess()
} else {
  process.stderr.write(`${reason}\n`)
  process.exitCode = 2
}

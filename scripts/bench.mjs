// Measures Sluice beside named peers on the same data, machine and run.
//   npm run bench              5 interleaved runs over 1,000,000 records
//   npm run bench -- --quick   3 runs over 200,000 records
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const built = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
if (built.status !== 0) process.exit(built.status ?? 1)
const ran = spawnSync(
  process.execPath,
  [join(root, 'dist/bench/tier.js'), ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
)
process.exit(ran.status ?? 1)

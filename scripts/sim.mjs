// Runs the simulation; see docs/simulation.md.
//   npm run sim -- --seed 7 --minutes 1
//   npm run sim -- --write-docs FILE    puts the figures of a --json report into docs/simulation.md
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const args = process.argv.slice(2)

if (args[0] === '--write-docs') {
  writeDocs(JSON.parse(readFileSync(args[1], 'utf8')))
} else {
  const main = join(root, 'dist/sim/main.js')
  if (!existsSync(main)) {
    const built = spawnSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
    if (built.status !== 0) process.exit(built.status ?? 1)
  }
  process.exit(spawnSync(process.execPath, [main, ...args], { stdio: 'inherit' }).status ?? 1)
}

/** Between the markers stands what the run said, and nothing else. */
function writeDocs(report) {
  const file = join(root, 'docs/simulation.md')
  const number = (value) => value.toLocaleString('en-US')
  const rows = Object.entries(report.faults).map(
    ([kind, count]) => `| ${kind} | ${number(count)} |`,
  )
  const found = report.planted.filter((plant) => plant.found)
  const block = [
    `Commit \`${report.commit}\`, Node ${report.node}, seeds ${number(report.first_seed)} to ` +
      `${number(report.first_seed + report.seeds - 1)}.`,
    '',
    '| What | Count |',
    '|---|---|',
    `| seeds | ${number(report.seeds)} |`,
    `| simulated time | ${(report.simulated_seconds / 86_400).toFixed(1)} days in ${report.seconds.toFixed(0)} s |`,
    `| versions checked | ${number(report.commits_checked)} |`,
    `| violations | ${number(report.violations.length)} |`,
    `| determinism re-runs, all equal | ${number(report.rechecked)} |`,
    `| process kills | ${number(report.marks['event.kill'] ?? 0)} |`,
    `| processes paused past their lease or not | ${number(report.marks['event.pause'] ?? 0)} |`,
    `| coordinator restarts | ${number(report.marks['coordinator.restarted'] ?? 0)} |`,
    `| clock jumps | ${number(report.marks['event.clock-jump'] ?? 0)} |`,
    `| rollbacks, expiries, foreign commits | ${number(
      ['rollback', 'expire', 'foreign-append', 'foreign-rewrite'].reduce(
        (sum, kind) => sum + (report.marks[`event.${kind}`] ?? 0),
        0,
      ),
    )} |`,
    '',
    '| Fault of the store | Count |',
    '|---|---|',
    ...rows,
    '',
    `Planted bugs found: ${found.length} of ${report.planted.length}.`,
    '',
    '| Planted bug | First seed that finds it |',
    '|---|---|',
    ...report.planted.map((plant) => `| ${plant.name} | ${plant.seed ?? 'not found'} |`),
  ].join('\n')
  const text = readFileSync(file, 'utf8')
  const marked = /(<!-- figures -->\n)[\s\S]*(<!-- end of figures -->)/
  writeFileSync(
    file,
    text.replace(marked, (_, open, close) => `${open}${block}\n${close}`),
  )
}

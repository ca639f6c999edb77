// Writes the generated pages of docs/reference. Run after `npm run build`.
import { writeFileSync } from 'node:fs'
import { referencePages } from '../dist/src/cli/reference.js'

for (const [name, page] of Object.entries(referencePages)) {
  writeFileSync(new URL(`../docs/reference/${name}`, import.meta.url), page())
}

import type { ObjectEntry } from '../catalog/store/object-store.ts'
import { counted, formatBytes } from '../core/text.ts'
import type { Findings } from './findings.ts'
import type { History } from './history.ts'
import type { Metadata } from './metadata.ts'
import { normalLocation, type TableFiles } from './table-files.ts'

/** Paths that one warning lists; the rest is counted. */
const pathsMax = 1000

/** Files of the table's folder that no listed snapshot refers to. */
export function warnOfOrphans(
  listing: readonly ObjectEntry[],
  metadata: Metadata,
  files: TableFiles,
  history: History,
  findings: Findings,
): void {
  // What an unreadable manifest refers to is not known.
  if (!history.isWhole) return
  const others = new Set(metadata.otherFiles.map((each) => files.locate(each)))
  const orphans = listing.filter(({ location }) => {
    const at = normalLocation(location)
    const path = at.slice(files.folder.length + 1)
    if (!/^(?:data|metadata)\//.test(path)) return false
    if (/\.metadata\.json(?:\.gz)?$/.test(path) || path === 'metadata/version-hint.text')
      return false
    return !history.referenced.has(at) && !others.has(at)
  })
  if (orphans.length === 0) return
  const bytes = orphans.reduce((sum, each) => sum + each.bytes, 0)
  findings.warn({
    kind: 'ORPHAN',
    paths: orphans.slice(0, pathsMax).map(({ location }) => files.shown(location)),
    found: String(orphans.length),
    detail: `${counted(orphans.length, 'file')} (${formatBytes(bytes)}) that no snapshot refers to, of rounds in flight or given up`,
  })
}

import { readFileSync } from 'node:fs'
import type { JsonObject } from '../core/json64.ts'

/** Version of this package, from its `package.json`, wherever this module was compiled to. */
export function packageVersion(): string {
  for (const up of ['../../package.json', '../../../package.json']) {
    try {
      const text = readFileSync(new URL(up, import.meta.url), 'utf8')
      const found: unknown = JSON.parse(text)
      if (typeof found !== 'object' || found === null) continue
      if (!('name' in found) || found.name !== 'sluice' || !('version' in found)) continue
      if (typeof found.version === 'string') return found.version
    } catch {
      // Not there: the next place is tried.
    }
  }
  return 'unknown'
}

export function versionText(): string {
  const { node } = process.versions
  return `sluice ${packageVersion()} (node ${node}, ${process.platform} ${process.arch})`
}

export function versionJson(): JsonObject {
  return {
    schema: 'sluice.version/1',
    ok: true,
    version: packageVersion(),
    node: process.versions.node,
    platform: process.platform,
    arch: process.arch,
  }
}

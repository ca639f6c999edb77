import { changelogKeys } from '../library/changelog-keys.ts'
import { parseSize } from '../core/size.ts'
import { didYouMean } from '../core/suggest.ts'
import { escapeText, quoteValue } from '../core/text.ts'
import type { Config, TableConfig } from './config.ts'
import type { Problems } from './problems.ts'
import type { Given, Settings } from './settings.ts'

/** Table properties as the user wrote them, each with the place to name when it is wrong. */
export type Properties = ReadonlyMap<string, Given>

/** Later ones win: defaults, the table's own, `--table-property`, and options with a name of theirs. */
export function readProperties(
  settings: Settings,
  config: Config | undefined,
  table: TableConfig | undefined,
  problems: Problems,
): Properties {
  const properties = new Map<string, Given>()
  for (const source of [config?.defaults, table?.properties]) {
    for (const [key, value] of source ?? []) {
      properties.set(key, { text: value.text, subject: value.where, origin: 'config' })
    }
  }
  for (const given of settings.all('table-property')) {
    const equals = given.text.indexOf('=')
    if (equals < 1) {
      problems.add('CONFIG_INVALID', `${given.subject} ${quoteValue(given.text)} is not KEY=VALUE`)
      continue
    }
    const key = given.text.slice(0, equals)
    const subject = `${given.subject} ${key}`
    properties.set(key, { ...given, text: given.text.slice(equals + 1), subject })
  }
  const freshness = settings.get('freshness')
  if (freshness !== undefined) properties.set('table.datalake.freshness', freshness)
  const target = settings.get('target-file-size')
  if (target !== undefined) {
    const bytes = problems.attempt(() => parseSize(target.text, target.subject, 1024))
    if (bytes !== undefined) {
      properties.set(targetFileSize, { ...target, text: bytes.toString() })
    }
  }
  for (const [key, value] of properties) checkProperty(key, value, problems)
  return properties
}

const targetFileSize = 'iceberg.write.target-file-size-bytes'

/** Properties Sluice obeys; a key close to one of them is a mistake, any other passes through. */
const obeyed = [
  'table.datalake.freshness',
  'table.datalake.enabled',
  'table.datalake.format',
  ...Object.values(changelogKeys),
  targetFileSize,
  'iceberg.write.parquet.compression-codec',
  'iceberg.write.parquet.compression-level',
  'iceberg.write.parquet.row-group-size-bytes',
  'iceberg.write.parquet.page-size-bytes',
  'iceberg.write.metadata.previous-versions-max',
  'iceberg.write.metadata.delete-after-commit.enabled',
  'iceberg.commit.retry.num-retries',
  'iceberg.commit.retry.min-wait-ms',
  'iceberg.commit.retry.max-wait-ms',
  'iceberg.commit.retry.total-timeout-ms',
]

function checkProperty(key: string, value: Given, problems: Problems): void {
  if (obeyed.includes(key)) return
  if (escapeText(key) !== key || key.length > 200) {
    problems.add('CONFIG_INVALID', `${value.subject}: a property name has no control characters`)
    return
  }
  const guess = didYouMean(key, obeyed)
  // Names of the same family differ by whole words; only a slip of a few letters is a mistake.
  const meant = /Did you mean (.*)\?/.exec(guess)?.[1]
  if (meant === undefined || Math.abs(meant.length - key.length) > 2) return
  problems.add('CONFIG_INVALID', `table property ${quoteValue(key)} is not known${guess}`)
}

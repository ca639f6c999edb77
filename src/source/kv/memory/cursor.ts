import type { KvCursor, KvEntries, KvRange } from '../ports.ts'
import type { Tables } from './family.ts'
import { MergedTables } from './merged-tables.ts'

/** @param done Called once, when the cursor is closed. */
export function memoryCursor(
  tables: Tables,
  range: Pick<KvRange, 'from' | 'to'>,
  done: () => void,
): KvCursor {
  const content = new MergedTables(tables, range)
  let isOpen = true
  return {
    next(entriesMax): KvEntries | undefined {
      const keys: Uint8Array[] = []
      const values: Uint8Array[] = []
      const most = entriesMax ?? entriesDefault
      while (isOpen && keys.length < most && content.next()) {
        const value = content.table.value(content.position)
        if (value === undefined) continue
        keys.push(content.table.key(content.position))
        values.push(value)
      }
      return keys.length === 0 ? undefined : { keys, values }
    },
    close(): void {
      if (isOpen) done()
      isOpen = false
    },
  }
}

const entriesDefault = 1_024

import { equal, match, ok } from 'node:assert/strict'
import type { Row } from '../../src/core/columns/rows.ts'
import type { Field } from '../../src/core/schema/types.ts'
import type { CommitResult } from '../../src/sink/ports.ts'
import type { WorldChange } from './keyed-world.ts'

/** A table of keys and names, the smallest one that changes. */
export const nameFields: readonly Field[] = [
  { name: 'id', type: { kind: 'bigint', nullable: false } },
  { name: 'name', type: { kind: 'string', nullable: true } },
]

export function upsert(id: number, name: string): WorldChange {
  return ['upsert', { id: BigInt(id), name }]
}

export function remove(id: number): WorldChange {
  return ['delete', { id: BigInt(id), name: null }]
}

/** `1 a`, one for each row, sorted. */
export function byId(rows: readonly Row[]): readonly string[] {
  return rows
    .map((row) => `${(row['id'] as bigint).toString()} ${(row['name'] as string | null) ?? 'null'}`)
    .sort()
}

export function committed(result: CommitResult): void {
  equal(result.kind, 'committed', 'error' in result ? String(result.error) : '')
}

/** Not in the lake, for this reason, and proven to be so. */
export function refused(result: CommitResult, code: string, says: RegExp): void {
  ok(result.kind === 'rejected', result.kind)
  equal(result.error.code, code)
  match(result.error.message, says)
  equal(result.error.effect, 'none')
}

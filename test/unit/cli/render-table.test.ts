import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnsThatFit, renderBox, type TableColumn } from '../../../src/cli/render-table.ts'
import { styleOf, unicodeMarks } from '../../../src/cli/style.ts'

const columns: readonly TableColumn[] = [
  { title: 'id', kind: 'number' },
  { title: '__bucket', kind: 'number' },
  { title: '__offset', kind: 'number' },
  { title: 'note', kind: 'text' },
  { title: '__timestamp', kind: 'text' },
]
const rows = [['1', '0', '17', 'a note that says little', '2026-11-30T14:02:00Z']]

// The widths of the cells; a column takes 3 more, and the last line 1.
const whole = 2 + 8 + 8 + 23 + 20 + 3 * 5 + 1

test('a terminal that is too narrow shows fewer columns of the system, then cuts text', () => {
  const at = (width: number): readonly number[] => columnsThatFit(columns, rows, width)
  assert.deepEqual(at(whole), [0, 1, 2, 3, 4])
  assert.deepEqual(at(whole - 1), [0, 1, 2, 3])
  assert.deepEqual(at(whole - 23 - 1), [0, 1, 3])
  assert.deepEqual(at(whole - 23 - 11 - 1), [0, 3])
  assert.deepEqual(at(20), [0, 3])
  const view = { marks: unicodeMarks, style: styleOf('plain'), width: 20 }
  const pick = <T>(all: readonly T[]): readonly T[] => [0, 3].flatMap((index) => all[index] ?? [])
  assert.equal(
    renderBox(pick(columns), rows.map(pick), view).split('\n')[3],
    '│  1 │ a note tha… │',
  )
})

test('columns of the system that are all there is stay', () => {
  assert.deepEqual(columnsThatFit(columns.slice(1, 3), [['0', '17']], 10), [0, 1])
})

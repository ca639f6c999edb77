import type { DataType, Field } from 'apache-arrow'
import { type Column, isNull } from '../core/columns/column.ts'
import { LeafTally } from './leaf-tally.ts'

/** A leaf column of a file: its id, and its path as a person would write it. */
export type Tallies = Map<number, LeafTally>

/** Adds the values of a top-level column, and of all below it, to the tallies of their leaves. */
export function tally(tallies: Tallies, field: Field, column: Column): void {
  walk(tallies, field, column, { name: field.name, rows: undefined, ended: 0, isRepeated: false })
}

type Way = {
  readonly name: string
  readonly rows: Int32Array | undefined
  readonly ended: number
  readonly isRepeated: boolean
}

function walk(tallies: Tallies, field: Field, column: Column, way: Way): void {
  switch (column.layout) {
    case 'struct': {
      const next = presentRows(column, way)
      for (const [at, child] of column.fields.entries()) {
        const below = childAt(field, at)
        if (below === undefined) continue
        walk(tallies, below, child, { ...way, ...next, name: `${way.name}.${below.name}` })
      }
      return
    }
    case 'list': {
      const below = childAt(field, 0)
      if (below === undefined) return
      const next = elementRows(column, way)
      walk(tallies, below, column.element, { ...next, name: `${way.name}.element` })
      return
    }
    case 'map': {
      const entry = childAt(field, 0)
      const next = elementRows(column, way)
      const parts = [
        { name: 'key', child: column.key },
        { name: 'value', child: column.value },
      ]
      for (const [at, { name, child }] of parts.entries()) {
        const below = entry === undefined ? undefined : childAt(entry, at)
        if (below === undefined) continue
        walk(tallies, below, child, { ...next, name: `${way.name}.${name}` })
      }
      return
    }
    default: {
      const id = fieldIdOf(field)
      if (id === undefined) return
      const known = tallies.get(id) ?? new LeafTally(way.name, way.isRepeated)
      tallies.set(id, known)
      known.add(column, way.rows, way.ended)
    }
  }
}

/** The id that a Parquet field carries; undefined in files of writers without ids. */
export function fieldIdOf(field: Field): number | undefined {
  const text = field.metadata.get('PARQUET:field_id')
  return text === undefined || !/^\d{1,10}$/.test(text) ? undefined : Number.parseInt(text, 10)
}

/** Elements of a struct that are not null. */
function presentRows(column: Column, way: Way): Pick<Way, 'rows' | 'ended'> {
  if (column.nullCount === 0) return way
  const rows = way.rows ?? Int32Array.from({ length: column.length }, (_, row) => row)
  const present = rows.filter((row) => !isNull(column, row))
  return { rows: present, ended: way.ended + rows.length - present.length }
}

/** Elements of all lists; a list that is null or empty is one entry that ends here. */
function elementRows(
  column: Column & { readonly layout: 'list' | 'map' },
  way: Way,
): Omit<Way, 'name'> {
  const rows = way.rows ?? Int32Array.from({ length: column.length }, (_, row) => row)
  const elements: number[] = []
  let { ended } = way
  for (const row of rows) {
    const from = column.offsets[row] ?? 0
    const to = isNull(column, row) ? from : (column.offsets[row + 1] ?? 0)
    if (from === to) ended += 1
    for (let at = from; at < to; at += 1) elements.push(at)
  }
  return { rows: Int32Array.from(elements), ended, isRepeated: true }
}

function childAt(field: Field, at: number): Field | undefined {
  // Its type is a parameter of the field, which Arrow leaves open.
  const type: DataType = field.type as DataType
  const children: readonly Field[] | undefined = type.children
  return children[at]
}

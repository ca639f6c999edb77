import { SluiceError } from '../errors.ts'
import { checkSchema } from './check-schema.ts'
import type { Observed, Sighting } from './observe.ts'
import type { DataType, Field } from './types.ts'

/** A ROW of more fields is data used as names. */
const rowFieldsMax = 200

export type Inferred = {
  readonly fields: readonly Field[]
  /** For people: what was left out, or stays a string, and why. */
  readonly notes: readonly string[]
}

/** How values were written: a CSV field has no class of its own, so every text is allowed. */
export type ObservedForm = 'json' | 'csv'

/**
 * The columns of a new table from what was seen of its first records (docs/inputs.md): in order of
 * first appearance, nullable except for the primary key.
 * @param input Begins messages: `flights.ndjson`.
 * @throws SluiceError SCHEMA_UNSUPPORTED for columns with values of two classes, naming both lines
 */
export function inferFields(
  root: Observed,
  options: {
    readonly input: string
    readonly form: ObservedForm
    readonly primaryKey?: readonly string[]
  },
): Inferred {
  const notes: string[] = []
  const context: Context = { input: options.input, form: options.form, notes }
  const fields = [...root.fields].flatMap(([name, observed]): Field[] => {
    const type = typeOf(observed, name, context)
    if (type === undefined) return []
    const isKey = options.primaryKey?.includes(name) === true
    return [{ name, type: isKey ? { ...type, nullable: false } : type }]
  })
  if (fields.length === 0) {
    throw new SluiceError('SCHEMA_UNSUPPORTED', `${options.input}: no column can be told from it`, {
      fix: 'declare the columns with --schema',
    })
  }
  checkSchema(fields, options.input)
  return { fields, notes }
}

type Context = { readonly input: string; readonly form: ObservedForm; readonly notes: string[] }

function typeOf(observed: Observed, path: string, context: Context): DataType | undefined {
  if (context.form === 'csv') return csvType(observed, path, context)
  const { object, array, string, boolean } = observed
  const number = observed.integer ?? observed.fraction
  const classes = [
    ...(number === undefined ? [] : [['a number', number] as const]),
    ...(string === undefined ? [] : [['a string', string] as const]),
    ...(boolean === undefined ? [] : [['a boolean', boolean] as const]),
    ...(object === undefined ? [] : [['an object', object] as const]),
    ...(array === undefined ? [] : [['an array', array] as const]),
  ].sort(([, left], [, right]) => left.line - right.line)
  const [first, second] = classes
  if (first !== undefined && second !== undefined) {
    const places = `${first[0]} in line ${first[1].line} and ${second[0]} in line ${second[1].line}`
    throw refused(context, path, `is ${places}`, 'STRING')
  }
  if (object !== undefined) return rowType(observed, path, context)
  if (array !== undefined) return arrayType(observed, path, context)
  if (boolean !== undefined) return { kind: 'boolean', nullable: true }
  if (number !== undefined) return numberType(observed, path, context)
  if (string !== undefined) return stringType(observed, path, context)
  context.notes.push(`${path} is left out: only null in the sample; declare a type with --schema`)
  return undefined
}

function numberType(observed: Observed, path: string, context: Context): DataType {
  const { fraction, inexact, large } = observed
  if (large !== undefined) {
    throw refused(
      context,
      path,
      `is ${large.text} in line ${large.line}, beyond BIGINT`,
      'DECIMAL(38, 0)',
    )
  }
  if (fraction === undefined) return { kind: 'bigint', nullable: true }
  if (inexact === undefined) return { kind: 'double', nullable: true }
  const [one, two] = inOrder(inexact, fraction)
  const places = `is ${one.text} in line ${one.line} and ${two.text} in line ${two.line}; neither BIGINT nor DOUBLE holds both exactly`
  throw refused(context, path, places, 'DECIMAL(38, 6)')
}

function stringType(observed: Observed, path: string, context: Context): DataType {
  const { count, dates, zoned, local, nearly, other } = observed.strings
  if (dates === count) return { kind: 'date', nullable: true }
  if (zoned === count) return { kind: 'timestamp_ltz', precision: 6, nullable: true }
  if (local === count) return { kind: 'timestamp', precision: 6, nullable: true }
  if (dates + zoned + local + nearly > count / 2) {
    context.notes.push(
      `${path} stays STRING: ${whyString(observed, other)}; declare a type with --schema`,
    )
  }
  return { kind: 'string', nullable: true }
}

function whyString(observed: Observed, other: Sighting | undefined): string {
  const { dates, zoned, local } = observed.strings
  if (other !== undefined) {
    const iso = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d{7,}/.test(other.text)
    const shown = JSON.stringify(other.text.slice(0, 80))
    return iso ? `${shown} has more than 6 fraction digits` : `${shown} is not ISO 8601`
  }
  if (zoned > 0 && local > 0) return 'some values have a zone and some have none'
  return dates > 0 ? 'some values are dates and some have a time' : 'its values differ in form'
}

function rowType(observed: Observed, path: string, context: Context): DataType | undefined {
  if (observed.fields.size > rowFieldsMax) {
    const count = observed.fields.size.toLocaleString('en-US')
    throw refused(context, path, `has ${count} different fields`, 'MAP<STRING, …>')
  }
  const seen = new Map<string, string>()
  const fields = [...observed.fields].flatMap(([name, part]): Field[] => {
    const other = seen.get(name.toLowerCase())
    if (other !== undefined) {
      throw refused(
        context,
        path,
        `has fields "${other}" and "${name}", which differ only by case`,
        'MAP<STRING, …>',
      )
    }
    seen.set(name.toLowerCase(), name)
    const type = typeOf(part, `${path}.${name}`, context)
    return type === undefined ? [] : [{ name, type }]
  })
  if (fields.length > 0) return { kind: 'row', fields, nullable: true }
  if (observed.fields.size === 0) {
    context.notes.push(`${path} is left out: only {} in the sample; declare a type with --schema`)
  }
  return undefined
}

function arrayType(observed: Observed, path: string, context: Context): DataType | undefined {
  if (observed.element === undefined) {
    context.notes.push(`${path} is left out: only [] in the sample; declare a type with --schema`)
    return undefined
  }
  const element = typeOf(observed.element, `${path}[]`, context)
  return element === undefined ? undefined : { kind: 'array', element, nullable: true }
}

/** The first type that fits every text of the column. */
function csvType(observed: Observed, path: string, context: Context): DataType | undefined {
  const { boolean, integer, fraction, string, inexact, large } = observed
  const numbers = integer !== undefined || fraction !== undefined
  if (string === undefined && !numbers && boolean !== undefined) {
    return { kind: 'boolean', nullable: true }
  }
  if (string === undefined && numbers && boolean === undefined) {
    if (fraction === undefined && large === undefined) return { kind: 'bigint', nullable: true }
    if (inexact === undefined) return { kind: 'double', nullable: true }
    const { text } = large ?? inexact
    const held = large === undefined ? 'DOUBLE would not hold it' : 'BIGINT does not hold it'
    context.notes.push(
      `${path} stays STRING: ${text} is a number that ${held}; declare a type with --schema`,
    )
    return { kind: 'string', nullable: true }
  }
  if (string !== undefined) {
    return numbers || boolean !== undefined
      ? { kind: 'string', nullable: true }
      : stringType(observed, path, context)
  }
  if (numbers || boolean !== undefined) return { kind: 'string', nullable: true }
  context.notes.push(`${path} is left out: only null in the sample; declare a type with --schema`)
  return undefined
}

function inOrder(left: Sighting, right: Sighting): readonly [Sighting, Sighting] {
  return left.line <= right.line ? [left, right] : [right, left]
}

function refused(context: Context, path: string, what: string, type: string): SluiceError {
  const column = path.split(/[.[]/)[0] ?? path
  const fix =
    column === path
      ? `declare it with --schema, for example {"name": ${JSON.stringify(path)}, "type": "${type}"}`
      : `declare column ${column} with --schema, with ${type} for this part`
  return new SluiceError('SCHEMA_UNSUPPORTED', `${context.input}: column ${path} ${what}`, {
    fix,
    details: { input: context.input, column: path },
  })
}

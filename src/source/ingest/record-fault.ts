/** What is wrong with one record. Becomes a `BadRecord`, or the error that ends the run. */
export class RecordFault extends Error {
  override readonly name = 'RecordFault'
  /** Index in the buffer being parsed of the value to point at. */
  readonly at: number
  readonly kind: 'value' | 'unknown-field'
  /** What helps, where it is another thing than to correct the record. */
  readonly fix: string | undefined

  constructor(at: number, reason: string, kind: 'value' | 'unknown-field' = 'value', fix?: string) {
    super(reason)
    this.at = at
    this.kind = kind
    this.fix = fix
  }
}

/** A value for a message: at most 80 characters, control and bidirectional characters escaped. */
export function shown(text: string): string {
  const points = Array.from(text)
  const cut = points.length > 80 ? `${points.slice(0, 79).join('')}…` : text
  return cut.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    const hex = code.toString(16)
    return code < 256 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`
  })
}

const stumbles = new Set(['TypeError', 'RangeError', 'ReferenceError', 'RuntimeError'])

/** What a decoder says is wrong with its bytes; not what it stumbled over in its own code. */
export function decoderReason(error: unknown): string {
  if (error instanceof Error && stumbles.has(error.name)) return 'it cannot be decoded'
  const text = error instanceof Error ? error.message : String(error)
  return (text.split('\n')[0] ?? '').replace(/[.\s]+$/, '')
}

/**
 * What a record of a changelog does to its key. The codes are Fluss's, so that a batch of a real
 * cluster needs no mapping. An update is two records, the row before and the row after it.
 */
export const changeType = {
  append: 0,
  insert: 1,
  updateBefore: 2,
  updateAfter: 3,
  delete: 4,
} as const

export type ChangeType = (typeof changeType)[keyof typeof changeType]

/** As the field writes them: `+A`, `+I`, `-U`, `+U`, `-D`. */
export const changeSymbols: readonly string[] = ['+A', '+I', '-U', '+U', '-D']

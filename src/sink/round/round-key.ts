import type { Assignment } from '../ports.ts'

/** Names a round in whatever is said about it: table, incarnation and epoch (I-20). */
export type RoundKey = `${bigint}/${number}.${number}`

export function roundKey(token: Pick<Assignment, 'table' | 'incarnation' | 'epoch'>): RoundKey {
  return `${token.table}/${token.incarnation}.${token.epoch}`
}

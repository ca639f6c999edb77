export type * from '../library/tier/tier-types.ts'

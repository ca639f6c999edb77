import { type CommitId, commitId, type Epoch, epoch } from '../../core/ids.ts'
import { type Incarnation, incarnation } from '../../core/ids.ts'

/** Who may write a table, compared from left to right. A round's token never changes. */
export type Token = {
  readonly generation: number
  readonly incarnation: Incarnation
  readonly epoch: Epoch
}

/** The highest token ever written, and the commit that wrote it. */
export type TokenClaim = { readonly token: Token; readonly commit: CommitId }

export function compareTokens(a: Token, b: Token): number {
  return a.generation - b.generation || a.incarnation - b.incarnation || a.epoch - b.epoch
}

/** As people see it: `incarnation.epoch`, with the generation in front only where there is one. */
export function showToken(token: Token): string {
  const short = `${String(token.incarnation)}.${String(token.epoch)}`
  return token.generation === 0 ? short : `${String(token.generation)}.${short}`
}

export function decodeToken(value: unknown): Token | undefined {
  if (!Array.isArray(value) || value.length !== 3) return undefined
  const [first, second, third] = value as readonly unknown[]
  if (!isWhole(first) || !isWhole(second) || !isWhole(third)) return undefined
  return { generation: first, incarnation: incarnation(second), epoch: epoch(third) }
}

/** Text of the table property `sluice.token`. */
export function encodeClaim(claim: TokenClaim): string {
  const { generation, incarnation: second, epoch: third } = claim.token
  return JSON.stringify({ token: [generation, second, third], commit: claim.commit })
}

/** @returns undefined when the text is not a claim, which its reader must treat as damage. */
export function decodeClaim(text: string): TokenClaim | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined
  if (!('token' in parsed) || !('commit' in parsed)) return undefined
  const token = decodeToken(parsed.token)
  if (token === undefined || typeof parsed.commit !== 'string') return undefined
  if (!/^[0-9a-f]{32}$/.test(parsed.commit)) return undefined
  return { token, commit: commitId(parsed.commit) }
}

function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

import { type ErrorCode, type ErrorOptions, isSluiceError, SluiceError } from '../core/errors.ts'

/** A command line or a configuration with a hundred faults is one mistake, not a hundred. */
export const problemsMax = 20

/** Collects what is wrong with a command line or a configuration, so that all is told at once. */
export type Problems = {
  readonly list: readonly SluiceError[]
  add(code: ErrorCode, message: string, options?: ErrorOptions): void
  /** Runs a reader and keeps its refusal. @returns undefined when it refused. */
  attempt<T>(read: () => T): T | undefined
  /** @throws the problems, if there are any. */
  settle(): void
}

export function problems(): Problems {
  const list: SluiceError[] = []
  return {
    list,
    add: (code, message, options) => {
      list.push(new SluiceError(code, message, options))
    },
    attempt: (read) => {
      try {
        return read()
      } catch (error) {
        if (!isSluiceError(error) || error.code === 'INVARIANT_BROKEN') throw error
        if (error instanceof ManyProblems) list.push(...error.problems)
        else list.push(error)
        return undefined
      }
    },
    settle: () => {
      const [first] = list
      if (first === undefined) return
      throw list.length === 1 ? first : new ManyProblems(first, list.slice(0, problemsMax))
    },
  }
}

/** Several problems at once; the first decides the code. */
export class ManyProblems extends SluiceError {
  readonly problems: readonly SluiceError[]

  constructor(first: SluiceError, all: readonly SluiceError[]) {
    super(first.code, all.map((problem) => problem.message).join('; '), {
      details: {
        problems: all.map(({ code, message, fix }) => ({ code, message, fix: fix ?? null })),
      },
    })
    this.problems = all
  }
}

import { describe, test } from 'node:test'
import type { ModelOptions } from './protocol-model.ts'
import { fails, holder, holds, nightly, unfenced } from './scope.ts'

/*
 * The same judge, reading and changes over catalogs that guard the head of a branch and no property, as
 * REST catalogs do. There a take-over writes a snapshot without rows.
 */

const [first, second, third] = [holder('a', 1, 10), holder('b', 2, 12), holder('c', 3, 15)]
const two = [first, second]
/** The first has committed or not, the second is in doubt, the third takes over. */
const three = [unfenced(first), unfenced(second), third]

const branch = { catalog: 'branch', fence: 'snapshot' } as const
const reference = { catalog: 'branch+sequence', fence: 'snapshot' } as const
/** Servers may take an old request again once a rollback has brought its base back. */
const careful = { ...branch, doubtStays: true } as const

describe('the commit protocol holds on a branch in every interleaving', () => {
  const groups: Readonly<Record<string, ModelOptions>> = {
    'of two holders with a fence': { ...branch, holders: two, attemptsMax: 2 },
    'of two holders without a fence: rows do not depend on it': {
      ...branch,
      holders: two.map(unfenced),
      attemptsMax: 2,
    },
    'of two holders whose fence is a property, as far as rows go': {
      ...{ catalog: 'branch', fence: 'property', ownership: false },
      holders: two,
      attemptsMax: 2,
    },
    'of three holders with one attempt each': {
      ...branch,
      holders: [first, second, third].map(unfenced),
      attemptsMax: 1,
    },
    'of two holders, a foreign append and an expiry': {
      ...careful,
      holders: two,
      attemptsMax: 1,
      people: [1, 0, 1],
    },
    'of three holders and a rollback, on a server that checks sequence numbers': {
      ...reference,
      holders: three,
      attemptsMax: 1,
      people: [0, 1, 0],
    },
    'of three holders and a rollback, on one that does not: rows, and files that are not deleted': {
      ...careful,
      ownership: false,
      holders: three,
      attemptsMax: 1,
      people: [0, 1, 0],
    },
    'of two holders on a server that drops marked snapshots, none of which is ours': {
      ...{ catalog: 'rewinding', fence: 'snapshot' },
      holders: two,
      attemptsMax: 2,
    },
  }
  for (const [name, options] of Object.entries(groups)) {
    test(name, () => {
      holds(options)
    })
  }
  test('of three holders that fence', nightly, () => {
    holds({ ...branch, holders: [first, second, third], attemptsMax: 1 })
  })
  test('of two holders with two attempts and a foreign append', nightly, () => {
    holds({ ...branch, holders: two, attemptsMax: 2, people: [1, 0, 0] })
  })
  test('of two holders with two attempts, a foreign append and an expiry', nightly, () => {
    holds({ ...careful, holders: two, attemptsMax: 2, people: [1, 0, 1] })
  })
  test('of two holders with two attempts and a rollback', nightly, () => {
    holds({ ...reference, holders: two, attemptsMax: 2, people: [0, 1, 0] })
  })
})

describe('on a branch a mutant of the protocol fails, in so many steps', () => {
  test('M5 the fence is a property', () => {
    const options = { catalog: 'branch', fence: 'property', holders: two, attemptsMax: 2 } as const
    fails(options, 6, /had the table/)
  })
  test('M6 the fence bears a mark by which servers drop it', () => {
    const options = { catalog: 'rewinding', fence: 'marked', holders: two, attemptsMax: 2 } as const
    fails(options, 6, /had the table/)
  })
  test('M13 an attempt is dead once another has come, whatever the server takes later', () => {
    const options = { ...branch, ownership: false, holders: three, attemptsMax: 1 } as const
    fails({ ...options, people: [0, 1, 0] }, 11, /may land/)
  })
  test('a rollback below the fence gives the table back for one request', () => {
    const options = { ...careful, holders: three, attemptsMax: 1 } as const
    fails({ ...options, people: [0, 1, 0] }, 10, /had the table/)
  })
  test('a server that puts requests on whatever is newest is not one to write to', () => {
    const options = { ...branch, catalog: 'rebasing', holders: two, attemptsMax: 2 } as const
    fails(options, 6, /another table/)
  })
})

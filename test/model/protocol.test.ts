import { describe, test } from 'node:test'
import * as mutants from './mutants.ts'
import type { ModelOptions } from './protocol-model.ts'
import { fails, holder, holds, nightly, unfenced } from './scope.ts'

const [first, second, third] = [holder('a', 1, 10), holder('b', 2, 12), holder('c', 3, 15)]
const two = [first, second]
const twoUnfenced = two.map(unfenced)
/** Two starts that read the same highest number, and fill different buckets. */
const sameNumber = [unfenced(first), { ...unfenced(second), incarnation: 1, epoch: 2, bucket: 1 }]

describe('the commit protocol holds in every interleaving', () => {
  test('of two holders with a fence', () => {
    holds({ holders: two, attemptsMax: 2 })
  })
  test('of two holders without a fence: rows do not depend on it', () => {
    holds({ holders: twoUnfenced, attemptsMax: 2 })
  })
  test('of two holders when answers lie and reads fail', () => {
    holds({ holders: two, attemptsMax: 2, lies: true })
  })
  test('of two holders, a rollback and an expiry', () => {
    holds({ holders: twoUnfenced, attemptsMax: 1, people: [0, 1, 1] })
  })
  test('of two holders, a foreign append and an expiry', () => {
    holds({ holders: twoUnfenced, attemptsMax: 1, people: [1, 0, 1] })
  })
  test('of two holders of one number on different buckets', () => {
    holds({ holders: sameNumber, attemptsMax: 2 })
  })
  test('of three holders with one attempt each', () => {
    holds({ holders: [first, second, third].map(unfenced), attemptsMax: 1 })
  })
  test('of two holders with three attempts', nightly, () => {
    holds({ holders: two, attemptsMax: 3, lies: true })
  })
  test('of three holders that fence', nightly, () => {
    holds({ holders: [first, second, third], attemptsMax: 1 })
  })
  test('of three holders with two attempts', nightly, () => {
    holds({ holders: [first, second, third].map(unfenced), attemptsMax: 2 })
  })
  test('of two holders and all that people do', nightly, () => {
    holds({ holders: two, attemptsMax: 2, people: [1, 1, 1], lies: true })
  })
  test('of two holders and two rollbacks', nightly, () => {
    holds({ holders: two, attemptsMax: 2, people: [0, 2, 0] })
  })
})

describe('a mutant of the protocol fails, in so many steps', () => {
  const on = (options: Omit<ModelOptions, 'mutation'>, mutation: ModelOptions['mutation']) =>
    mutation === undefined ? options : { ...options, mutation }

  test('M1 no continuity, without a fence', () => {
    fails(on({ holders: twoUnfenced, attemptsMax: 2 }, mutants.noContinuity), 8, /twice/)
  })
  test('M2 no own id', () => {
    fails(on({ holders: two, attemptsMax: 2 }, mutants.noOwnId), 5, /own commit/)
  })
  test('M3 the token is asked before the id', () => {
    fails(on({ holders: twoUnfenced, attemptsMax: 2 }, mutants.tokenBeforeId), 8, /own commit/)
  })
  test('M4 doubt is forgotten', () => {
    fails(on({ holders: two, attemptsMax: 1 }, { doubtForgotten: true }), 4, /may land/)
  })
  test('M7 ends are read from properties', () => {
    const options = { holders: [first, second, third].map(unfenced), attemptsMax: 1 }
    fails(on({ ...options, people: [0, 1, 0] }, mutants.endsFromProperties), 10, /skipped/)
  })
  test('M8 the newest own snapshot of the list', () => {
    const options = { holders: [first, second, third].map(unfenced), attemptsMax: 1 }
    fails(on({ ...options, people: [0, 1, 0] }, mutants.newestListed), 10, /skipped/)
  })
  test('M11 absent is 0', () => {
    const options = { holders: twoUnfenced, attemptsMax: 1, people: [1, 0, 1] } as const
    fails(on(options, mutants.absentIsZero), 8, /twice/)
  })
  test('M12 the token is read from the lineage only', () => {
    fails(on({ holders: two, attemptsMax: 2 }, mutants.tokenFromLineage), 6, /had the table/)
  })
  test('M14 the list is not asked', () => {
    const options = { holders: twoUnfenced, attemptsMax: 2, people: [0, 1, 0] } as const
    fails(on(options, mutants.listNotAsked), 10, /landed twice/)
  })
  test('M24 a taken number is not read back', () => {
    fails(on({ holders: two, attemptsMax: 2, lies: true }, { rejectionIsFinal: true }), 3, /own/)
  })
  test('M33 the id is derived from the token', () => {
    const same = [unfenced(first), { ...unfenced(second), incarnation: 1, commit: 'a' }]
    fails(on({ holders: same, attemptsMax: 2 }, {}), 5, /not there/)
  })
  test('fluss 2648: checked once, then committed', () => {
    fails(on({ holders: twoUnfenced, attemptsMax: 2 }, { judgedOnce: true }), 6, /twice|landed/)
  })
  test('a rejection is believed although nothing could be read after it', () => {
    fails(on({ holders: two, attemptsMax: 2, lies: true }, { rejectionBelieved: true }), 4, /own/)
  })
  test('a round may follow any commit that fits its own buckets', () => {
    fails(on({ holders: sameNumber, attemptsMax: 2 }, mutants.followsNotAsked), 8, /positions/)
  })
})

import { SluiceError } from '../../core/errors.ts'
import type { IdSource } from '../../core/ports.ts'
import type { CreateOutcome, ObjectStore } from './object-store.ts'

/** What a store can fail of; goes into `details.check` of the error. */
export type ProbeCheck = 'second-create' | 'race' | 'winner' | 'list'

/**
 * Finds out by trying whether a store gives a name to one writer only: a later writer must be
 * refused, of writers that come at once exactly one must win, with its bytes, and the list must show
 * them. Two creates in a row do not tell: some stores look first and write then.
 * @param warehouse Location without a last slash; what is written below it is removed again.
 * @throws SluiceError STORE_UNSAFE, STORE_UNAVAILABLE when the store gives no clear answers
 */
export async function probeConditionalWrites(
  store: ObjectStore,
  warehouse: string,
  ids: IdSource,
): Promise<void> {
  const folder = `${warehouse}/_sluice/probe/${ids.bits128()}`
  const written: string[] = []
  const place = (): string => {
    const location = `${folder}/${written.length}`
    written.push(location)
    return location
  }
  try {
    await checkSecondCreate(store, warehouse, place())
    for (let round = 0, unclear = 0; round < rounds; ) {
      if (await checkRace(store, warehouse, place())) {
        round += 1
      } else if ((unclear += 1) > unclearMax) {
        throw noClearAnswer(warehouse)
      }
    }
    await checkList(store, warehouse, folder, written)
  } finally {
    // What cannot be removed now is small, and the sweeper knows the folder.
    await Promise.all(written.map((location) => store.remove(location).catch(() => undefined)))
  }
}

async function checkSecondCreate(
  store: ObjectStore,
  warehouse: string,
  location: string,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await create(store, location, 'first')
    if (isTaken(outcome)) break
    if (attempt === unclearMax) throw noClearAnswer(warehouse)
  }
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await create(store, location, 'second')
    if (outcome.kind === 'rejected' && outcome.reason === 'exists') break
    if (outcome.kind === 'applied') {
      throw unsafe(
        'second-create',
        warehouse,
        'a key that was there was created again; this store ignores conditional writes',
      )
    }
    if (attempt === unclearMax) throw noClearAnswer(warehouse)
  }
  await checkBody(store, warehouse, location, 'first')
}

/** @returns false when lost replies leave it open who won. */
async function checkRace(
  store: ObjectStore,
  warehouse: string,
  location: string,
): Promise<boolean> {
  const names = Array.from({ length: racers }, (_, racer) => `racer ${racer}`)
  const outcomes = await Promise.all(names.map((name) => create(store, location, name)))
  const winners = names.filter((_, racer) => outcomes[racer]?.kind === 'applied')
  if (winners.length > 1) {
    throw unsafe(
      'race',
      warehouse,
      `${winners.length} of ${racers} writers created the same key at once; ` +
        'this store does not make conditional writes atomic',
    )
  }
  const [winner] = winners
  if (winner === undefined || outcomes.some(({ kind }) => kind === 'unknown')) return false
  await checkBody(store, warehouse, location, winner)
  return true
}

async function checkBody(
  store: ObjectStore,
  warehouse: string,
  location: string,
  expected: string,
): Promise<void> {
  const body = await store.read(location)
  if (body !== undefined && Buffer.from(body).toString() === expected) return
  const what = body === undefined ? 'no object' : 'what another writer sent'
  throw unsafe('winner', warehouse, `the writer that won a key found ${what} under it`)
}

async function checkList(
  store: ObjectStore,
  warehouse: string,
  folder: string,
  written: readonly string[],
): Promise<void> {
  const listed = new Set((await store.list(`${folder}/`)).map(({ location }) => location))
  const hidden = written.filter((location) => !listed.has(location)).length
  if (hidden === 0) return
  throw unsafe(
    'list',
    warehouse,
    `${hidden} of ${written.length} keys were missing in a list taken after they were created`,
  )
}

function create(store: ObjectStore, location: string, text: string): Promise<CreateOutcome> {
  return store.createIfAbsent(location, Buffer.from(text), { makeFolders: true })
}

function isTaken(outcome: CreateOutcome): boolean {
  return outcome.kind === 'applied' || (outcome.kind === 'rejected' && outcome.reason === 'exists')
}

function unsafe(check: ProbeCheck, warehouse: string, what: string): SluiceError {
  return new SluiceError('STORE_UNSAFE', `${shown(warehouse)}: ${what}`, {
    details: { check, warehouse },
    fix: 'use a REST catalog, or a store that passes sluice doctor',
    state: 'nothing was written but the probe, which is removed again',
  })
}

function noClearAnswer(warehouse: string): SluiceError {
  return new SluiceError(
    'STORE_UNAVAILABLE',
    `${shown(warehouse)}: the store gave no clear answers to the probe of its conditional writes`,
    { details: { warehouse }, effect: 'none' },
  )
}

/** The bucket is what fails, not the prefix; a local folder is named whole. */
function shown(warehouse: string): string {
  return /^s3:\/\/[^/]*/.exec(warehouse)?.[0] ?? warehouse
}

const racers = 4
const rounds = 2
const unclearMax = 3

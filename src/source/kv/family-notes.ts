import type { Journal } from '../../core/ports.ts'
import { formatBytes, formatCount, quoteValue } from '../../core/text.ts'
import { optionNames, type ResolvedOptions, writeBufferCeiling } from './family-options.ts'

/** From here on families cost more than they are worth. 5 to 20 are usual. */
const manyFamilies = 1_000
/** So many made after the store was opened are made for something that grows. */
const manyLate = 100
const newestShown = 5

/** What a store tells people about its families, each thing once. */
export class FamilyNotes {
  readonly #journal: Journal
  readonly #folder: string
  readonly #said: Set<string>
  #saidMany = false
  #saidLate = false
  readonly #known = new Set<string>()
  #late: string[] = []

  /** @param said What any store of the process said of options, which all of them share. */
  constructor(journal: Journal, folder: string, said: Set<string>) {
    this.#journal = journal
    this.#folder = folder
    this.#said = said
  }

  /** @param names All families but `default`, oldest first. */
  counted(names: readonly string[]): void {
    for (const name of names) this.#known.add(name)
    if (this.#saidMany || names.length < manyFamilies) return
    this.#saidMany = true
    this.#warn(
      'kv.families.many',
      `has ${formatCount(names.length)} column families; 5 to 20 are usual. ` +
        `Newest: ${names.slice(-newestShown).join(', ')}. ${advice}`,
      { families: names.length },
    )
  }

  /** Says that a family was made although the store was open. One that was dropped is no new one. */
  madeLate(name: string): void {
    if (this.#saidLate || this.#known.has(name)) return
    this.#late.push(name)
    if (this.#late.length < manyLate) return
    this.#saidLate = true
    const prefix = commonPrefix(this.#late)
    const called = prefix === '' ? '' : `, all called ${prefix}…`
    this.#warn(
      'kv.families.dynamic',
      `got ${formatCount(this.#late.length)} column families since it was opened${called}. ${advice}`,
      { families: this.#late.length, prefix },
    )
    this.#late = []
  }

  /** Options that were chosen and that the engine cannot apply. */
  notApplied(family: string, engine: string, { effective, chosen }: ResolvedOptions): void {
    const names = optionNames.filter((name) => chosen.has(name))
    for (const name of names.filter((each) => effective[each] === 'not supported')) {
      if (this.#isSaid(`${name} of ${family}`)) continue
      this.#warn(
        'kv.options.not-supported',
        `column family ${quoteValue(family)}: ${name} is not supported by the ${engine} engine`,
        { family, option: name, engine },
      )
    }
  }

  /** What write buffers may come to, where somebody chose their sizes. */
  ceiling(families: readonly ResolvedOptions[], memoryBytes: number): void {
    const isChosen = families.some(
      ({ chosen }) => chosen.has('writeBufferSize') || chosen.has('maxWriteBufferNumber'),
    )
    const bytes = writeBufferCeiling(families.map(({ options }) => options))
    if (!isChosen || bytes <= memoryBytes || this.#isSaid('ceiling')) return
    this.#warn(
      'kv.write-buffers.ceiling',
      `its write buffers may come to ${formatCount(bytes)} B together, and its memory is ` +
        `${formatCount(memoryBytes)} B: families will be flushed before their buffers are full`,
      { ceilingBytes: bytes, memoryBytes },
    )
  }

  /** A buffer takes memory in steps of an eighth; a limit below one step is passed at once. */
  smallLimit(families: readonly ResolvedOptions[], limitBytes: number): void {
    const largest = Math.max(...families.map(({ options }) => options.writeBufferSize))
    if ((limitBytes * 7) / 8 >= largest / 8 || this.#isSaid('small limit')) return
    this.#warn(
      'kv.write-buffers.small',
      `the limit of its write buffers, ${formatBytes(limitBytes)}, is too small for buffers of ` +
        `${formatBytes(largest)}: it would flush without end. Raise kv.memory.size to ` +
        `${formatBytes(Math.ceil((largest / 7) * 2))} for each store, or make writeBufferSize smaller`,
      { limitBytes, writeBufferSize: largest },
    )
  }

  #isSaid(what: string): boolean {
    if (this.#said.has(what)) return true
    this.#said.add(what)
    return false
  }

  #warn(event: string, message: string, fields: Record<string, string | number>): void {
    this.#journal.note({
      level: 'warn',
      event,
      message: `KV store ${this.#folder}: ${message}`,
      fields: { folder: this.#folder, ...fields },
    })
  }
}

const advice = 'A state made for each user or key is better kept in one family, under longer keys.'

function commonPrefix(names: readonly string[]): string {
  let prefix = names[0] ?? ''
  for (const name of names) while (!name.startsWith(prefix)) prefix = prefix.slice(0, -1)
  return prefix
}

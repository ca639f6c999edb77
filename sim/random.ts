import type { Chance } from '../src/core/ports.ts'

/** Numbers that are the same for the same seed on every platform and version (splitmix32). */
export class Random implements Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A whole number in `[0, 2^32)`. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    return scramble(this.#state)
  }

  /** A number in `[0, 1)`. */
  fraction(): number {
    return this.next() / 2 ** 32
  }

  below(bound: number): number {
    return Math.floor(this.fraction() * bound)
  }

  /** A whole number in `[from, to]`. */
  between(from: number, to: number): number {
    return from + this.below(to - from + 1)
  }

  isLucky(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }

  /** 128 bits as 32 hexadecimal digits. */
  bits128(): string {
    let text = ''
    for (let word = 0; word < 4; word += 1) text += this.next().toString(16).padStart(8, '0')
    return text
  }

  fork(): Random {
    return new Random(this.next())
  }
}

/** One number of a counted sequence, so that draw 7 is the same whether draw 6 was taken or not. */
export function drawAt(seed: number, count: number): number {
  return scramble(
    (Math.imul(seed ^ 0x5bd1e995, 0x9e3779b9) + Math.imul(count + 1, 0x85ebca6b)) >>> 0,
  )
}

function scramble(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return (mixed ^ (mixed >>> 15)) >>> 0
}

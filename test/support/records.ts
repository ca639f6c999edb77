import { appendFileSync } from 'node:fs'

/** Appends records with the ids `[from, to)` to an NDJSON file, about 300 bytes each. */
export function appendRecords(path: string, from: number, to: number): void {
  const lines = Array.from({ length: to - from }, (_, at) => {
    const id = from + at
    // Lengths vary, so that files and blocks end anywhere.
    return `{"id":${id},"name":"record ${id} ${'x'.repeat((id * 7_919) % 500)}","odd":${String(id % 2 === 1)}}\n`
  })
  appendFileSync(path, lines.join(''))
}

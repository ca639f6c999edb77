import type { ObjectStore } from '../catalog/store/object-store.ts'
import { damage } from './damage.ts'

/** An object of a store as a blob, so that a Parquet reader takes only the pieces it needs. */
export class StoreBlob extends Blob {
  override readonly size: number
  readonly #store: ObjectStore
  readonly #location: string
  readonly #start: number
  readonly #end: number

  constructor(store: ObjectStore, location: string, start: number, end: number) {
    super([])
    this.#store = store
    this.#location = location
    this.#start = start
    this.#end = end
    this.size = end - start
  }

  override slice(start = 0, end = this.size): Blob {
    const from = this.#start + Math.min(Math.max(0, start), this.size)
    const to = this.#start + Math.min(Math.max(0, end), this.size)
    return new StoreBlob(this.#store, this.#location, from, Math.max(from, to))
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = await this.#store.readRange(this.#location, this.#start, this.#end)
    if (bytes?.length !== this.size) throw damage('it became shorter while it was read')
    return Uint8Array.from(bytes).buffer
  }
}

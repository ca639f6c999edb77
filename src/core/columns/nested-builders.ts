import type { DataType } from '../schema/types.ts'
import type { ColumnBuilder } from './builder.ts'
import type { Column } from './column.ts'
import { Validity } from './validity-builder.ts'

abstract class OffsetsBuilder extends Validity {
  #offsets = new Int32Array(257)

  protected closeAt(end: number): void {
    this.#room()
    this.#offsets[this.length + 1] = end
    this.length += 1
  }

  protected nullAt(end: number): void {
    this.#room()
    this.#offsets[this.length + 1] = end
    this.markNull()
  }

  protected offsetAt(index: number): number {
    return this.#offsets[Math.min(index, this.length)] ?? 0
  }

  protected takeOffsets(): Int32Array {
    const offsets = this.#offsets.subarray(0, this.length + 1)
    this.#offsets = new Int32Array(Math.max(257, this.length + 1))
    return offsets
  }

  #room(): void {
    if (this.length + 1 < this.#offsets.length) return
    const grown = new Int32Array(this.#offsets.length * 2)
    grown.set(this.#offsets)
    this.#offsets = grown
  }
}

/** Append the elements to `element`, then `close` the list. */
export class ListBuilder extends OffsetsBuilder {
  readonly layout = 'list'
  readonly element: ColumnBuilder

  constructor(type: DataType, element: ColumnBuilder) {
    super(type)
    this.element = element
  }

  close(): void {
    this.closeAt(this.element.length)
  }

  appendNull(): void {
    this.nullAt(this.element.length)
  }

  truncate(length: number): void {
    this.element.truncate(this.offsetAt(length))
    this.cut(length)
  }

  finish(): Column {
    const element = this.element.finish()
    const offsets = this.takeOffsets()
    return { ...this.base(), layout: 'list', offsets, element }
  }
}

/** Append keys and values in pairs, then `close` the map. */
export class MapBuilder extends OffsetsBuilder {
  readonly layout = 'map'
  readonly key: ColumnBuilder
  readonly value: ColumnBuilder

  constructor(type: DataType, key: ColumnBuilder, value: ColumnBuilder) {
    super(type)
    this.key = key
    this.value = value
  }

  close(): void {
    this.closeAt(this.key.length)
  }

  appendNull(): void {
    this.nullAt(this.key.length)
  }

  truncate(length: number): void {
    const end = this.offsetAt(length)
    this.key.truncate(end)
    this.value.truncate(end)
    this.cut(length)
  }

  finish(): Column {
    const key = this.key.finish()
    const value = this.value.finish()
    const offsets = this.takeOffsets()
    return { ...this.base(), layout: 'map', offsets, key, value }
  }
}

/** Append one element to each field, then `close` the row. */
export class StructBuilder extends Validity {
  readonly layout = 'struct'
  readonly fields: readonly ColumnBuilder[]

  constructor(type: DataType, fields: readonly ColumnBuilder[]) {
    super(type)
    this.fields = fields
  }

  close(): void {
    this.length += 1
  }

  appendNull(): void {
    for (const field of this.fields) field.appendNull()
    this.markNull()
  }

  truncate(length: number): void {
    for (const field of this.fields) field.truncate(length)
    this.cut(length)
  }

  finish(): Column {
    const fields = this.fields.map((field) => field.finish())
    return { ...this.base(), layout: 'struct', fields }
  }
}

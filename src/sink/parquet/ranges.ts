import { BytesRange } from './bytes-range.ts'
import type { Leaf } from './file-schema.ts'
import { BitRange, FloatRange } from './float-range.ts'
import { Int128Range, Int32Range, Int64Range } from './integer-range.ts'
import type { Range } from './range.ts'

/** An empty range for the values of a leaf. */
export function rangeFor(leaf: Leaf): Range {
  switch (leaf.type.kind) {
    case 'boolean':
      return new BitRange()
    case 'float':
      return new FloatRange(4)
    case 'double':
      return new FloatRange(8)
    case 'decimal':
      return leaf.physical === 'int32'
        ? new Int32Range(4)
        : leaf.physical === 'int64'
          ? new Int64Range(4)
          : new Int128Range(leaf.fixedLength)
    default:
      return leaf.physical === 'int32'
        ? new Int32Range(1)
        : leaf.physical === 'int64'
          ? new Int64Range(2)
          : new BytesRange()
  }
}

import { SluiceError } from '../../core/errors.ts'
import type { IdField } from '../../core/schema/types.ts'
import { loadZstd } from './codec.ts'
import { columnarEncoder } from './columnar.ts'
import type { ParquetEncoder } from './encoder.ts'
import { parquetjsEncoder } from './parquetjs.ts'
import { wasmEncoder } from './wasm.ts'

export { loadZstd, type Zstd } from './codec.ts'

/** All encoders, the fastest first. */
const encoders: readonly ParquetEncoder[] = [
  columnarEncoder(loadZstd),
  wasmEncoder,
  parquetjsEncoder,
]

/**
 * The encoder of that name, or the fastest that can write these columns.
 *
 * @throws SluiceError SCHEMA_UNSUPPORTED when the encoder, or every encoder, refuses the columns
 */
export function chooseEncoder(
  name: ParquetEncoder['name'] | undefined,
  fields: readonly IdField[],
): ParquetEncoder {
  let refusal = 'there is no such encoder'
  for (const encoder of encoders) {
    if (name !== undefined && encoder.name !== name) continue
    const reason = encoder.refuses(fields)
    if (reason === undefined) return encoder
    refusal = reason
  }
  const which = name === undefined ? 'no encoder can' : `the encoder ${name} cannot`
  throw new SluiceError('SCHEMA_UNSUPPORTED', `${which} write these columns: ${refusal}`)
}

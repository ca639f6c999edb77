import { SluiceError } from '../../core/errors.ts'

/** Compresses pages. Synchronous, so that encoding a row group is one uninterrupted step. */
export type PageCodec = {
  readonly name: 'zstd' | 'none'
  /** May return `source` itself; the caller copies before `source` changes. */
  compress(source: Uint8Array): Uint8Array
}

/** One zstd implementation, ready to use. */
export type Zstd = {
  readonly implementation: 'node:zlib' | '@toondepauw/node-zstd' | '@bokuweb/zstd-wasm'
  compressor(level: number): (source: Uint8Array) => Uint8Array
}

/** Numbers of `CompressionCodec` in parquet.thrift. */
export const codecIds = { none: 0, zstd: 6 } as const

export const plainCodec: PageCodec = { name: 'none', compress: (source) => source }

export function zstdCodec(zstd: Zstd, level: number): PageCodec {
  return { name: 'zstd', compress: zstd.compressor(level) }
}

const attempts: Readonly<Record<Zstd['implementation'], () => Promise<Zstd | undefined>>> = {
  'node:zlib': fromNode,
  '@toondepauw/node-zstd': fromBinary,
  '@bokuweb/zstd-wasm': fromWasm,
}

let loaded: Promise<Zstd> | undefined

/** {@link findZstd}, looked for once in a process. */
export function loadZstd(): Promise<Zstd> {
  loaded ??= findZstd()
  return loaded
}

/**
 * The fastest zstd that works here: that of Node (from 22.15), then the one with a binary in its
 * package, then WebAssembly.
 *
 * @param only Takes exactly this implementation.
 * @throws SluiceError DEPENDENCY_MISSING
 */
export async function findZstd(only?: Zstd['implementation']): Promise<Zstd> {
  const causes: unknown[] = []
  for (const [name, attempt] of Object.entries(attempts)) {
    if (only !== undefined && name !== only) continue
    try {
      const zstd = await attempt()
      if (zstd !== undefined) return zstd
    } catch (cause) {
      causes.push(cause)
    }
  }
  throw new SluiceError('DEPENDENCY_MISSING', 'no zstd implementation works here', {
    fix: 'npm install @bokuweb/zstd-wasm',
    cause: new AggregateError(causes),
  })
}

async function fromNode(): Promise<Zstd | undefined> {
  const zlib: object = await import('node:zlib')
  if (!hasZstd(zlib)) return undefined
  return {
    implementation: 'node:zlib',
    compressor(level) {
      const options = { params: { [compressionLevelParameter]: level } }
      return (source) => zlib.zstdCompressSync(source, options)
    },
  }
}

/** The types of the oldest Node that is supported do not know it. */
type NodeZstd = { zstdCompressSync(source: Uint8Array, options: object): Uint8Array }

function hasZstd(zlib: object): zlib is NodeZstd {
  return 'zstdCompressSync' in zlib && typeof zlib.zstdCompressSync === 'function'
}

/** `ZSTD_c_compressionLevel` of zstd.h. */
const compressionLevelParameter = 100

async function fromBinary(): Promise<Zstd> {
  const { Encoder } = await import('@toondepauw/node-zstd')
  return {
    implementation: '@toondepauw/node-zstd',
    compressor(level) {
      const encoder = new Encoder(level)
      return (source) =>
        encoder.encodeSync(Buffer.from(source.buffer, source.byteOffset, source.length))
    },
  }
}

async function fromWasm(): Promise<Zstd> {
  const zstd = await import('@bokuweb/zstd-wasm')
  await zstd.init()
  return {
    implementation: '@bokuweb/zstd-wasm',
    compressor: (level) => (source) => zstd.compress(source, level),
  }
}

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSluiceError } from '../../../src/core/errors.ts'
import { loadOptionsFactory } from '../../../src/source/kv/options-factory.ts'
import type { FamilyOptions } from '../../../src/source/kv/ports.ts'
import { type EngineUnderTest, familyOf, inWorld, kib, mib, warnings } from './engine-under-test.ts'

const names: readonly (keyof FamilyOptions)[] = [
  'writeBufferSize',
  'maxWriteBufferNumber',
  'level0FileNumCompactionTrigger',
  'blockSize',
  'filter',
]

/** Options of families: the store's, the family's, the factory's. */
export function describeOptions(under: EngineUnderTest): void {
  const { supported, defaults } = under.engine

  describe(`${under.name}: options`, () => {
    test('C-24 applies the factory to one family and leaves the others what the store has', async () => {
      const asked: [string, number][] = []
      const options = {
        familyOptions: { writeBufferSize: 8 * mib },
        optionsFactory: (family: string, current: FamilyOptions): Partial<FamilyOptions> => {
          asked.push([family, current.writeBufferSize])
          return family === 'rows' ? { writeBufferSize: 16 * mib } : current
        },
      }
      await inWorld(under, options, async ({ stores, folder }) => {
        const store = await stores.open({
          folder: folder('a'),
          families: { rows: {}, meta: { writeBufferSize: 4 * mib } },
        })
        const late = await store.columnFamily('late')
        assert.deepEqual(asked, [
          ['default', 8 * mib],
          ['rows', 8 * mib],
          ['meta', 4 * mib],
          ['late', 8 * mib],
        ])
        assert.equal(familyOf(store, 'rows').effectiveOptions.writeBufferSize, 16 * mib)
        assert.equal(familyOf(store, 'meta').effectiveOptions.writeBufferSize, 4 * mib)
        assert.equal(late.effectiveOptions.writeBufferSize, 8 * mib)
      })
    })

    test('C-24 does not open a store whose factory is missing, fails or answers nonsense', async () => {
      const load = (specifier: string): Promise<unknown> =>
        specifier === './there.mjs'
          ? Promise.resolve({ default: (): object => ({}), tuned: 7 })
          : Promise.reject(new Error(`Cannot find module '${specifier}'`))
      for (const [reference, says] of [
        ['./absent.mjs', /kv\.options-factory "\.\/absent\.mjs".*Cannot find module/],
        ['./there.mjs#fast', /there\.mjs#fast.*no export "fast"/],
        ['./there.mjs#tuned', /tuned is no function/],
      ] as const) {
        await assert.rejects(loadOptionsFactory(reference, load), (error) => {
          assert.ok(isSluiceError(error, 'CONFIG_INVALID'))
          assert.match(error.message, says)
          return true
        })
      }
      assert.deepEqual((await loadOptionsFactory('./there.mjs', load))('rows', defaults), {})
      for (const [factory, says] of [
        [
          (): object => {
            throw new Error('no idea')
          },
          /kv\.options-factory failed for column family "default": no idea/,
        ],
        [(): unknown => 'fast', /answered "fast"/],
        [(): object => ({ writeBuferSize: 1 }), /no option "writeBuferSize"/],
        [(): object => ({ writeBufferSize: '64mb' }), /writeBufferSize "64mb"/],
      ] as const) {
        const optionsFactory = factory as () => Partial<FamilyOptions>
        await inWorld(under, { optionsFactory }, async ({ stores, folder }) => {
          await assert.rejects(
            stores.open({ folder: folder('a'), families: { rows: {} } }),
            (error) => {
              assert.ok(isSluiceError(error, 'CONFIG_INVALID'))
              assert.match(error.message, says)
              return true
            },
          )
          assert.equal(stores.openHandles, 0)
          assert.equal(await under.engine.stored({ folder: folder('a') }), undefined)
        })
      }
    })

    test("C-25 applies the lesson's example, or says what it cannot", async () => {
      const example = {
        writeBufferSize: 128 * mib,
        maxWriteBufferNumber: 4,
        level0FileNumCompactionTrigger: 8,
      }
      const options = {
        optionsFactory: (): Partial<FamilyOptions> => example,
        memoryBytes: 2048 * mib,
      }
      await inWorld(under, options, async ({ stores, folder, notes }) => {
        const store = await stores.open({ folder: folder('a'), families: { rows: {} } })
        const { effectiveOptions } = familyOf(store, 'rows')
        for (const [name, value] of Object.entries(example)) {
          const key = name as keyof typeof example
          const isSupported = supported.has(key)
          assert.equal(effectiveOptions[key], isSupported ? value : 'not supported')
          const said = warnings(notes, 'kv.options.not-supported').filter(
            ({ fields }) => fields?.['option'] === name && fields['family'] === 'rows',
          )
          assert.equal(said.length, isSupported ? 0 : 1)
        }
      })
    })

    test('C-26 tunes each family for its use, and reports every option', async () => {
      await inWorld(under, {}, async ({ stores, folder, notes }) => {
        const families = {
          small: { blockSize: 4_096, filter: 'ribbon', writeBufferSize: mib },
          large: { blockSize: 32 * kib, filter: 'none', writeBufferSize: 2 * mib },
          plain: {},
        } as const
        const store = await stores.open({ folder: folder('a'), families })
        for (const [name, options] of Object.entries(families)) {
          const { effectiveOptions } = familyOf(store, name)
          assert.deepEqual(Object.keys(effectiveOptions).sort(), [...names].sort())
          const wanted: FamilyOptions = { ...defaults, ...options }
          for (const option of names) {
            const expected = supported.has(option) ? wanted[option] : 'not supported'
            assert.equal(effectiveOptions[option], expected, `${name} ${option}`)
          }
        }
        const said = warnings(notes, 'kv.options.not-supported').map(({ fields }) =>
          [fields?.['family'], fields?.['option']].join(' '),
        )
        const unsupported = ['small', 'large'].flatMap((name) =>
          (['blockSize', 'filter'] as const)
            .filter((option) => !supported.has(option))
            .map((option) => `${name} ${option}`),
        )
        assert.deepEqual(said, unsupported)
      })
    })

    test('C-26 refuses an option it does not know, or a value that cannot be', async () => {
      await inWorld(under, {}, async ({ stores, folder }) => {
        for (const [options, says] of [
          [{ compactionStyle: 'universal' }, /"rows".*no option "compactionStyle"/],
          [{ writeBufferSize: 0 }, /writeBufferSize "0"/],
          [{ maxWriteBufferNumber: 1 }, /maxWriteBufferNumber "1"/],
          [{ blockSize: 0.5 }, /blockSize "0\.5"/],
          [{ filter: 'cuckoo' }, /filter "cuckoo"/],
        ] as const) {
          const families = { rows: options as Partial<FamilyOptions> }
          await assert.rejects(stores.open({ folder: folder('a'), families }), (error) => {
            assert.ok(isSluiceError(error, 'CONFIG_INVALID'))
            assert.match(error.message, says)
            return true
          })
        }
        const store = await stores.open({ folder: folder('a'), families: {} })
        await assert.rejects(
          store.columnFamily('late', { speed: 'high' } as Partial<FamilyOptions>),
          (error) => isSluiceError(error, 'CONFIG_INVALID'),
        )
        assert.equal(store.openHandles, 1)
      })
    })

    test('C-18 warns of buffers that may come to more than the memory there is', async () => {
      const families = Object.fromEntries(
        ['a', 'b', 'c', 'd', 'e'].map((name) => [
          name,
          { writeBufferSize: 64 * mib, maxWriteBufferNumber: 2 },
        ]),
      )
      await inWorld(under, { memoryBytes: 440 * mib }, async ({ stores, folder, notes }) => {
        await stores.open({ folder: folder('a'), families })
        const said = warnings(notes, 'kv.write-buffers.ceiling')
        assert.equal(said.length, 1)
        assert.match(said[0]?.message ?? '', /671,088,640 B.*461,373,440 B/)
        await stores.open({ folder: folder('b'), families })
        assert.equal(warnings(notes, 'kv.write-buffers.ceiling').length, 1)
      })
      await inWorld(under, { memoryBytes: 640 * mib }, async ({ stores, folder, notes }) => {
        await stores.open({ folder: folder('a'), families })
        assert.deepEqual(warnings(notes, 'kv.write-buffers.ceiling'), [])
      })
    })
  })
}

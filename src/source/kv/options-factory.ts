import { SluiceError } from '../../core/errors.ts'
import { quoteValue } from '../../core/text.ts'
import type { OptionsFactory } from './ports.ts'

const setting = 'kv.options-factory'

/**
 * Finds the options factory a configuration names: a module, and after `#` the name of its export if
 * that is not the default one.
 *
 * @param load Imports a module; the composition root decides from where.
 * @throws SluiceError CONFIG_INVALID
 */
export async function loadOptionsFactory(
  reference: string,
  load: (specifier: string) => Promise<unknown>,
): Promise<OptionsFactory> {
  const at = reference.lastIndexOf('#')
  const specifier = at < 0 ? reference : reference.slice(0, at)
  const name = at < 0 ? 'default' : reference.slice(at + 1)
  let loaded: unknown
  try {
    loaded = await load(specifier)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw invalid(reference, `the module cannot be loaded: ${why}`, error)
  }
  const found: unknown =
    typeof loaded === 'object' && loaded !== null && Object.hasOwn(loaded, name)
      ? (loaded as Readonly<Record<string, unknown>>)[name]
      : undefined
  if (found === undefined) throw invalid(reference, `the module has no export ${quoteValue(name)}`)
  if (typeof found !== 'function') throw invalid(reference, `its export ${name} is no function`)
  return found as OptionsFactory
}

function invalid(reference: string, why: string, cause?: unknown): SluiceError {
  return new SluiceError('CONFIG_INVALID', `${setting} ${quoteValue(reference)}: ${why}`, {
    fix: './kv-options.mjs with: export default (family, current) => ({ writeBufferSize: … })',
    details: { setting, reference },
    cause,
  })
}

import { describeCheckpoints } from './conformance-checkpoint.ts'
import { describeFamilies } from './conformance-families.ts'
import { describeLimits } from './conformance-limits.ts'
import { describeMemory } from './conformance-memory.ts'
import { describeOptions } from './conformance-options.ts'
import { describeRename } from './conformance-rename.ts'
import type { EngineUnderTest } from './engine-under-test.ts'

/** What every engine must do. Each engine's own test adds what only it can show. */
export function describeKvEngine(under: EngineUnderTest): void {
  describeFamilies(under)
  describeRename(under)
  describeMemory(under)
  describeOptions(under)
  describeCheckpoints(under)
  describeLimits(under)
}

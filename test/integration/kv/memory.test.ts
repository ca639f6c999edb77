import { memoryEngine } from '../../../src/source/kv/memory/memory-engine.ts'
import { describeKvEngine } from './conformance.ts'

describeKvEngine({ name: 'memory', engine: memoryEngine() })

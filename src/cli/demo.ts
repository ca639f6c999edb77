import type { Command } from './command.ts'

export const demoCommand: Command = () => Promise.resolve(0)

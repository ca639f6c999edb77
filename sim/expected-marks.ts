import { eventKinds, faultKinds } from './plan.ts'

/** Branches that seldom run. A set of runs that never came through one of them proves nothing of it. */
export const rareBranches = [
  'commit.again',
  'commit.in_doubt',
  'commit.recognized',
  'commit.unknown',
  'coordinator.restarted',
  'exit.COMMIT_FENCED',
  'exit.COMMIT_STALE',
  'exit.PROGRESS_LOST',
  'fault.503',
  'fault.disk-full',
  'file.left_behind',
  'heartbeat.lost',
  'process.done',
  'rejected.LEASE_LOST',
  'replay.skipped',
  'resume.beyond_position',
  'round.force_finished',
  'round.forced',
  'table.fenced',
] as const

/** What a large set of runs of all scenarios must have counted above zero. */
export const expectedMarks: readonly string[] = [
  ...faultKinds.map((kind) => `fault.${kind}`),
  ...eventKinds.map((kind) => `event.${kind}`),
  ...rareBranches,
]

/** Sets smaller than this may miss some. */
export const largeSet = 2_000

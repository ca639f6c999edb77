import type { Awaitable } from './ports.ts'

/** Goes on with a value: at once where it is there, else when its promise is fulfilled. */
export function after<Value, Result>(
  value: Awaitable<Value>,
  next: (value: Value) => Awaitable<Result>,
): Awaitable<Result> {
  return value instanceof Promise ? value.then(next) : next(value)
}

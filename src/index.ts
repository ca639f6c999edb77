export { type ErrorCode, isSluiceError, SluiceError } from './core/errors.ts'

import { type Effect, type ErrorOptions, isSluiceError, SluiceError } from '../../core/errors.ts'
import { redactUrls } from '../../core/secret.ts'
import { cutText, escapeText } from '../../core/text.ts'
import type { CreateOutcome } from './object-store.ts'

/** What is known of a request that did not end well, as far as a decision needs it. */
export type S3Failure =
  /** It never left this machine: no connection, no credentials. Proven to have had no effect. */
  | { readonly kind: 'not-sent'; readonly reason: string; readonly isTransient: boolean }
  /** It may have arrived: the connection broke, or no whole answer came in time. */
  | { readonly kind: 'no-reply'; readonly reason: string }
  | {
      readonly kind: 'reply'
      readonly status: number
      readonly code: string
      readonly reason: string
    }
  /** The bytes that came are not those that are stored. */
  | { readonly kind: 'damaged'; readonly reason: string }

/** A reply that was cut short; thrown by what reads bodies, and worth another try. */
export class ShortBodyError extends Error {
  override readonly name = 'ShortBodyError'
}

/** The provider of the credentials failed. What it said is not kept: it may hold a secret. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError'
}

/** Sorts an error of the S3 client. @throws the error itself when it is a SluiceError. */
export function failureOf(error: unknown): S3Failure {
  if (isSluiceError(error)) throw error
  if (!(error instanceof Error)) return { kind: 'no-reply', reason: 'an error without a name' }
  const reason = reasonOf(error)
  if (error instanceof ShortBodyError) return { kind: 'no-reply', reason }
  const status = statusOf(error)
  // An error with a good status means that the reply could not be read: the request did arrive.
  if (status !== undefined && status >= 300) {
    return { kind: 'reply', status, code: error.name, reason }
  }
  if (/checksum mismatch/i.test(error.message)) return { kind: 'damaged', reason }
  if (status !== undefined) return { kind: 'no-reply', reason }
  if (error.name === 'CredentialsProviderError' || error instanceof CredentialsError) {
    return { kind: 'not-sent', reason: 'no credentials were found', isTransient: false }
  }
  if (error.message === 'Region is missing') {
    return { kind: 'not-sent', reason: 'no region is set', isTransient: false }
  }
  if (isBeforeConnection(error)) return { kind: 'not-sent', reason, isTransient: true }
  return { kind: 'no-reply', reason }
}

/** Whether the same request may succeed a little later. */
export function isTransient(failure: S3Failure): boolean {
  switch (failure.kind) {
    case 'no-reply':
    case 'damaged':
      return true
    case 'not-sent':
      return failure.isTransient
    case 'reply':
      return failure.status >= 500
        ? failure.status !== 501
        : [408, 409, 429].includes(failure.status) || transientCodes.has(failure.code)
  }
}

/**
 * What a conditional create came to whose request failed.
 * @throws SluiceError with effect `none` when nothing was written, and not for a competitor.
 */
export function createOutcome(
  failure: S3Failure,
  location: string,
  endpoint?: string,
): CreateOutcome {
  if (failure.kind === 'not-sent') throw s3Error(failure, location, 'none')
  if (failure.kind === 'reply') {
    const { status, code } = failure
    if (status === 412) return { kind: 'rejected', reason: 'exists' }
    // A digest that does not fit says that the bytes were changed on their way.
    if (status === 409 || digestCodes.has(code)) return { kind: 'rejected', reason: 'contended' }
    if (!isTransient(failure)) throw s3Error(failure, location, 'none', endpoint)
  }
  return { kind: 'unknown', cause: s3Error(failure, location, 'unknown') }
}

/** Whether the store refused the request for its credentials' age or the time it was signed at. */
export function isStaleSignature(failure: S3Failure): 'token' | 'clock' | undefined {
  if (failure.kind !== 'reply') return undefined
  if (failure.code === 'RequestTimeTooSkewed') return 'clock'
  return staleTokenCodes.has(failure.code) ? 'token' : undefined
}

/**
 * The error a person can act on. It carries no object of the client: those hold the request with
 * its signature and session token.
 * @param endpoint Where the request went, if that is known.
 */
export function s3Error(
  failure: S3Failure,
  location: string,
  effect: Effect,
  endpoint?: string,
): SluiceError {
  const bucket = /^s3:\/\/[^/]*/.exec(location)?.[0] ?? location
  const reason = failure.reason
  const cause = new Error(reason)
  const details = {
    location,
    ...(failure.kind === 'reply' ? { status: failure.status, reply: failure.code } : {}),
  }
  switch (failure.kind) {
    case 'damaged':
      return new SluiceError('DATA_CORRUPT', `${location}: not the bytes that were stored`, {
        details,
        cause,
      })
    case 'not-sent':
      if (reason === 'no region is set') {
        return new SluiceError('CONFIG_INVALID', `${bucket}: no region is set`, {
          details,
          fix: 'set AWS_REGION, or name one with --s3-region',
        })
      }
      if (!failure.isTransient) {
        return new SluiceError('STORE_DENIED', `${bucket}: ${reason}`, {
          details,
          fix: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
        })
      }
      return new SluiceError(
        'STORE_UNAVAILABLE',
        `${bucket}: the store cannot be reached (${reason})`,
        {
          details,
          cause,
          effect: 'none',
          fix: 'look at the endpoint (--s3-endpoint), and whether the store runs',
        },
      )
    case 'no-reply':
      return new SluiceError('STORE_UNAVAILABLE', `${location}: no answer (${reason})`, {
        details,
        cause,
        effect,
      })
    case 'reply':
      return failure.code === 'NoSuchBucket'
        ? noBucket(bucket, endpoint, { details, cause })
        : replyError(failure, location, bucket, effect)
  }
}

/** The name is wrong, or the endpoint, or the bucket is still to be made, which Sluice does not do. */
function noBucket(
  bucket: string,
  endpoint: string | undefined,
  options: Pick<ErrorOptions, 'details' | 'cause'>,
): SluiceError {
  // The bucket may stand in front of the host's name, which is then not what the user named.
  const origin = endpoint?.replace(`//${bucket.slice('s3://'.length)}.`, '//')
  const isAws = origin === undefined || /\.amazonaws\.com(?:\.cn)?$/.test(origin)
  return new SluiceError(
    'LOCATION_REFUSED',
    `${bucket}: there is no such bucket${origin === undefined ? '' : ` at ${origin}`}`,
    {
      ...options,
      details: { ...options.details, ...(origin === undefined ? {} : { endpoint: origin }) },
      fix: `aws s3 mb ${bucket}${isAws ? '' : ` --endpoint-url ${origin}`}, or name another bucket or endpoint`,
    },
  )
}

function replyError(
  failure: Extract<S3Failure, { kind: 'reply' }>,
  location: string,
  bucket: string,
  effect: Effect,
): SluiceError {
  const { status, code, reason } = failure
  const options = { details: { location, status, reply: code }, cause: new Error(reason) }
  if (status < 400) {
    return new SluiceError('LOCATION_REFUSED', `${bucket}: the store sends us to another host`, {
      ...options,
      fix: 'name the endpoint or the region of the bucket (--s3-endpoint, --s3-region)',
    })
  }
  if (code === 'AuthorizationHeaderMalformed' || code === 'IllegalLocationConstraintException') {
    return new SluiceError('CONFIG_INVALID', `${bucket}: not the bucket's region (${reason})`, {
      ...options,
      fix: 'name the region of the bucket (--s3-region, AWS_REGION)',
    })
  }
  if (code === 'NoSuchUpload') {
    return new SluiceError(
      'STORE_UNAVAILABLE',
      `${location}: its upload was ended by others`,
      options,
    )
  }
  if (status === 404) {
    return new SluiceError('TABLE_MISSING', `${location}: gone`, options)
  }
  if (status === 401 || status === 403) {
    return new SluiceError('STORE_DENIED', `${location}: the store refused access (${reason})`, {
      ...options,
      fix: keyCodes.has(code) ? checkKeys : moreRights,
    })
  }
  if (status === 501 || status === 405) {
    return new SluiceError(
      'STORE_UNSUPPORTED',
      `${location}: the store cannot do what Sluice needs (${reason})`,
      options,
    )
  }
  return new SluiceError('STORE_UNAVAILABLE', `${location}: the store failed (${reason})`, {
    ...options,
    effect: status < 500 && status !== 408 ? 'none' : effect,
  })
}

function statusOf(error: Error): number | undefined {
  if (!('$metadata' in error)) return undefined
  const metadata = error.$metadata
  if (typeof metadata !== 'object' || metadata === null) return undefined
  if (!('httpStatusCode' in metadata)) return undefined
  return typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : undefined
}

/** Only what fails while a connection is being made has surely not reached the store. */
function isBeforeConnection(error: Error): boolean {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.every((each) => each instanceof Error && isBeforeConnection(each))
  }
  return 'syscall' in error && (error.syscall === 'connect' || error.syscall === 'getaddrinfo')
}

function reasonOf(error: Error): string {
  const status = statusOf(error)
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code} ` : ''
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : []
  const first = all[0]
  const message = error.message === '' && first instanceof Error ? first.message : error.message
  const shown = cutText(escapeText(redactUrls(message).replace(longWord, '***')), 200)
  if (status !== undefined) return `HTTP ${status} ${error.name}: ${shown}`
  return message.includes(code.trim()) ? shown : `${code}${shown}`
}

/** Stores have repeated tokens and what was signed in their messages; nothing else is that long. */
const longWord = /[A-Za-z0-9+/=]{32,}/g
/** The bytes were changed on their way, which the store has seen: nothing was written. */
const digestCodes = new Set([
  'BadDigest',
  'XAmzContentChecksumMismatch',
  'XAmzContentSHA256Mismatch',
])
const transientCodes = new Set([
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'RequestTimeout',
  'InternalError',
  ...digestCodes,
])
/** The store does not know the key, or it was not signed with its secret. */
const keyCodes = new Set(['InvalidAccessKeyId', 'SignatureDoesNotMatch'])
const checkKeys = 'check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
const moreRights = 'use keys that may list, read, write and delete there'
const staleTokenCodes = new Set(['ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired'])

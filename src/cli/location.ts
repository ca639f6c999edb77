import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { locationOf, pathOf } from '../catalog/store/local-store.ts'
import { SluiceError } from '../core/errors.ts'
import { quoteValue } from '../core/text.ts'
import type { Given } from './settings.ts'

/** A local location: what the user wrote, the path, and the URL that metadata holds. */
export type Location = {
  readonly shown: string
  readonly path: string
  readonly url: string
}

/** Whether an argument is a location; anything else is a table name. */
export function isLocation(text: string): boolean {
  return text.includes('/') || text === '.' || text === '..'
}

/**
 * Reads where a lake lies: a path, relative to `folder`, or `file:///…`.
 * @throws SluiceError LOCATION_REFUSED; never repeats user info or a query
 */
export function readLocation(given: Given, folder: string): Location {
  const { text, subject } = given
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (text === '') throw refuse(`${subject}: the location is empty`, 'a path, such as ./lake')
  if (text.includes('\0')) throw refuse(`${subject}: the location holds a NUL character`)
  if (scheme === undefined) {
    const path = text.startsWith('~/') ? resolve(homedir(), text.slice(2)) : resolve(folder, text)
    return { shown: text, path, url: locationOf(path) }
  }
  if (/^[^/]*:\/\/[^/]*@/.test(text)) {
    throw refuse(
      `${subject}: the URL contains credentials`,
      'put them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
  }
  if (/[?#]/.test(text)) {
    throw refuse(`${subject}: the URL contains a query or a fragment`, 'leave it out')
  }
  if (scheme === 's3' || scheme === 's3a') {
    throw refuse(
      `${subject}: S3 warehouses come with a later version; this one writes local folders`,
      'a path, such as ./lake',
    )
  }
  if (scheme !== 'file') {
    throw refuse(
      `${subject} ${quoteValue(text)}: ${scheme} is no store of Sluice`,
      './lake, file:///…',
    )
  }
  if (!/^file:\/\/(?:localhost)?\//i.test(text)) {
    throw refuse(`${subject} ${quoteValue(text)}: a file URL has three slashes`, 'file:///path')
  }
  const path = pathOf(text.replace(/^file:\/\/[^/]*/i, 'file://')).replace(/(?<=.)\/+$/, '')
  return { shown: text, path, url: locationOf(path) }
}

function refuse(message: string, fix?: string): SluiceError {
  return new SluiceError('LOCATION_REFUSED', message, fix === undefined ? {} : { fix })
}

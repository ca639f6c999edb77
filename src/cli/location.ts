import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { normalizeLocation, shownLocation } from '../catalog/iceberg/location.ts'
import { locationOf, pathOf } from '../catalog/store/local-store.ts'
import { parseS3Location } from '../catalog/store/s3-location.ts'
import { SluiceError } from '../core/errors.ts'
import { quoteValue } from '../core/text.ts'
import type { Given } from './settings.ts'

/** Where a lake lies: what the user wrote, and the URL that metadata holds. */
export type Location = {
  readonly shown: string
  /** `file:///…` or `s3://…`, without a slash at the end. */
  readonly url: string
}

/** Whether an argument is a location; anything else is a table name. */
export function isLocation(text: string): boolean {
  return text.includes('/') || text === '.' || text === '..'
}

/**
 * The error for a name where a lake should be: the folder of that name is most likely meant, or the
 * table of that name and its lake was left out.
 */
export function nameForLake(
  name: string,
  given: { readonly command: string; readonly rest: string | undefined; readonly folder: string },
): SluiceError {
  const { command, rest, folder } = given
  const isFolder = rest !== undefined || !name.includes('.') || existsSync(resolve(folder, name))
  const words = isFolder ? [`./${name}`, ...(rest === undefined ? [] : [rest])] : ['./lake', name]
  return new SluiceError('CONFIG_INVALID', `${quoteValue(name)} is a name; a lake is a location`, {
    fix: ['sluice', command, ...words.map(quoteWord)].join(' '),
  })
}

/** As a shell takes it for one word. */
function quoteWord(word: string): string {
  return /^[\w./:@%+=~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/**
 * Reads where a lake lies: a path, relative to `folder`, `file:///…`, or `s3://bucket/prefix`.
 * @throws SluiceError LOCATION_REFUSED; never repeats user info or a query
 */
export function readLocation(given: Given, folder: string): Location {
  const { text, subject } = given
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (text === '') throw refuse(`${subject}: the location is empty`, 'a path, such as ./lake')
  if (text.includes('\0')) throw refuse(`${subject}: the location holds a NUL character`)
  if (scheme === undefined) {
    const path = text.startsWith('~/') ? resolve(homedir(), text.slice(2)) : resolve(folder, text)
    return { shown: text, url: locationOf(path) }
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
    const url = normalizeLocation(text.replace(/^[^:]*/, scheme))
    const { key } = parseS3Location(url)
    // Folders do not show empty names, but keys hold them: engines would look elsewhere.
    if (/^\/|\/\//.test(key)) throw refuse(`${subject} ${quoteValue(text)}: two slashes in a row`)
    return { shown: shownLocation(url), url }
  }
  if (scheme !== 'file') {
    throw refuse(
      `${subject} ${quoteValue(text)}: ${scheme} is no store of Sluice`,
      './lake, file:///…, s3://bucket/prefix',
    )
  }
  if (!/^file:\/\/(?:localhost)?\//i.test(text)) {
    throw refuse(`${subject} ${quoteValue(text)}: a file URL has three slashes`, 'file:///path')
  }
  const path = pathOf(text.replace(/^file:\/\/[^/]*/i, 'file://')).replace(/(?<=.)\/+$/, '')
  return { shown: text, url: locationOf(path) }
}

function refuse(message: string, fix?: string): SluiceError {
  return new SluiceError('LOCATION_REFUSED', message, fix === undefined ? {} : { fix })
}

import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * Locations are URLs, but engines differ in how they read `file:` ones: most take the text after
 * `file://` as the path, some undo percent signs. So what need not be escaped is not, and names of
 * ours never need it.
 */

/** A location as other writers put it, in the form stores take: `file:///…`, `s3://…`. */
export function normalizeLocation(location: string): string {
  const trimmed = location.length > 1 ? location.replace(/\/+$/, '') : location
  if (trimmed.startsWith('/')) return plainFileUrl(trimmed)
  if (trimmed.startsWith('file:')) {
    try {
      return plainFileUrl(fileURLToPath(trimmed))
    } catch {
      return trimmed
    }
  }
  return trimmed.replace(/^s3[an]:\/\//, 's3://')
}

/** What people are shown: the path of a local file, the URL of any other. */
export function shownLocation(location: string): string {
  const normal = normalizeLocation(location)
  if (!normal.startsWith('file://')) return normal
  try {
    return fileURLToPath(normal)
  } catch {
    return normal
  }
}

/** `file`, `s3`, … */
export function schemeOf(location: string): string {
  return /^([a-z][a-z0-9+.-]*):/i.exec(normalizeLocation(location))?.[1]?.toLowerCase() ?? ''
}

/**
 * The name of the folder of one part of a table name. Different parts have different folders, none
 * is `.` or `..`, begins with a dot or holds a separator. The escape is `~` and two digits for each
 * byte, not a percent sign, which some engines would undo in the location and others would not.
 */
export function folderOfPart(part: string): string {
  const escaped = part.replace(/[^A-Za-z0-9_ .\-\p{L}\p{M}\p{N}]/gu, escapeBytes)
  return escaped.replace(/^[. ]| $/g, escapeBytes)
}

/** The part of a table name whose folder this is; other writers' folders are their own names. */
export function partOfFolder(folder: string): string {
  const bytes = folder.replace(/(?:~[0-9A-F]{2})+/g, (run) =>
    Buffer.from(run.replaceAll('~', ''), 'hex').toString('utf8'),
  )
  return folderOfPart(bytes) === folder ? bytes : folder
}

/** The folder of a table below a warehouse. @param warehouse Normalized, without a last slash. */
export function tableFolder(warehouse: string, name: readonly string[]): string {
  return [warehouse, ...name.map(folderOfPart)].join('/')
}

/** The folder that holds `metadata/` and `data/`, from the location of a metadata file. */
export function folderOfMetadata(metadataLocation: string): string {
  return metadataLocation.replace(/\/[^/]*\/?[^/]*$/, '')
}

function plainFileUrl(path: string): string {
  // These end a URL's path, or are dropped or replaced when it is read.
  const escaped = path.replace(/[%#?\\\u0000-\u001f]/g, (character) =>
    encodeURIComponent(character),
  )
  const url = `file://${escaped}`
  try {
    return fileURLToPath(url) === path ? url : pathToFileURL(path).href
  } catch {
    return pathToFileURL(path).href
  }
}

function escapeBytes(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => `~${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('')
}

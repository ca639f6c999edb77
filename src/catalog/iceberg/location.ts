import { SluiceError } from '../../core/errors.ts'
import { formatTableName } from '../../core/table-name.ts'

const folderBytesMax = 255

/** A location as other writers put it, in the form stores take: `file:///…`, `s3://…`. */
export function normalizeLocation(location: string): string {
  const trimmed = location.replace(/(?<=[^/:])\/+$/, '')
  if (trimmed.startsWith('/')) return `file://${trimmed}`
  return trimmed
    .replace(/^file:(?:\/\/localhost(?=\/))?\/+/, 'file:///')
    .replace(/^s3[an]:\/\//, 's3://')
}

/** What people are shown: the path of a local file, the URL of any other. */
export function shownLocation(location: string): string {
  return normalizeLocation(location).replace(/^file:\/\//, '')
}

/** `file`, `s3`, … */
export function schemeOf(location: string): string {
  return /^([a-z][a-z0-9+.-]*):/i.exec(normalizeLocation(location))?.[1]?.toLowerCase() ?? ''
}

/**
 * The name of the folder of one part of a table name. Different parts have different folders, none
 * is `.` or `..`, begins with a dot or holds a separator. The escape is `~` and two digits for each
 * byte, not a percent sign: locations are taken character for character here, and by most engines,
 * but a URL library somewhere would undo it.
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

/**
 * The folder of a table below a warehouse.
 * @param warehouse Normalized, without a last slash.
 * @throws SluiceError NAME_INVALID when the name of a folder would be longer than file systems take
 */
export function tableFolder(warehouse: string, name: readonly string[]): string {
  const folders = name.map(folderOfPart)
  const long = folders.findIndex((folder) => Buffer.byteLength(folder) > folderBytesMax)
  if (long < 0) return [warehouse, ...folders].join('/')
  throw new SluiceError(
    'NAME_INVALID',
    `table name ${formatTableName(name)}: its folder would have a name of over ${folderBytesMax} bytes`,
    { fix: 'choose a shorter name, or one with fewer special characters' },
  )
}

/** The folder that holds `metadata/` and `data/`, from the location of a metadata file. */
export function folderOfMetadata(metadataLocation: string): string {
  return metadataLocation.replace(/\/[^/]*\/?[^/]*$/, '')
}

function escapeBytes(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => `~${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('')
}

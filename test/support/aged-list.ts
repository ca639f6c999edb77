/** How much older than it is the object, upload or part under a key of a bucket is said to be. */
export type AgeOf = (key: string) => number

/**
 * What a server says of its objects, uploads or parts, with other times.
 * @param key Of the upload whose parts these are: a list of them does not say it.
 */
export function agedList(xml: string, key: string, ageOf: AgeOf): string {
  return xml.replace(/<(Contents|Upload|Part)>.*?<\/\1>/gs, (entry) => {
    const own = /<Key>([^<]*)<\/Key>/.exec(entry)?.[1]
    const age = ageOf(own === undefined ? key : unescaped(own))
    return entry.replace(
      /(<(?:LastModified|Initiated)>)([^<]+)/g,
      (_, tag: string, time: string) => `${tag}${new Date(Date.parse(time) - age).toISOString()}`,
    )
  })
}

function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&#34;', '"')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
}

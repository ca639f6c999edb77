import { inspect } from 'node:util'

/**
 * A value that must not be seen in messages, logs or JSON (S-01). Everything that turns it into text
 * gives `***`; only `reveal()` gives the value, and only the adapter that sends it calls that.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '***'
  }

  toJSON(): string {
    return '***'
  }

  [Symbol.toPrimitive](): string {
    return '***'
  }

  [inspect.custom](): string {
    return '***'
  }
}

/** Whether text looks like a credential. For refusing it where everybody could read it. */
export function looksLikeSecret(text: string): boolean {
  return shapes.some((shape) => shape.test(text))
}

/** Whether the name of an option or a property says that its value is a credential. */
export function isSecretName(name: string): boolean {
  return secretName.test(name)
}

/**
 * Replaces user info and query of every URL in a text: `https://***@host/path?***`. Word by word, in
 * time that grows with the length: what it is given may be anybody's.
 */
export function redactUrls(text: string): string {
  return text.replace(/[^\s"']+/g, (word) => {
    const at = word.indexOf('://')
    if (at < 0) return word
    const query = word.indexOf('?', at)
    const place = query < 0 ? word : `${word.slice(0, query)}?***`
    return place.replace(/:\/\/[^/]*@/g, '://***@')
  })
}

const shapes = [
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  /\b(?:aws_)?(?:secret_access_key|session_token)\s*=/i,
  /^(?:bearer|basic)\s+\S{8,}/i,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/,
  /\bgh[pousr]_[A-Za-z0-9]{30,}\b/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
]
const secretName =
  /(?:^|[-_.])(?:password|passwd|pwd|secret|token|credentials?|api[-_.]?key|access[-_.]?key(?:[-_.]?id)?|private[-_.]?key)(?:$|[-_.])/i

import { SluiceError } from '../../core/errors.ts'

/**
 * Refuses an endpoint that holds more than a place: what is signed for it is sent there, and it is
 * shown in messages.
 * @param subject What messages begin with; the endpoint itself is never repeated.
 * @throws SluiceError CONFIG_INVALID
 */
export function checkEndpoint(endpoint: string, subject = 's3.endpoint'): void {
  let url
  try {
    url = new URL(endpoint)
  } catch {
    throw new SluiceError('CONFIG_INVALID', `${subject} is not a URL`, { fix: endpointExample })
  }
  const isPlain = url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (!isPlain) {
    throw new SluiceError('CONFIG_INVALID', `${subject}: the URL contains more than a place`, {
      fix: 'put credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    })
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new SluiceError('CONFIG_INVALID', `${subject}: ${url.protocol} is not http: or https:`, {
      fix: endpointExample,
    })
  }
}

const endpointExample = 'for example http://127.0.0.1:9000'

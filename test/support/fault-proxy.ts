import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AgeOf, agedList } from './aged-list.ts'

/** What becomes of one request on its way to the S3 server, or of the reply on its way back. */
export type Fault =
  /** The connection breaks before anything reaches the server. */
  | 'reset-before'
  /** The server gets half of the body. */
  | 'reset-midway'
  /** The server has answered; the answer is lost. */
  | 'reset-after'
  /** The server gets the request only when the test says so; the client is gone by then. */
  | 'late'
  /** The server gets the request twice, the client the second answer. */
  | 'doubled'
  /** The server gets nothing, the client no answer. */
  | 'silence'
  | '500'
  /** The server did it, and says 500. */
  | '500-after'
  | '503'
  | '409'
  | '412'
  | '403-expired'
  | '403-skewed'
  | '400-region'
  | '307'
  /** Status 200 with an error in the body. */
  | '200-error'
  /** Half of the reply's body, then nothing more, and the connection stays. */
  | 'slow-body'
  /** Half of the announced body, then the connection breaks. */
  | 'cut-body'
  /** Half of the body, announced as the whole. */
  | 'short-body'
  /** One bit of the body is another one. */
  | 'flipped-body'

export type SeenRequest = {
  readonly method: string
  readonly key: string
  /**
   * `put`, `create`, `get`, `head`, `list`, `delete`, `begin`, `part`, `complete`, `abort`,
   * `uploads` and `parts` (lists of them).
   */
  readonly operation: string
  readonly fault: Fault | undefined
}

export type FaultRule = {
  readonly operation: string
  readonly fault: Fault
  /** Of which keys; absent: of all. */
  readonly key?: RegExp
  /** Which of the requests that match is the first to be hit, from 1. */
  readonly nth?: number
  /** How many are hit from there on. */
  readonly times?: number
}

export interface FaultProxy extends AsyncDisposable {
  readonly endpoint: string
  /** Replaces the plan, counts from 1 again, and forgets what was seen. */
  plan(rules: readonly FaultRule[]): void
  /** Decides for each request that no rule hits. */
  random(decide: ((operation: string) => Fault | undefined) | undefined): void
  /** Lists say of each object, upload and part that it is this many milliseconds older. */
  age(by: AgeOf | undefined): void
  seen(): readonly SeenRequest[]
  /** Tells of each request as it comes in, before anything becomes of it. */
  watch(listener: ((request: SeenRequest) => void) | undefined): void
  /** Sends the `late` requests to the server. @returns the statuses it answered with */
  release(): Promise<readonly number[]>
}

type Message = { readonly seen: IncomingMessage; readonly body: Buffer }
type Reply = {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** Stands between a client and an S3 server on the wire. The same plan gives the same faults. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  let rules: { readonly rule: FaultRule; matched: number }[] = []
  let decide: ((operation: string) => Fault | undefined) | undefined
  let seen: SeenRequest[] = []
  let late: Message[] = []

  let watcher: ((request: SeenRequest) => void) | undefined
  let ageOf: AgeOf | undefined

  const faultFor = (operation: string, key: string): Fault | undefined => {
    for (const entry of rules) {
      if (entry.rule.operation !== operation) continue
      if (entry.rule.key?.test(key) === false) continue
      entry.matched += 1
      const first = entry.rule.nth ?? 1
      const isHit = entry.matched >= first && entry.matched < first + (entry.rule.times ?? 1)
      if (isHit) return entry.rule.fault
    }
    return decide?.(operation)
  }

  const server = createServer((incoming, outgoing) => {
    const operation = operationOf(incoming)
    const key = decodeURIComponent(new URL(incoming.url ?? '/', target).pathname)
    const fault = faultFor(operation, key)
    const request = { method: incoming.method ?? '', key, operation, fault }
    seen.push(request)
    watcher?.(request)
    if (fault === 'reset-before') {
      incoming.socket.resetAndDestroy()
      return
    }
    void pass(incoming, outgoing, fault).catch(() => incoming.socket.destroy())
  })

  const pass = async (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    fault: Fault | undefined,
  ): Promise<void> => {
    const message = { seen: incoming, body: await bodyOf(incoming) }
    const made = fault === undefined ? undefined : madeReplies[fault]
    if (made !== undefined) {
      answer(outgoing, made)
    } else if (fault === 'silence') {
      return
    } else if (fault === 'late') {
      late.push(message)
      incoming.socket.resetAndDestroy()
    } else if (fault === 'reset-midway') {
      await forwardHalf(target, message)
      incoming.socket.resetAndDestroy()
    } else {
      if (fault === 'doubled') await forward(target, message)
      damage(incoming, outgoing, aged(incoming, await forward(target, message)), fault)
    }
  }

  const aged = (incoming: IncomingMessage, reply: Reply): Reply => {
    if (ageOf === undefined || !['list', 'uploads', 'parts'].includes(operationOf(incoming))) {
      return reply
    }
    const path = decodeURIComponent(new URL(incoming.url ?? '/', target).pathname)
    const key = path.replace(/^\/[^/]*\//, '')
    const body = Buffer.from(agedList(reply.body.toString('utf8'), key, ageOf))
    return { ...reply, headers: withLength(reply.headers, body.length), body }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    endpoint: `http://127.0.0.1:${port}`,
    plan: (next) => {
      rules = next.map((rule) => ({ rule, matched: 0 }))
      seen = []
    },
    random: (next) => {
      decide = next
    },
    age: (by) => {
      ageOf = by
    },
    seen: () => seen,
    watch: (listener) => {
      watcher = listener
    },
    release: async () => {
      const messages = late
      late = []
      const statuses: number[] = []
      for (const message of messages) statuses.push((await forward(target, message)).status)
      return statuses
    },
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => {
        server.close(() => {
          resolve()
        })
      })
    },
  }
}

function damage(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  reply: Reply,
  fault: Fault | undefined,
): void {
  const half = reply.body.subarray(0, Math.floor(reply.body.length / 2))
  switch (fault) {
    case 'reset-after':
      incoming.socket.resetAndDestroy()
      return
    case '500-after':
      answer(outgoing, errorReply(500, 'InternalError'))
      return
    case 'slow-body':
      outgoing.writeHead(reply.status, [...reply.headers])
      outgoing.write(half)
      return
    case 'cut-body':
      outgoing.writeHead(reply.status, [...reply.headers])
      outgoing.write(half, () => {
        incoming.socket.destroy()
      })
      return
    case 'short-body':
      answer(outgoing, { ...reply, headers: withLength(reply.headers, half.length), body: half })
      return
    case 'flipped-body': {
      const body = Buffer.from(reply.body)
      const at = Math.floor(body.length / 2)
      body[at] = (body[at] ?? 0) ^ 0x10
      answer(outgoing, { ...reply, body })
      return
    }
    case undefined:
    default:
      answer(outgoing, reply)
  }
}

function answer(outgoing: ServerResponse, reply: Reply): void {
  outgoing.writeHead(reply.status, [...reply.headers])
  outgoing.end(reply.body)
}

function forward(target: string, message: Message): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = open(target, message)
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      bodyOf(incoming).then((body) => {
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.rawHeaders, body })
      }, reject)
    })
    outgoing.end(message.body)
  })
}

async function forwardHalf(target: string, message: Message): Promise<void> {
  const outgoing = open(target, message)
  outgoing.on('error', () => undefined)
  const half = message.body.subarray(0, Math.floor(message.body.length / 2))
  await new Promise<void>((resolve) => {
    outgoing.write(half, () => {
      resolve()
    })
  })
  outgoing.destroy()
}

/** The same request, host and all: the signature covers them. */
function open(target: string, message: Message): ReturnType<typeof request> {
  const { hostname, port } = new URL(target)
  const { method, url, rawHeaders } = message.seen
  return request({
    hostname,
    port,
    path: url,
    method,
    headers: rawHeaders,
    setHost: false,
    agent: false,
  })
}

function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      resolve(Buffer.concat(chunks))
    })
    incoming.on('error', reject)
  })
}

function operationOf(incoming: IncomingMessage): string {
  const query = new URL(incoming.url ?? '/', 'http://proxy').searchParams
  switch (incoming.method) {
    case 'PUT':
      if (query.has('partNumber')) return 'part'
      return incoming.headers['if-none-match'] === undefined ? 'put' : 'create'
    case 'POST':
      return query.has('uploads') ? 'begin' : 'complete'
    case 'DELETE':
      return query.has('uploadId') ? 'abort' : 'delete'
    case 'HEAD':
      return 'head'
    case undefined:
    default:
      if (query.has('uploads')) return 'uploads'
      if (query.has('uploadId')) return 'parts'
      return query.has('list-type') ? 'list' : 'get'
  }
}

function withLength(headers: readonly string[], length: number): readonly string[] {
  return headers.map((value, at) =>
    at % 2 === 1 && headers[at - 1]?.toLowerCase() === 'content-length' ? String(length) : value,
  )
}

function errorReply(status: number, code: string, extra: readonly string[] = []): Reply {
  const body = Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>planned</Message></Error>`,
  )
  const headers = ['Content-Type', 'application/xml', 'Content-Length', String(body.length)]
  return { status, headers: [...headers, ...extra], body }
}

const madeReplies: Partial<Record<Fault, Reply>> = {
  '500': errorReply(500, 'InternalError'),
  '503': errorReply(503, 'SlowDown'),
  '409': errorReply(409, 'ConditionalRequestConflict'),
  '412': errorReply(412, 'PreconditionFailed'),
  '400-region': errorReply(400, 'AuthorizationHeaderMalformed'),
  '403-expired': errorReply(403, 'ExpiredToken'),
  '403-skewed': errorReply(403, 'RequestTimeTooSkewed'),
  '200-error': errorReply(200, 'InternalError'),
  '307': errorReply(307, 'TemporaryRedirect', ['Location', 'http://127.0.0.2:9/elsewhere']),
}

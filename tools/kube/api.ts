import { Agent, request } from "node:https"
import { text } from "node:stream/consumers"

/** How to reach an API server. */
export type Access = { server: string; certificateAuthority: string; token: string }

class ApiError extends Error {
  status: number
  reason: string
  constructor(what: string, status: number, reason: string, message: string) {
    super(`${what}: ${status} ${reason}: ${message}`)
    this.status = status
    this.reason = reason
  }
}

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind pass through; the floor knows none of their schemas.
export type Json = any

/**
 * The few requests that the floor itself and its tests need, on purpose not the client of the product:
 * the judge of a test must not share its mistakes.
 */
export type Api = {
  get(path: string): Promise<Json>
  /** Undefined when there is no such object. */
  find(path: string): Promise<Json | undefined>
  create(path: string, body: object): Promise<Json>
  replace(path: string, body: object): Promise<Json>
  /** A JSON merge patch. */
  patch(path: string, body: object): Promise<Json>
  /** A strategic merge patch, which knows the keys of lists; for built-in kinds only. */
  patchStrategically(path: string, body: object): Promise<Json>
  /** Server-side apply that takes over fields of other managers. */
  apply(path: string, body: object): Promise<Json>
  remove(path: string, options?: object): Promise<void>
  text(path: string): Promise<string>
  close(): void
}

export function connectApi({ server, certificateAuthority, token }: Access): Api {
  // The server closes a connection that was not used for 90 s: it must not be one on which a request is on its way.
  const agent = new Agent({ keepAlive: true, timeout: 30_000, ca: certificateAuthority })

  async function call(method: string, path: string, body?: object, contentType = "application/json"): Promise<string> {
    const content = body && JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${token}`,
      accept: "application/json",
      "content-type": contentType,
      // Node sets the length of a body by itself, except for DELETE: the server would read the body as the next request.
      ...(content !== undefined && { "content-length": Buffer.byteLength(content) }),
    }
    const sent = request(new URL(path, server), { method, agent, headers, timeout: 30_000 })
    sent.once("timeout", () => sent.destroy(new Error("no answer within 30 s")))
    sent.end(content)
    const { promise, resolve, reject } = Promise.withResolvers<import("node:http").IncomingMessage>()
    sent.once("response", resolve).once("error", reject)
    const response = await promise.catch(cause => {
      throw new Error(`${method} ${path}`, { cause })
    })
    const answer = await text(response)
    const status = response.statusCode ?? 0
    if (status < 400) return answer
    const told = parseStatus(answer)
    throw new ApiError(`${method} ${path}`, status, told.reason ?? "", told.message ?? answer)
  }
  const json = async (...args: Parameters<typeof call>): Promise<Json> => JSON.parse(await call(...args))

  return {
    get: path => json("GET", path),
    find: path => json("GET", path).catch(nothingIf404),
    create: (path, body) => json("POST", path, body),
    replace: (path, body) => json("PUT", path, body),
    patch: (path, body) => json("PATCH", path, body, "application/merge-patch+json"),
    patchStrategically: (path, body) => json("PATCH", path, body, "application/strategic-merge-patch+json"),
    apply: (path, body) => json("PATCH", `${path}?fieldManager=floor&force=true`, body, "application/apply-patch+yaml"),
    remove: async (path, options) => void (await json("DELETE", path, options).catch(nothingIf404)),
    text: path => call("GET", path),
    close: () => agent.destroy(),
  }
}

function nothingIf404(error: unknown): undefined {
  if (!(error instanceof ApiError) || error.status !== 404) throw error
}

function parseStatus(answer: string): { reason?: string; message?: string } {
  try {
    return JSON.parse(answer)
  } catch {
    return {}
  }
}

export type Patience = { withinMs?: number; everyMs?: number; signal?: AbortSignal }

/**
 * Asks again until the answer is neither undefined nor false, and returns it; throws with the last error when late. Two
 * minutes are only the end of patience: on a busy machine a kubelet that backs off, or three pods one after the other,
 * take more than one.
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { withinMs = 120_000, everyMs = 100, signal }: Patience = {},
): Promise<T> {
  const deadline = Date.now() + withinMs
  for (let trouble: unknown; ; ) {
    signal?.throwIfAborted()
    try {
      const answer = await ask()
      if (answer !== undefined && answer !== false) return answer
      trouble = undefined
    } catch (error) {
      trouble = error
    }
    if (Date.now() > deadline) throw new Error(`${what}: not within ${withinMs / 1000} s`, { cause: trouble })
    await new Promise(resolve => setTimeout(resolve, everyMs))
  }
}

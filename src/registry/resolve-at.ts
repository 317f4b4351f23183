import { createHash } from "node:crypto"
import type { ImageReference } from "#core/image/reference.ts"
import { type Failure, failure, type Resolution } from "#core/image/resolution.ts"
import type { Endpoint } from "#egress/endpoint.ts"
import type { Answer } from "#egress/exchange.ts"
import type { Expiring } from "#egress/expiring.ts"
import { type Ask, authorize } from "./authorize.ts"
import type { Credentials } from "./client.ts"
import type { readAllowed } from "./endpoint.ts"
import { failureOf } from "./failure-of.ts"
import { acceptManifest, fromHead, manifestReader } from "./manifest.ts"

type Means = {
  ask: Ask
  allowed: ReturnType<typeof readAllowed>
  /** By registry, repository and user. */
  tokens: Expiring<string>
}

type Asked = { credentials: Credentials | undefined; platforms: boolean; signal: AbortSignal }

/** Asks one registry for the manifest of an image, and requests a token for that where the registry wants one. */
export async function resolveAt(
  { ask, allowed, tokens }: Means,
  endpoint: Endpoint,
  image: ImageReference,
  { credentials, platforms, signal }: Asked,
): Promise<Resolution> {
  const { hostname } = endpoint
  const identity = identityOf(credentials)
  const tokenKey = `${endpoint.origin} ${image.path} ${identity}`
  const cached = tokens.get(tokenKey)?.value
  let authorization = cached && `Bearer ${cached}`
  let isAuthorized = false
  const reader = manifestReader({ asked: image.digest, platforms })

  /** Requests the manifest. Sends credentials once, when required: a registry that asks again has refused them. */
  async function manifest(method: "HEAD" | "GET"): Promise<Answer | Failure> {
    const path = `/v2/${image.path}/manifests/${image.digest ?? image.tag}`
    const headers = { accept: acceptManifest, ...(authorization !== undefined && { authorization }) }
    const question = { method, path, headers, read: reader.read }
    const answer = await ask(endpoint, question, identity, signal)
    if (!answer.ok || answer.status !== 401) return answer
    if (isAuthorized) return answer
    isAuthorized = true
    const asked = { endpoint, path: image.path, credentials, identity, signal }
    const authorized = await authorize({ ask, allowed }, answer.headers["www-authenticate"], asked)
    if (!authorized.ok) return authorized
    const { token } = authorized
    if (token && token.lastsMs > 0) tokens.set(tokenKey, token.value, token.lastsMs)
    authorization = authorized.header
    return manifest(method)
  }

  const head = await manifest("HEAD")
  if (!head.ok) return head
  const canHead = head.status !== 405
  if (canHead && head.status !== 200) return failureOf(head, hostname)
  const answered = canHead ? fromHead(head) : undefined
  if (answered && image.digest && answered.digest !== image.digest)
    return failure("InvalidAnswer", `${hostname} answers with another digest than it was asked for`)
  if (answered && !platforms) return answered

  const whole = await manifest("GET")
  if (!whole.ok) return whole
  return whole.status === 200 ? reader.result(whole, hostname) : failureOf(whole, hostname)
}

/** Distinguishes users without keeping their passwords. */
const identityOf = (credentials: Credentials | undefined) =>
  credentials
    ? createHash("sha256")
        .update(JSON.stringify([credentials.username, credentials.password]))
        .digest("hex")
    : "anonymous"

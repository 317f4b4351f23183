import { type Failure, failure } from "#core/image/resolution.ts"
import { createBody } from "#egress/body.ts"
import type { Endpoint } from "#egress/endpoint.ts"
import type { Answer, Question } from "#egress/exchange.ts"
import { parseChallenge, pullScope } from "./challenge.ts"
import type { Credentials } from "./client.ts"
import { type readAllowed, urlEndpoint } from "./endpoint.ts"
import { failureOf } from "./failure-of.ts"
import { maxTokenAnswerBytes, readToken, type Token } from "./token.ts"

/** One request, unless the server has limited `identity` for now. */
export type Ask = (to: Endpoint, question: Question, identity: string, signal: AbortSignal) => Promise<Answer | Failure>

type Means = { ask: Ask; allowed: ReturnType<typeof readAllowed> }

type Asked = {
  endpoint: Endpoint
  /** The repository. */
  path: string
  credentials: Credentials | undefined
  identity: string
  signal: AbortSignal
}

type Authorized = {
  ok: true
  /** Of the next request. */
  header: string
  token?: Token
}

/** Answers a 401: with the credentials themselves, or with a token that the registry's token server gives for them. */
export async function authorize(
  { ask, allowed }: Means,
  challengeHeader: string | undefined,
  { endpoint, path, credentials, identity, signal }: Asked,
): Promise<Authorized | Failure> {
  const { hostname } = endpoint
  const challenge = parseChallenge(challengeHeader)
  if (!challenge) return failure("Denied", `${hostname} asks for credentials in a way that is not known here`)
  if (challenge.scheme === "Basic")
    return credentials
      ? { ok: true, header: basic(credentials) }
      : failure("Denied", `${hostname} asks for credentials, and none were given for it`)

  const url = URL.parse(challenge.realm)
  if (!url || url.username || url.password)
    return failure("InvalidAnswer", `${hostname} names a token server by what is no URL`)
  const server = urlEndpoint(url, allowed)
  if (!server || (endpoint.isSecure && !server.isSecure))
    return failure("InvalidAnswer", `${hostname} names a token server that is not reached over TLS`)
  // Otherwise any registry could make us request a token from an allowed server, and receive that token.
  if (server.isAllowed && !endpoint.isAllowed) return refusedRealm(hostname, "only allowed registries may name it")

  if (challenge.service) url.searchParams.set("service", challenge.service)
  url.searchParams.set("scope", pullScope(challenge.scope, path))
  const headers: Record<string, string> = credentials ? { authorization: basic(credentials) } : {}
  const body = createBody(maxTokenAnswerBytes)
  const question = {
    method: "GET" as const,
    path: url.pathname + url.search,
    headers,
    read: ({ status }: Answer) => (status === 200 ? body : undefined),
  }
  const answer = await ask(server, question, identity, signal)
  if (!answer.ok) return tokenTroubleOf(answer, hostname)
  if (answer.status !== 200) return tokenFailureOf(answer, server.hostname)
  const token = readToken(body.bytes(), server.hostname)
  if (!token.ok) return token
  return { ok: true, header: `Bearer ${token.value}`, token }
}

/** A missing token server does not mean that the image is missing. */
const tokenFailureOf = (answer: Answer, hostname: string): Failure =>
  answer.status === 404 ? failure("InvalidAnswer", `${hostname} is not a token server`) : failureOf(answer, hostname)

/**
 * A registry that names a token server we may not ask has refused us. Where nothing is known
 * about a registry because its own address is forbidden, a pod may try it; a registry must not be able to choose that.
 */
const refusedRealm = (hostname: string, why: string): Failure => ({
  ...failure("Denied", `${hostname} names a token server that may not be asked: ${why}`),
  isFinal: true,
})

const tokenTroubleOf = (trouble: Failure, hostname: string): Failure =>
  trouble.class === "ForbiddenAddress" ? refusedRealm(hostname, trouble.message) : trouble

const basic = ({ username, password }: Credentials) =>
  `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`

import { createHash, X509Certificate } from "node:crypto"
import { parse } from "yaml"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { ownValue } from "#lib/own.ts"
import { bearer, type Credential, fixedCredentials, type ServerConfig } from "#runtime/client/server-config.ts"

/** All that is left of the kubeconfig of a cluster: one server, one authority, one credential. */
export type SpokeKubeconfig = {
  config: ServerConfig
  /** Of server and authority: a credential is used only where it was registered (S20). */
  registered: string
  /** When the credential ends, as far as it says so. */
  expiresAt?: Instant
}

export type KubeconfigRead = { ok: true; value: SpokeKubeconfig } | { ok: false; error: string }

const maxBytes = 256 * 1024

/** What a hub does not use, and what to write instead. Each would run, read or reach something on behalf of the author. */
const refusedOfUser: Record<string, string> = {
  exec: "names a program to run on the hub: use a token or client-certificate-data",
  "auth-provider": "names a plugin to run on the hub: use a token or client-certificate-data",
  tokenFile: "names a file of the hub: write the token itself",
  "client-certificate": "names a file of the hub: write client-certificate-data",
  "client-key": "names a file of the hub: write client-key-data",
  username: "is a password's: use a token or client-certificate-data",
  password: "is not used: use a token or client-certificate-data",
  as: "impersonates another user: use the credential of that user",
  "as-uid": "impersonates another user: use the credential of that user",
  "as-groups": "impersonates another user: use the credential of that user",
  "as-user-extra": "impersonates another user: use the credential of that user",
}
const refusedOfCluster: Record<string, string> = {
  "proxy-url": "is not used: name a server that the hub reaches directly",
  "certificate-authority": "names a file of the hub: write certificate-authority-data",
}

/**
 * Reads the kubeconfig of a cluster from a Secret. Its author may not be the administrator of the hub, so
 * nothing in it may run a program, read a file or lead past the checks of a connection. Errors name fields, never values.
 */
export function readSpokeKubeconfig(text: string): KubeconfigRead {
  try {
    return { ok: true, value: read(text) }
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, error: error.message }
    throw error
  }
}

class Refusal extends Error {}
const refuse = (message: string): never => {
  throw new Refusal(`the kubeconfig cannot be used: ${message}`)
}

type Fields = Record<string, unknown>

function read(text: string): SpokeKubeconfig {
  if (text.length > maxBytes) refuse(`it has more than ${maxBytes} characters`)
  const document = parsed(text)
  const name = textAt(document, "current-context") ?? refuse("current-context is not set")
  const context = named(document, "contexts", "context", name)
  const clusterName = textAt(context, "cluster") ?? refuse(`contexts[${name}].context.cluster is missing`)
  const userName = textAt(context, "user") ?? refuse(`contexts[${name}].context.user is missing`)
  const cluster = named(document, "clusters", "cluster", clusterName)
  const user = named(document, "users", "user", userName)
  refuseFields(cluster, "cluster", refusedOfCluster)
  refuseFields(user, "user", refusedOfUser)
  if (!["false", undefined].includes(textAt(cluster, "insecure-skip-tls-verify")))
    refuse("cluster.insecure-skip-tls-verify is set: write certificate-authority-data")

  const server = serverOf(textAt(cluster, "server"))
  const ca = pemAt(cluster, "certificate-authority-data") ?? refuse("cluster.certificate-authority-data is missing")
  const serverName = textAt(cluster, "tls-server-name")
  const { credential, expiresAt } = credentialOf(user)
  proveUsable({ ca }, "cluster.certificate-authority-data")
  return {
    config: {
      server,
      namespace: "default",
      tls: { verify: true, ca, ...(serverName !== undefined && { serverName }) },
      credentials: fixedCredentials(credential),
      headers: {},
    },
    registered: createHash("sha256")
      .update([server, ca, serverName ?? ""].join("\n"))
      .digest("hex"),
    ...(expiresAt !== undefined && { expiresAt }),
  }
}

function parsed(text: string): Fields {
  let value: unknown
  try {
    // Every scalar stays text, and a document that grows by its aliases is refused.
    value = parse(text, { schema: "failsafe", maxAliasCount: 0 })
  } catch {
    refuse("it is not YAML") // what the parser says quotes it
  }
  return isFields(value) ? value : refuse("it is not a mapping")
}

function serverOf(written: string | undefined): string {
  const url =
    (written !== undefined && URL.parse(written)) || refuse("cluster.server is no URL: write https://HOST:PORT")
  if (url.protocol !== "https:") refuse("cluster.server is not https: the credential would be sent in the clear")
  if (url.username || url.password || url.search || url.hash)
    refuse("cluster.server has a user, a query or a fragment: write https://HOST:PORT")
  return url.href.replace(/\/+$/, "")
}

function credentialOf(user: Fields): { credential: Credential; expiresAt: Instant | undefined } {
  const token = textAt(user, "token")
  if (token !== undefined) {
    if (!/^[\x21-\x7e]{1,16384}$/.test(token)) refuse("user.token is not a bearer token")
    return { credential: { authorization: bearer(token) }, expiresAt: tokenExpiry(token) }
  }
  const cert = pemAt(user, "client-certificate-data")
  const key = pemAt(user, "client-key-data")
  if (cert === undefined || key === undefined)
    return refuse("the user has no credential: write token, or client-certificate-data and client-key-data")
  proveUsable({ cert, key }, "user.client-certificate-data with client-key-data")
  return { credential: { cert, key }, expiresAt: parseInstant(new X509Certificate(cert).validToDate.toISOString()) }
}

/** Of a service account's token, which says so itself; only for a warning. */
function tokenExpiry(token: string): Instant | undefined {
  const [, claims = ""] = token.split(".")
  try {
    const { exp } = JSON.parse(Buffer.from(claims, "base64url").toString("utf8"))
    return Number.isSafeInteger(exp) && exp > 0 && exp < 1e11 ? exp * 1000 : undefined
  } catch {
    return undefined
  }
}

function pemAt(place: Fields, key: string): string | undefined {
  const data = textAt(place, key)
  if (data === undefined) return undefined
  const pem = Buffer.from(data, "base64").toString("utf8")
  return pem.includes("-----BEGIN") ? pem : refuse(`${key} is not base64 of a PEM file`)
}

function proveUsable(parts: { ca?: string; cert?: string; key?: string }, field: string) {
  try {
    process.getBuiltinModule("node:tls").createSecureContext(parts)
  } catch {
    refuse(`${field} is not usable`)
  }
}

function refuseFields(place: Fields, what: string, refused: Record<string, string>) {
  for (const [key, why] of Object.entries(refused))
    if (ownValue(place, key) !== undefined) refuse(`${what}.${key} ${why}`)
}

function named(document: Fields, list: string, inner: string, name: string): Fields {
  const entries = ownValue(document, list)
  const found = Array.isArray(entries) ? entries.find(each => isFields(each) && each.name === name) : undefined
  const value = isFields(found) ? ownValue(found, inner) : undefined
  return isFields(value) ? value : refuse(`${list} has no entry of the name that is referred to`)
}

function textAt(place: Fields, key: string): string | undefined {
  const value = ownValue(place, key)
  if (value === undefined || value === "" || value === "null" || value === "~") return undefined
  return typeof value === "string" ? value : refuse(`${key} must be a text`)
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

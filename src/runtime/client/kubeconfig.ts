import { readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"
import { type Clock, systemClock } from "../clock.ts"
import type { ExecPlugin } from "./exec-credentials.ts"
import {
  bearer,
  ConfigError,
  type Credential,
  type Credentials,
  fixedCredentials,
  type ServerConfig,
  tokenFileCredentials,
} from "./server-config.ts"

export type KubeconfigOptions = {
  /** A file to read instead of what `KUBECONFIG` lists or of `~/.kube/config`. */
  file?: string | undefined
  /** Instead of the file's `current-context`. */
  context?: string | undefined
  /** Whether a program named in the file may be run for credentials. Only for a person's command line. */
  allowExec?: boolean | undefined
  env?: Record<string, string | undefined>
  clock?: Clock
}

/** Reads and merges kubeconfig files as kubectl does and resolves one context. Writes nothing. */
export async function loadKubeconfig(options: KubeconfigOptions = {}): Promise<ServerConfig> {
  const { clock = systemClock, allowExec = false } = options
  const { files, mustExist } = kubeconfigFiles(options)
  const merged = merge((await Promise.all(files.map(file => readDocument(file, mustExist)))).filter(isThere))
  if (!merged) throw new ConfigError(`no kubeconfig: ${files.join(", ")} ${files.length > 1 ? "do" : "does"} not exist`)

  const context = chooseContext(merged, options.context)
  const cluster = referred(merged.clusters, "clusters", context, "cluster")
  const user = textAt(context, "user") ? referred(merged.users, "users", context, "user") : undefined
  const { server, tls } = await readCluster(cluster)
  const namespace = textAt(context, "namespace") ?? "default"
  // As kubectl: credentials are never sent to a server without TLS.
  if (!user || server.startsWith("http:"))
    return { server, tls, namespace, credentials: fixedCredentials({}), headers: user ? impersonation(user) : {} }
  const credentials = await readUser(user, { clock, allowExec, cluster })
  return { server, tls, namespace, credentials, headers: impersonation(user) }
}

/** The files that count, in order; a single file that the user named must exist. */
export function kubeconfigFiles({ file, env = process.env }: KubeconfigOptions): {
  files: string[]
  mustExist: boolean
} {
  if (file !== undefined) return { files: [file], mustExist: true }
  const listed = (env.KUBECONFIG ?? "").split(delimiter).filter(path => path !== "")
  return { files: listed.length > 0 ? listed : [join(env.HOME || homedir(), ".kube", "config")], mustExist: false }
}

/** A place in a file, with the way to it, so that a message can name it. */
type Place = { file: string; field: string; value: unknown }

const isThere = <T>(value: T | undefined): value is T => value !== undefined
const where = ({ file, field }: Place, key?: string) => `${file}: ${key && field ? `${field}.${key}` : (key ?? field)}`

async function readDocument(file: string, mustExist: boolean): Promise<Place | undefined> {
  let text: string
  try {
    text = await readFile(file, "utf8")
  } catch (cause) {
    if (!mustExist && (cause as NodeJS.ErrnoException).code === "ENOENT") return undefined
    throw new ConfigError(`${file}: cannot read the kubeconfig: ${(cause as Error).message}`, { cause })
  }
  // Loaded only here: the agent on every node never reads a kubeconfig and must not carry a YAML parser in memory.
  const { parse } = await import("yaml")
  try {
    // Every scalar stays text, as in kubectl: a token of digits is not a number.
    return { file, field: "", value: parse(text, { schema: "failsafe" }) ?? {} }
  } catch (cause) {
    throw new ConfigError(`${file}: not YAML: ${(cause as Error).message.split("\n", 1)[0]}`) // the rest quotes secrets
  }
}

function at(place: Place, key: string): Place {
  const { value } = place
  const field = place.field ? `${place.field}.${key}` : key
  if (isAbsent(value)) return { file: place.file, field, value: undefined }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ConfigError(`${where(place)} must be a mapping`)
  return {
    file: place.file,
    field,
    value: Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined,
  }
}

/** Without a schema, YAML's nulls are plain words. */
const isAbsent = (value: unknown) => value === undefined || value === "" || value === "null" || value === "~"

function textAt(place: Place, key: string): string | undefined {
  const found = at(place, key)
  if (isAbsent(found.value)) return undefined
  if (typeof found.value !== "string") throw new ConfigError(`${where(found)} must be a string`)
  return found.value
}

function flagAt(place: Place, key: string): boolean {
  const text = textAt(place, key)
  if (text === undefined || text === "false") return false
  if (text === "true") return true
  throw new ConfigError(`${where(place, key)} must be true or false`)
}

function listAt(place: Place, key: string): Place[] {
  const found = at(place, key)
  if (isAbsent(found.value)) return []
  if (!Array.isArray(found.value)) throw new ConfigError(`${where(found)} must be a list`)
  return found.value.map((value, index) => ({ file: found.file, field: `${found.field}[${index}]`, value }))
}

const textsAt = (place: Place, key: string) =>
  listAt(place, key).map(item => {
    if (typeof item.value !== "string") throw new ConfigError(`${where(item)} must be a string`)
    return item.value
  })

type Merged = {
  currentContext: string | undefined
  contexts: Map<string, Place>
  clusters: Map<string, Place>
  users: Map<string, Place>
  files: string[]
}

/** The first file that defines an entry wins as a whole: a later file never adds fields to it. */
function merge(documents: Place[]): Merged | undefined {
  if (documents.length === 0) return undefined
  const merged: Merged = {
    currentContext: documents.map(document => textAt(document, "current-context")).find(isThere),
    contexts: new Map(),
    clusters: new Map(),
    users: new Map(),
    files: documents.map(({ file }) => file),
  }
  for (const document of documents)
    for (const [list, inner] of [
      ["contexts", "context"],
      ["clusters", "cluster"],
      ["users", "user"],
    ] as const)
      for (const entry of listAt(document, list)) {
        const name = textAt(entry, "name")
        if (name === undefined) throw new ConfigError(`${where(entry, "name")} is missing`)
        const named = { ...at(entry, inner), field: `${list}[${name}].${inner}` }
        if (!merged[list].has(name)) merged[list].set(name, named)
      }
  return merged
}

function chooseContext(merged: Merged, asked: string | undefined): Place {
  const name = asked ?? merged.currentContext
  const have = merged.contexts.size > 0 ? `there are ${[...merged.contexts.keys()].join(", ")}` : "there are none"
  const files = merged.files.join(", ")
  if (name === undefined) throw new ConfigError(`${files}: current-context is not set; choose a context (${have})`)
  const context = merged.contexts.get(name)
  if (!context) throw new ConfigError(`${files}: no context is named "${name}" (${have})`)
  return context
}

function referred(all: Map<string, Place>, list: string, context: Place, key: string): Place {
  const name = textAt(context, key)
  if (name === undefined) throw new ConfigError(`${where(context, key)} is missing: name one of the ${list}`)
  const found = all.get(name)
  if (!found) throw new ConfigError(`${where(context, key)} is "${name}", but ${list} has no such entry`)
  return found
}

async function readCluster(cluster: Place): Promise<Pick<ServerConfig, "server" | "tls">> {
  const written = textAt(cluster, "server")
  const example = "write it as https://host:6443"
  if (written === undefined) throw new ConfigError(`${where(cluster, "server")} is missing: ${example}`)
  const url = URL.parse(written)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new ConfigError(`${where(cluster, "server")} is "${written}", which is no http(s) URL: ${example}`)
  if (url.username || url.search || url.hash)
    throw new ConfigError(`${where(cluster, "server")} must have no user, query or fragment: ${example}`)
  if (textAt(cluster, "proxy-url") !== undefined)
    throw new ConfigError(`${where(cluster, "proxy-url")} is not supported: name a server that is reached directly`)

  const verify = !flagAt(cluster, "insecure-skip-tls-verify")
  const ca = await pemAt(cluster, "certificate-authority")
  const serverName = textAt(cluster, "tls-server-name")
  if (ca && !verify)
    throw new ConfigError(`${where(cluster, "insecure-skip-tls-verify")} contradicts certificate-authority: keep one`)
  if (ca) proveUsable({ ca: ca.pem }, ca.where)
  return {
    server: url.href.replace(/\/+$/, ""),
    tls: { verify, ...(ca && { ca: ca.pem }), ...(serverName && { serverName }) },
  }
}

type UserOptions = { clock: Clock; allowExec: boolean; cluster: Place }

async function readUser(user: Place, { clock, allowExec, cluster }: UserOptions): Promise<Credentials> {
  const provider = at(user, "auth-provider")
  if (!isAbsent(provider.value))
    throw new ConfigError(
      `${where(provider)} is not supported (Kubernetes removed it in 1.26): use exec with your provider's plugin, or a token`,
    )
  const certificate = await clientCertificate(user)

  const tokenFile = textAt(user, "tokenFile")
  if (tokenFile !== undefined) return tokenFileCredentials(relativeTo(user, tokenFile), clock, certificate)
  const token = textAt(user, "token")
  if (token !== undefined) return fixedCredentials({ ...certificate, authorization: bearer(token) })
  const username = textAt(user, "username")
  if (username !== undefined) {
    const pair = Buffer.from(`${username}:${textAt(user, "password") ?? ""}`).toString("base64")
    return fixedCredentials({ ...certificate, authorization: `Basic ${pair}` })
  }
  const exec = at(user, "exec")
  if (isAbsent(exec.value)) return fixedCredentials(certificate)
  if (!allowExec)
    throw new ConfigError(
      `${where(exec)} names a program to run, which only a person's command line does: use a token, tokenFile or client-certificate`,
    )
  const { execCredentials } = await import("./exec-credentials.ts")
  return execCredentials(await readExec(exec, cluster), clock, certificate)
}

async function clientCertificate(user: Place): Promise<Credential> {
  const cert = await pemAt(user, "client-certificate")
  const key = await pemAt(user, "client-key")
  if (!cert && !key) return {}
  if (!cert || !key) {
    const [present, missing] = cert
      ? (["client-certificate", "client-key"] as const)
      : (["client-key", "client-certificate"] as const)
    throw new ConfigError(`${where(user, present)} is there without ${missing}: a client certificate needs both`)
  }
  proveUsable({ cert: cert.pem, key: key.pem }, `${cert.where} with ${key.where.slice(user.file.length + 2)}`)
  return { cert: cert.pem, key: key.pem }
}

/** `X-data` holds base64 and wins over `X`, which names a file. */
async function pemAt(place: Place, key: string): Promise<{ pem: string; where: string } | undefined> {
  const data = textAt(place, `${key}-data`)
  if (data !== undefined) {
    const pem = Buffer.from(data, "base64").toString("utf8")
    if (!pem.includes("-----BEGIN")) throw new ConfigError(`${where(place, `${key}-data`)} is not base64 of a PEM file`)
    return { pem, where: where(place, `${key}-data`) }
  }
  const path = textAt(place, key)
  if (path === undefined) return undefined
  try {
    return { pem: await readFile(relativeTo(place, path), "utf8"), where: where(place, key) }
  } catch (cause) {
    throw new ConfigError(`${where(place, key)}: ${(cause as Error).message}`, { cause })
  }
}

/** Fails now and with the field's name, not as an OpenSSL code with the first request. */
function proveUsable(parts: { ca?: string; cert?: string; key?: string }, field: string) {
  try {
    // Loaded only here: a file without certificates needs no TLS, which takes long to load.
    process.getBuiltinModule("node:tls").createSecureContext(parts)
  } catch (cause) {
    throw new ConfigError(`${field} cannot be used: ${(cause as Error).message}`, { cause })
  }
}

const relativeTo = ({ file }: Place, path: string) => resolve(dirname(file), path)

const execVersions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
const interactiveModes = ["Never", "IfAvailable", "Always"] as const

async function readExec(exec: Place, cluster: Place): Promise<ExecPlugin> {
  const apiVersion = textAt(exec, "apiVersion")
  if (apiVersion === undefined || !execVersions.includes(apiVersion))
    throw new ConfigError(`${where(exec, "apiVersion")} must be ${execVersions.join(" or ")}`)
  const command = textAt(exec, "command")
  if (command === undefined) throw new ConfigError(`${where(exec, "command")} is missing`)
  const written = textAt(exec, "interactiveMode") ?? "IfAvailable"
  const interactiveMode = interactiveModes.find(mode => mode === written)
  if (!interactiveMode)
    throw new ConfigError(`${where(exec, "interactiveMode")} must be ${interactiveModes.join(", ")}`)

  const env: Record<string, string> = {}
  for (const variable of listAt(exec, "env")) {
    const name = textAt(variable, "name")
    if (name === undefined) throw new ConfigError(`${where(variable, "name")} is missing`)
    env[name] = textAt(variable, "value") ?? ""
  }
  return {
    apiVersion,
    // A bare name is looked up in PATH; a path with a slash is relative to the file, like other paths in it.
    command: command.includes("/") ? relativeTo(exec, command) : command,
    args: textsAt(exec, "args"),
    env,
    installHint: textAt(exec, "installHint"),
    interactiveMode,
    cluster: flagAt(exec, "provideClusterInfo") ? await clusterInfo(cluster) : undefined,
    where: where(exec),
  }
}

async function clusterInfo(cluster: Place): Promise<object> {
  const { server, tls } = await readCluster(cluster)
  const extension = listAt(cluster, "extensions").find(
    entry => textAt(entry, "name") === "client.authentication.k8s.io/exec",
  )
  return {
    server,
    ...(tls.serverName && { "tls-server-name": tls.serverName }),
    ...(!tls.verify && { "insecure-skip-tls-verify": true }),
    ...(tls.ca && { "certificate-authority-data": Buffer.from(tls.ca).toString("base64") }),
    ...(extension && { config: at(extension, "extension").value }),
  }
}

/** Without these, we would act with more rights than the file's author meant. */
function impersonation(user: Place): Record<string, string | string[]> {
  const extra = at(user, "as-user-extra")
  if (!isAbsent(extra.value)) throw new ConfigError(`${where(extra)} is not supported: use as, as-uid and as-groups`)
  const name = textAt(user, "as")
  const uid = textAt(user, "as-uid")
  const groups = textsAt(user, "as-groups")
  if (name === undefined && (uid !== undefined || groups.length > 0))
    throw new ConfigError(`${where(user, "as")} is missing: as-uid and as-groups need it`)
  return {
    ...(name !== undefined && { "impersonate-user": name }),
    ...(uid !== undefined && { "impersonate-uid": uid }),
    ...(groups.length > 0 && { "impersonate-group": groups }),
  }
}

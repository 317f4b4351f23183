import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { findProgram, run } from "#tools/kube/command.ts"
import { type ImageOptions, pushImage } from "#tools/kube/images.ts"
import { floor, until } from "./floor.ts"
import { unusedPort } from "./ports.ts"

export type Credentials = { username: string; password: string }

/** How a registry treats callers. */
export type Mood =
  | { do: "serve" }
  /** Ends every connection without an answer, as a registry that is going down does. */
  | { do: "hangUp" }
  | { do: "limit"; retryAfterSeconds: number }
  /** Answers everything with this, as a registry with trouble of its own does. */
  | { do: "answer"; status: number }
  /** Answers, but only after this long. */
  | { do: "delay"; ms: number }

export type Registry = {
  /** `127.0.0.1:PORT`, here and on the real node alike. */
  address: string
  port: number
  /** Under `name:tag`; gives the digest. Nothing that a test does to the registry keeps it from this. */
  push(name: string, options?: ImageOptions): Promise<string>
  /** The very same bits as another registry has under this name. */
  copyFrom(other: Registry, name: string): Promise<void>
  deleteTag(name: string): Promise<void>
  be(mood: Mood): void
  /** Sends the first half of every layer over 1 MB from now on, and the rest when the returned function is called. */
  holdLayers(): () => void
  /** Ends the registry itself, and starts it again with what it had. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
  /** Where it is without what stands in front of it. */
  backend: string
  /** When the first request since the last `be` came. */
  readonly askedAt: number | undefined
}

export type RegistryOptions = {
  credentials?: Credentials
  /** Makes its port reachable from the node; the shared cluster's unless given. */
  expose?: (port: number) => Promise<void>
}

/**
 * A registry for tests on the real node, with something in front of it that fails as registries do. With credentials
 * it requires a token, which its own token server gives for them.
 */
export async function startRegistry(options: RegistryOptions = {}): Promise<Registry> {
  const { credentials, expose = floor().expose } = options
  const folder = mkdtempSync(join(tmpdir(), "aim-registry-"))
  const backend = `127.0.0.1:${await unusedPort()}`
  const config = join(folder, "config.yaml")
  writeFileSync(
    config,
    JSON.stringify({
      version: "0.1",
      log: { level: "error" },
      storage: { filesystem: { rootdirectory: join(folder, "images") }, delete: { enabled: true } },
      http: { addr: backend },
    }),
  )
  let program: ChildProcess | undefined
  const isRunning = () => program && program.exitCode === null && program.signalCode === null
  const start = async () => {
    if (isRunning()) return
    // It must not outlive the tests, however they end.
    program = spawn("setpriv", ["--pdeathsig", "KILL", findProgram("docker-registry")!, "serve", config], {
      stdio: "ignore",
    })
    await until("the registry answers", async () => (await fetch(`http://${backend}/v2/`)).ok)
  }
  const stop = async () => {
    if (!isRunning()) return
    program!.kill("SIGKILL")
    await once(program!, "exit")
  }

  let mood: Mood = { do: "serve" }
  let held: Promise<void> | undefined
  let askedAt: number | undefined
  const tokens = new Set<string>()
  const front = createServer((asked, answer) => {
    handle(asked, answer).catch(() => answer.destroy())
  })

  async function handle(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const now = mood
    askedAt ??= Date.now()
    if (now.do === "hangUp") return void answer.destroy()
    if (now.do === "limit") {
      const error = { code: "TOOMANYREQUESTS", message: "You have reached your pull rate limit" }
      answer.writeHead(429, { "retry-after": String(now.retryAfterSeconds), "content-type": "application/json" })
      return void answer.end(asked.method === "HEAD" ? "" : JSON.stringify({ errors: [error] }))
    }
    if (now.do === "answer") return void answer.writeHead(now.status).end()
    if (now.do === "delay") await new Promise(resolve => setTimeout(resolve, now.ms))
    if (credentials && asked.url?.startsWith("/token")) return giveToken(asked, answer, credentials)
    if (credentials && !tokens.has(asked.headers.authorization?.replace(/^Bearer /, "") ?? ""))
      return refuse(asked, answer)
    await forward(asked, answer)
  }

  function giveToken(asked: IncomingMessage, answer: ServerResponse, { username, password }: Credentials): void {
    if (asked.method !== "GET") return void answer.writeHead(405).end() // containerd then asks the older way
    const shown = Buffer.from(asked.headers.authorization?.replace(/^Basic /, "") ?? "", "base64").toString()
    if (shown !== `${username}:${password}`) return void answer.writeHead(401).end()
    const token = randomBytes(16).toString("hex")
    tokens.add(token)
    answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ token, expires_in: 300 }))
  }

  function refuse({ url = "", method }: IncomingMessage, answer: ServerResponse): void {
    const name = /^\/v2\/(.+)\/(manifests|blobs)\//.exec(url)?.[1]
    const scope = name ? `,scope="repository:${name}:pull"` : ""
    answer.writeHead(401, {
      "www-authenticate": `Bearer realm="http://${address}/token",service="${address}"${scope}`,
      "content-type": "application/json",
    })
    const error = { code: "UNAUTHORIZED", message: "authentication required" }
    answer.end(method === "HEAD" ? "" : JSON.stringify({ errors: [error] }))
  }

  async function forward(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { authorization: _, ...headers } = asked.headers
    const sent = httpRequest(`http://${backend}${asked.url}`, { method: asked.method, headers }).end()
    const [reply] = (await once(sent, "response")) as [IncomingMessage]
    answer.writeHead(reply.statusCode ?? 500, reply.headers)
    const length = Number(reply.headers["content-length"] ?? 0)
    if (held && length > 1_000_000) return await pipeline(inHalves(reply, length, held), answer)
    reply.pipe(answer)
    await once(reply, "close")
  }

  await start()
  front.listen(0, "127.0.0.1")
  await once(front, "listening")
  const { port } = front.address() as AddressInfo
  const address = `127.0.0.1:${port}`
  await expose(port)

  const digestOf = async (name: string) => {
    const [path, tag] = name.split(":")
    const accept = "application/vnd.oci.image.manifest.v1+json"
    const { headers } = await fetch(`http://${backend}/v2/${path}/manifests/${tag}`, { headers: { accept } })
    return headers.get("docker-content-digest")
  }

  return {
    address,
    port,
    backend,
    get askedAt() {
      return askedAt
    },
    push: async (name, options) => (await pushImage(backend, name, options)).digest,
    async copyFrom(other, name) {
      const plain = ["--src-tls-verify=false", "--dest-tls-verify=false"]
      const [from, to] = [`docker://${other.backend}/${name}`, `docker://${backend}/${name}`]
      await run("skopeo", ["--insecure-policy", "copy", "--quiet", "--preserve-digests", ...plain, from, to])
    },
    async deleteTag(name) {
      const path = `http://${backend}/v2/${name.split(":")[0]}/manifests/${await digestOf(name)}`
      const { status } = await fetch(path, { method: "DELETE" })
      if (status !== 202) throw new Error(`deleting ${name}: ${status}`)
    },
    be(next) {
      mood = next
      askedAt = undefined
      // Callers that wait for a slow answer, or hold an open connection, notice it.
      front.closeAllConnections()
    },
    holdLayers() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return () => {
        held = undefined
        resolve()
      }
    },
    stop,
    start,
    async close() {
      const closed = new Promise(resolve => front.close(resolve))
      front.closeAllConnections()
      await Promise.all([closed, stop()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function* inHalves(body: IncomingMessage, length: number, rest: Promise<void>): AsyncIterable<Buffer> {
  let sent = 0
  for await (const part of body) {
    if (sent < length / 2 && sent + part.length >= length / 2) await rest
    sent += part.length
    yield part
  }
}

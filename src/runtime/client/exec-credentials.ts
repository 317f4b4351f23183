import { spawn } from "node:child_process"
import type { Clock } from "../clock.ts"
import { bearer, ConfigError, type Credential, type Credentials } from "./server-config.ts"

export type ExecPlugin = {
  apiVersion: string
  command: string
  args: string[]
  env: Record<string, string>
  installHint: string | undefined
  interactiveMode: "Never" | "IfAvailable" | "Always"
  /** Passed to the plugin where the kubeconfig has `provideClusterInfo`. */
  cluster: object | undefined
  /** `file: users[x].user.exec`, for messages. */
  where: string
}

/** A plugin prints one small JSON document; more than this is something else. */
const maxOutputBytes = 1 << 20

/** Credentials printed by the user's program (aws, gke-gcloud-auth-plugin, kubelogin), kept until they expire. */
export function execCredentials(plugin: ExecPlugin, clock: Clock, others: Credential = {}): Credentials {
  let held: { credential: Credential; expiresAt: number } | undefined
  let running: Promise<Credential> | undefined
  const run = () => {
    // Many requests may find the credential expired at once; a plugin that opens a browser must open only one.
    running ??= runPlugin(plugin)
      .then(({ credential, expiresAt }) => {
        held = { credential: { ...others, ...credential }, expiresAt }
        return held.credential
      })
      .finally(() => {
        running = undefined
      })
    return running
  }
  return {
    current: async () => (held && clock.now() < held.expiresAt ? held.credential : run()),
    async renew(refused) {
      // Another request that was refused meanwhile may have renewed it already.
      const credential = held && held.credential !== refused ? held.credential : await run()
      return credential.authorization === refused.authorization && credential.cert === refused.cert
        ? undefined
        : credential
    },
  }
}

async function runPlugin(plugin: ExecPlugin): Promise<{ credential: Credential; expiresAt: number }> {
  const interactive = plugin.interactiveMode !== "Never" && Boolean(process.stdin.isTTY)
  if (plugin.interactiveMode === "Always" && !interactive)
    throw new ConfigError(`${plugin.where}: ${plugin.command} wants to ask on a terminal, and there is none`)

  const info = {
    apiVersion: plugin.apiVersion,
    kind: "ExecCredential",
    spec: { interactive, ...(plugin.cluster && { cluster: plugin.cluster }) },
  }
  const env = { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }
  return parseCredential(await outputOf(plugin, env, interactive), plugin)
}

function outputOf(plugin: ExecPlugin, env: NodeJS.ProcessEnv, interactive: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (problem: string, cause?: unknown) =>
      reject(new ConfigError(`${plugin.where}: ${plugin.command} ${problem}${hint(plugin)}`, { cause }))
    const child = spawn(plugin.command, plugin.args, {
      env,
      stdio: [interactive ? "inherit" : "ignore", "pipe", "inherit"],
    })
    const chunks: Buffer[] = []
    let size = 0
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size > maxOutputBytes) child.kill()
      else chunks.push(chunk)
    })
    child.on("error", cause =>
      fail("code" in cause && cause.code === "ENOENT" ? "is not installed" : "could not be started", cause),
    )
    child.on("close", (code, killedBy) => {
      if (size > maxOutputBytes) fail("printed more than 1 MB, so not an ExecCredential")
      else if (code !== 0) fail(killedBy ? `was ended by ${killedBy}` : `failed with exit code ${code}`)
      else resolve(Buffer.concat(chunks).toString("utf8"))
    })
  })
}

const hint = ({ installHint }: ExecPlugin) => (installHint ? `\n${installHint.trim()}` : "")

function parseCredential(output: string, plugin: ExecPlugin): { credential: Credential; expiresAt: number } {
  const wrong = (problem: string) => new ConfigError(`${plugin.where}: ${plugin.command} ${problem}`)
  let printed: { apiVersion?: unknown; kind?: unknown; status?: Record<string, unknown> }
  try {
    printed = JSON.parse(output) ?? {}
  } catch {
    throw wrong("did not print JSON") // without the output: it may hold half a token
  }
  if (printed.kind !== "ExecCredential") throw wrong("did not print an ExecCredential")
  if (printed.apiVersion !== plugin.apiVersion)
    throw wrong(
      `answered in ${String(printed.apiVersion)} but was asked for ${plugin.apiVersion}: set apiVersion to that`,
    )

  const text = (field: string) => {
    const value = printed.status?.[field]
    return typeof value === "string" && value !== "" ? value : undefined
  }
  const [token, cert, key, expires] = ["token", "clientCertificateData", "clientKeyData", "expirationTimestamp"].map(
    text,
  )
  if (!token && !(cert && key)) throw wrong("printed neither a token nor a client certificate with its key")
  const expiresAt = expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires)
  if (Number.isNaN(expiresAt)) throw wrong(`printed the expirationTimestamp "${expires}", which is not a time`)
  return {
    credential: { ...(token && { authorization: bearer(token) }), ...(cert && key && { cert, key }) },
    expiresAt,
  }
}

import { randomBytes } from "node:crypto"
import { readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseManifests } from "#api/manifest.ts"
import { type Cluster, parseRegistries, type ServeOptions, serveHttp } from "#cluster-sim/index.ts"
import { type Certificate, createAuthority, type Subject } from "#lib/certificate.ts"
import type { Transport } from "#runtime/client/index.ts"
import { scaledClock } from "#runtime/clock.ts"
import { createLogger } from "#runtime/log.ts"
import { dashboardOf, present, startDashboard } from "../browser/serve.ts"
import { Failure, type Input, type Run, UsageError, type World } from "../command.ts"
import { startLocalCluster } from "../local-cluster.ts"
import type { TrafficWords } from "../local-traffic.ts"
import { keepSaving, loadCluster, saveCluster } from "../saved-cluster.ts"

export const run: Run = async (input, world) => {
  const wanted = read(input)
  const saved = wanted.data && (await loadCluster(wanted.data))
  const manifests = await readManifests(wanted.load)
  const registries = wanted.registries ? await readRegistries(wanted.registries) : undefined
  const clock = scaledClock(world.clock, wanted.speed)
  const log = createLogger({ level: "warn", clock })
  const secrets = { token: secret(), tokenKey: secret() }
  const local = await startLocalCluster({
    clock,
    nodes: wanted.nodes,
    registries,
    hasGateway: wanted.gateway,
    traffic: wanted.traffic,
    saved: saved || undefined,
    identity: { users: { [secrets.token]: admin }, tokenKey: secrets.tokenKey },
    log,
  })
  const { serving, access } = await serve(local.cluster, wanted, secrets.token, world.clock.now())
  const kubeconfig = wanted.kubeconfig ?? join(tmpdir(), `aim-up-${serving.port}.kubeconfig`)
  await writeFile(kubeconfig, kubeconfigFor(serving.url, access), { mode: 0o600 }).catch(error => {
    throw new Failure(`--write-kubeconfig ${kubeconfig}: ${error.message}`)
  })
  if (!saved) await local.apply(...manifests)
  // Checked first: a folder that cannot be written is reported now, and not after an hour's work.
  if (wanted.data) await saveCluster(local.cluster, wanted.data)
  world.say(
    welcome({ url: serving.url, kubeconfig, nodes: wanted.nodes, program: world.program, isRestored: Boolean(saved) }),
  )

  const dashboard = wanted.dashboard
    ? await startDashboard(world, dashboardOf(local, { speed: wanted.speed, cluster: serving.url, clock }))
    : undefined
  const endShowing = dashboard && present(dashboard, world, { opens: world.view.isTerminal })
  const keeping = wanted.data ? keepSaving(local.cluster, wanted.data, world) : undefined
  await new Promise<void>(done => world.signal.addEventListener("abort", () => done(), { once: true }))
  endShowing?.()
  await dashboard?.close()
  await serving.close()
  await local.stop()
  await keeping
  const isSaved = !wanted.data || (await saveAtTheEnd(local.cluster, wanted.data, world))
  if (!wanted.kubeconfig) await rm(kubeconfig, { force: true })
  return { text: "", exitCode: isSaved ? 0 : 1 }
}

const admin = { name: "admin", groups: ["system:masters"] }

const secret = () => randomBytes(24).toString("base64url")

/** What clients need beside the address: the administrator's token, and a certificate for each other user. */
type Access = { authority?: string; token?: string; clients: readonly (Subject & Certificate)[] }

/**
 * Over TLS, since kubectl keeps credentials to itself otherwise. Without it a request is the administrator's unless
 * it has credentials of its own: `kubectl --as` works there too.
 */
async function serve(cluster: Cluster, { port, tls, users }: Wanted, token: string, now: number) {
  const listening = (transport: Transport, options: ServeOptions) =>
    serveHttp(transport, { port, ...options }).catch(error => {
      throw new Failure(`--port ${port}: ${error.message}`)
    })
  if (!tls) return { serving: await listening(cluster.transport, {}), access: { clients: [] } as Access }
  const authority = createAuthority({ name: "aim-up", now, days: 365 })
  const own = authority.forServer({ name: "kube-apiserver" }, ["localhost", "127.0.0.1"])
  const serving = await listening(cluster.front(), {
    tls: { ...own, clientAuthority: authority.cert },
    forClient: cluster.front,
  })
  const clients = users.map(user => ({ ...user, ...authority.forClient(user) }))
  const access: Access = { authority: authority.cert, token, clients }
  return { serving, access }
}

/** Ctrl-C is no failure, but losing what was done since the last save is. */
const saveAtTheEnd = (cluster: Cluster, folder: string, { say }: Pick<World, "say">): Promise<boolean> =>
  saveCluster(cluster, folder).then(
    () => true,
    error => {
      say(`${error.message}\nThe last changes are lost.`)
      return false
    },
  )

type Wanted = ReturnType<typeof read>

/** `NAME` or `NAME=GROUP,GROUP`. */
function userIn(text: string): Subject {
  const [name = "", groups = ""] = text.split("=")
  if (!/^[\w.:@-]+$/.test(name) || name === "aim") throw new UsageError(`--user: ${text || '""'} is not a user's name`)
  return { name, organizations: groups.split(",").filter(Boolean) }
}

/** `HOST=REQUESTS`. */
function trafficIn(text: string): TrafficWords {
  const [, host = "", rate = ""] = /^([a-z0-9.-]+)=(\d+)$/.exec(text) ?? []
  const perSecond = Number(rate)
  if (host === "" || perSecond < 1 || perSecond > 1000)
    throw new UsageError(
      `--traffic: ${text || '""'} is not HOST=REQUESTS: write shop.example.com=50, at most 1000 a second`,
    )
  return { host, perSecond }
}

function read({ options }: Input) {
  const number = (name: string, least: number, most: number) => {
    const text = String(options[name])
    const value = Number(text)
    if (text.trim() === "" || !Number.isFinite(value) || value < least || value > most)
      throw new UsageError(`--${name}: ${text} is not a number from ${least} to ${most}`)
    return value
  }
  return {
    nodes: Math.floor(number("nodes", 0, 1000)),
    port: Math.floor(number("port", 0, 65_535)),
    speed: number("speed", 0.1, 1000),
    gateway: options.gateway === true,
    traffic: ((options.traffic as string[] | undefined) ?? []).map(trafficIn),
    load: (options.load as string[] | undefined) ?? [],
    kubeconfig: options.writeKubeconfig as string | undefined,
    tls: options.tls !== false,
    users: ((options.user as string[] | undefined) ?? []).map(userIn),
    data: options.data as string | undefined,
    registries: options.registries as string | undefined,
    dashboard: options.dashboard === true,
  }
}

async function readManifests(files: readonly string[]) {
  const all: unknown[] = []
  for (const file of files) {
    const { manifests, errors } = parseManifests(await readText(file, "--load"))
    const [first] = errors
    if (first) throw new Failure(`${file}:${first.line}: ${first.message}`)
    all.push(...manifests.map(({ value }) => value))
  }
  return all
}

async function readRegistries(file: string) {
  const text = await readText(file, "--registries")
  try {
    return parseRegistries(text)
  } catch (error) {
    throw new Failure(`--registries ${file}: ${(error as Error).message}`)
  }
}

const readText = (file: string, option: string) =>
  readFile(file, "utf8").catch(error => {
    throw new Failure(`${option} ${file}: ${error.code === "ENOENT" ? "no such file" : error.message}`)
  })

/** JSON is YAML, so every reader of kubeconfigs takes it. */
function kubeconfigFor(server: string, { authority, token, clients }: Access): string {
  const encoded = (text: string) => Buffer.from(text).toString("base64")
  const users = clients.map(({ name, cert, key }) => ({
    name,
    user: { "client-certificate-data": encoded(cert), "client-key-data": encoded(key) },
  }))
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "aim", cluster: { server, ...(authority && { "certificate-authority-data": encoded(authority) }) } },
    ],
    users: [{ name: "aim", user: token ? { token } : {} }, ...users],
    contexts: ["aim", ...clients.map(({ name }) => name)].map(name => ({
      name,
      context: { cluster: "aim", user: name, namespace: "default" },
    })),
    "current-context": "aim",
  }
  return `${JSON.stringify(config, undefined, 2)}\n`
}

function welcome(facts: {
  url: string
  kubeconfig: string
  nodes: number
  program: string
  isRestored: boolean
}): string {
  const { url, kubeconfig, nodes, program, isRestored } = facts
  return `${isRestored ? "The cluster is back" : "A cluster is up"}: ${nodes} nodes, our controllers running, at ${url}

  export KUBECONFIG=${resolve(kubeconfig)}
  kubectl get nodes
  kubectl create deployment web --image=nginx:1 --replicas=3
  ${program} status -w

It lives in this process and simulates what runs on its nodes; docs/cluster-sim.md says what it does not do.
Ctrl-C ends it.`
}

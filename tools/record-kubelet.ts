// `node tools/record-kubelet.ts [case…]`: records the lives of pods on a real kubelet, for the simulated one.
// With the case `node` alone: what becomes of a node that is cordoned, tainted, lost and found, and of its pods; with
// `runtime` alone: of one whose container runtime dies and returns.
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTlsServer, request } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import {
  cases,
  gateOf,
  images,
  podOf,
  type RecordedCase,
  type RecordedImage,
  type Step,
} from "../src/cluster-sim/physics/node/recorded/cases.ts"
import {
  type NodeSighting,
  type NodeStep,
  nodeSeconds,
  nodeSteps,
  nodeStoryLine,
  runtimeSeconds,
  runtimeSteps,
} from "../src/cluster-sim/physics/node/recorded/node-story.ts"
import { type Sighting, story } from "../src/cluster-sim/physics/node/recorded/replay.ts"
import { connectRuntime, kubeletAnnotations, kubeletLabels } from "../src/runtime/cri/index.ts"
import { type Api, connectApi, type Json } from "./kube/api.ts"
import { type Cluster, startCluster } from "./kube/cluster.ts"
import { run } from "./kube/command.ts"
import { pushImage } from "./kube/images.ts"
import { network } from "./kube/orders.ts"

const file = join(import.meta.dirname, "../src/cluster-sim/physics/node/recorded/recorded.json")
const wanted = process.argv.slice(2)
const namespace = "default"
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

const stop = new AbortController()
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stop.abort(new Error(name)))

const cluster = await startCluster({ kwokNodes: 0, say: console.error, signal: stop.signal })
const api = connectApi(cluster.access)
const runtime = connectRuntime({ socketPath: cluster.containerdSocket as string })
/** Labels and annotations of the containers of a case, as the runtime lists them. */
const written: Record<string, Json> = {}
/** The kubelet's hash of a container, with the image by its real name: of that it is made. */
let hashed: { name: string; image: string; hash: string } | undefined
try {
  if (wanted.length === 1 && wanted[0] === "node") await recordNode("nodeStory", nodeSteps, nodeSeconds)
  else if (wanted.length === 1 && wanted[0] === "runtime")
    await recordNode("runtimeStory", runtimeSteps, runtimeSeconds)
  else await record()
} catch (error) {
  console.error(error)
} finally {
  api.close()
  runtime.close()
  await cluster.stop()
}
process.exit(0)

async function record() {
  const registry = cluster.registry as string
  for (const [name, image] of Object.entries(images)) {
    await pushImage(registry, name, {
      command: ["/bin/sh", "-c", scriptOf(image)],
      ...(image.paddingBytes && { paddingBytes: image.paddingBytes }),
    })
  }
  const faulty = await serveFaults(cluster)
  const hosts: [name: string, host: string][] = [
    ["good.test", registry],
    ["faulty.test", `127.0.0.1:${faulty.port}`],
    ["tls.test", `${network.address}:${faulty.tlsPort}`],
    ["plain.test", `${network.address}:${faulty.plainPort}`],
  ]
  const outward = (value: Json) => replaceAll(value, hosts)
  const inward = (value: Json) =>
    replaceAll(
      value,
      hosts.map(([name, host]) => [host, name] as const),
    )

  const sightings = new Map<string, Sighting[]>()
  const created = new Map<string, number>()
  const see = (name: string, sighting: Omit<Sighting, "atMs">) => {
    const atMs = Date.now() - (created.get(name) ?? Date.now())
    const list = sightings.get(name) ?? []
    sightings.set(name, list)
    list.push({ atMs, ...sighting })
  }
  watch(cluster, `/api/v1/namespaces/${namespace}/pods`, (type, pod) => {
    const { name, generation, deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata
    if (type === "DELETED") return see(name, { gone: true, pod: inward(pod.status) })
    see(name, {
      pod: inward({
        generation,
        deletionTimestamp,
        deletionGracePeriodSeconds,
        nodeName: pod.spec.nodeName,
        ...pod.status,
      }),
    })
  })
  watch(cluster, `/api/v1/namespaces/${namespace}/events`, (type, event) => {
    if (type === "DELETED" || event.involvedObject.kind !== "Pod") return
    const { metadata, involvedObject, managedFields: _, ...rest } = event
    const { fieldPath } = involvedObject
    see(involvedObject.name, { event: inward({ name: metadata.name, fieldPath, ...rest }) })
  })
  await pause(500)

  const chosen = cases.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
  await pause(500)
  // The images that the cases find on the node.
  const known = Object.entries(images).filter(([, { isFresh }]) => !isFresh)
  const containers = known.map(([name], index) => ({ name: `app-${index}`, image: `good.test/${name}` }))
  await live(api, { name: "warm-up", spec: { containers, restartPolicy: "Never" }, seconds: 12 }, outward, created)
  // A few at a time: the machine has two cores, and what is measured is the kubelet's own pace.
  const inParallel = 8
  const queue = [...chosen].sort((a, b) => b.seconds - a.seconds)
  const worker = async (delay: number) => {
    await pause(delay)
    for (let next = queue.shift(); next && !stop.signal.aborted; next = queue.shift()) {
      console.error(`${new Date().toISOString()} ${next.name}`)
      await live(api, next, outward, created).catch(error => console.error(next?.name, error))
    }
  }
  await Promise.all(Array.from({ length: inParallel }, (_, index) => worker(index * 700)))
  const node = await api.get("/api/v1/nodes")
  const recorded: Json = wanted.length > 0 ? JSON.parse(readFileSync(file, "utf8")) : { cases: {} }
  for (const each of chosen) recorded.cases[each.name] = story(sightings.get(each.name) ?? [], 1000 * each.seconds)
  for (const [name, containers] of Object.entries(written)) recorded.cases[name].containers = inward(containers)
  if (hashed) recorded.hashed = hashed
  recorded.node = node.items[0]
  recorded.lease = await api.find(
    `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node.items[0].metadata.name}`,
  )
  for (const object of [recorded.node, recorded.lease]) delete object.metadata.managedFields
  writeFileSync(file, `${JSON.stringify(recorded, undefined, 1)}\n`)
  console.error(`wrote ${file}`)
}

async function recordNode(story: string, steps: readonly NodeStep[], seconds: number) {
  const registry = cluster.registry as string
  await pushImage(registry, "web:1", { command: ["/bin/sh", "-c", scriptOf({})] })
  const started = Date.now()
  const seen: NodeSighting[] = []
  const see = (type: string, object: Json) => {
    const text = type === "DELETED" ? `${object.kind} ${object.metadata.name} gone` : nodeStoryLine(object)
    const about = `${object.kind} ${object.metadata?.name}`
    if (text && seen.findLast(each => each.about === about)?.text !== text)
      seen.push({ atMs: Date.now() - started, about, text })
  }
  for (const path of ["nodes", `namespaces/${namespace}/pods`, `namespaces/${namespace}/events`])
    watch(cluster, `/api/v1/${path}`, see)
  await pause(1000)
  for (const step of steps) {
    await pause(started + 1000 * step.atSeconds - Date.now())
    console.error(`${new Date().toISOString()} ${JSON.stringify(step)}`)
    if (step.do === "stopKubelet") await cluster.stopProgram("kubelet", "SIGKILL")
    if (step.do === "startKubelet") await cluster.startProgram("kubelet")
    if (step.do === "stopRuntime") await cluster.stopProgram("containerd", "SIGKILL")
    if (step.do === "startRuntime") await cluster.startProgram("containerd")
    if (step.do === "patchNode") await api.patch("/api/v1/nodes/real-0", step.body)
    if (step.do === "pod")
      await api.create(`/api/v1/namespaces/${namespace}/pods`, {
        ...podOf({
          name: step.name,
          spec: { containers: [{ name: "app", image: `${registry}/web:1` }], ...step.spec },
          seconds: 0,
        }),
      })
  }
  await pause(started + 1000 * seconds - Date.now())
  const recorded: Json = JSON.parse(readFileSync(file, "utf8"))
  recorded[story] = seen
  writeFileSync(file, `${JSON.stringify(recorded, undefined, 1)}\n`)
}

/** One pod from its creation to the end of the time it is looked at. */
async function live(api: Api, each: RecordedCase, outward: (value: Json) => Json, created: Map<string, number>) {
  const pods = `/api/v1/namespaces/${namespace}/pods`
  const started = Date.now()
  created.set(each.name, started)
  await api.create(pods, outward(podOf(each)))
  for (const step of each.steps ?? []) {
    await pause(started + step.atSeconds * 1000 - Date.now())
    await act(api, `${pods}/${each.name}`, each, outward(step) as Step)
  }
  await pause(started + each.seconds * 1000 - Date.now())
  await api.remove(`${pods}/${each.name}?gracePeriodSeconds=0`)
}

async function act(api: Api, path: string, { name, spec }: RecordedCase, step: Step) {
  // In the query: a DELETE with a body would need a length of its own.
  if (step.do === "delete")
    return api.remove(`${path}${step.grace === undefined ? "" : `?gracePeriodSeconds=${step.grace}`}`)
  if (step.do === "patch") return api.patchStrategically(path, step.body)
  if (step.do === "gate") return api.patchStrategically(`${path}/status`, gateOf(step))
  if (step.do === "evict")
    return api.create(`${path}/eviction`, { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } })
  if (step.do === "stop") return stopContainer(path, { name, spec, seconds: 0 }, step)
  const list = spec.containers.some((container: Json) => container.name === step.container)
    ? "containers"
    : "initContainers"
  return api.patchStrategically(path, { spec: { [list]: [{ name: step.container, image: step.image }] } })
}

/** Stops a container past the kubelet, and keeps what the kubelet had written on the pod's containers. */
async function stopContainer(path: string, { name }: RecordedCase, step: Step & { do: "stop" }) {
  const { metadata, spec, status } = await api.get(path)
  const { containerID } = status.containerStatuses.find((each: Json) => each.name === step.container)
  const containers = await runtime.listContainers({ labels: { [kubeletLabels.podUid]: metadata.uid } })
  written[name] ??= containers
    .map(({ name, labels, annotations }) => replaceAll({ name, labels, annotations }, [[metadata.uid, "UID"]]))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const { annotations } = containers.find(({ name }) => name === step.container) as Json
  const { image } = spec.containers.find((each: Json) => each.name === step.container)
  hashed ??= { name: step.container, image, hash: annotations[kubeletAnnotations.hash] }
  await runtime.stopContainer(containerID.replace("containerd://", ""), { graceSeconds: step.grace })
}

function scriptOf(image: RecordedImage): string {
  const { readyAfterSeconds = 0, neverReady, exitsAfterSeconds, exitCode = 0, ignoresTerm } = image
  const trap = ignoresTerm ? "trap '' TERM" : "trap 'exit 0' TERM"
  const serve = neverReady ? ":" : "httpd -p 8080 -h /srv/www"
  const wait = readyAfterSeconds ? `sleep ${readyAfterSeconds} & wait $!; ` : ""
  if (exitsAfterSeconds) return `${trap}; sleep ${exitsAfterSeconds} & wait $!; exit ${exitCode}`
  return `${trap}; ${wait}${serve}; while :; do sleep 3600 & wait $!; done`
}

/** A registry that answers every pull with the fault that the repository's name asks for. */
async function serveFaults(cluster: Cluster) {
  const listen = async (server: {
    listen: (port: number, host: string, done: () => void) => unknown
    address(): unknown
  }) => {
    await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    await cluster.expose(port)
    return port
  }
  const port = await listen(createServer((asked, answer) => fault(asked, answer, port)))
  const [cert, key] = ["faulty.crt", "faulty.key"].map(name => join(cluster.folder, name)) as [string, string]
  const self = [
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "10",
    "-subj",
    "/CN=faulty",
    "-keyout",
    key,
    "-out",
    cert,
  ]
  await run("openssl", ["req", ...self, "-addext", `subjectAltName=IP:${network.address}`])
  const tls = { cert: readFileSync(cert), key: readFileSync(key) }
  const tlsPort = await listen(createTlsServer(tls, (_, answer) => answer.end()))
  const plainPort = await listen(createServer((_, answer) => answer.end()))
  // Without these files containerd speaks TLS with them, as with any registry.
  for (const each of [tlsPort, plainPort])
    rmSync(join(cluster.folder, "registries", `${network.address}:${each}`), { recursive: true })
  return { port, tlsPort, plainPort }
}

function fault(asked: IncomingMessage, answer: ServerResponse, port: number) {
  const path = asked.url ?? ""
  const host = `127.0.0.1:${port}`
  const say = (status: number, headers: Record<string, string> = {}, code = "ERROR", message = "") =>
    answer
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(asked.method === "HEAD" ? undefined : JSON.stringify({ errors: [{ code, message: message || code }] }))
  if (path.startsWith("/token/denied")) return say(401, {}, "UNAUTHORIZED", "authentication required")
  if (path.startsWith("/token"))
    return answer.writeHead(200, { "content-type": "application/json" }).end('{"token":"abc"}')
  const repository = /^\/v2\/([^/]+)\//.exec(path)?.[1]
  switch (repository) {
    case "bare-401":
      return say(401, {}, "UNAUTHORIZED", "authentication required")
    case "basic-401":
      return say(401, { "www-authenticate": 'Basic realm="registry"' }, "UNAUTHORIZED", "authentication required")
    case "token-401":
      return say(401, { "www-authenticate": `Bearer realm="http://${host}/token/denied",service="registry"` })
    case "scope-401": {
      const error = asked.headers.authorization ? ',error="insufficient_scope"' : ""
      const realm = `Bearer realm="http://${host}/token",service="registry",scope="repository:scope-401:pull"${error}`
      return say(401, { "www-authenticate": realm }, "UNAUTHORIZED", "authentication required")
    }
    case "status-429":
      return say(429, { "retry-after": "30" }, "TOOMANYREQUESTS", "You have reached your pull rate limit.")
    case "reset":
      return answer.destroy()
    case "no-platform": {
      const type = "application/vnd.oci.image.index.v1+json"
      const mediaType = "application/vnd.oci.image.manifest.v1+json"
      const platform = { architecture: "s390x", os: "linux" }
      const manifests = [{ mediaType, digest: `sha256:${"1".repeat(64)}`, size: 100, platform }]
      const index = JSON.stringify({ schemaVersion: 2, mediaType: type, manifests })
      return answer
        .writeHead(200, { "content-type": type, "content-length": String(index.length) })
        .end(asked.method === "HEAD" ? undefined : index)
    }
    default: {
      const status = /^status-(\d+)$/.exec(repository ?? "")?.[1]
      return say(Number(status ?? 404))
    }
  }
}

function watch({ access }: Cluster, path: string, told: (type: string, object: Json) => void) {
  const url = new URL(`${path}?watch=1&timeoutSeconds=3600`, access.server)
  const headers = { authorization: `Bearer ${access.token}` }
  const sent = request(url, { ca: access.certificateAuthority, headers })
  sent.once("error", () => {})
  sent.once("response", response => {
    response.on("error", () => {})
    const lines = createInterface(response)
    lines.on("error", () => {})
    lines.on("line", line => {
      const { type, object } = JSON.parse(line)
      told(type, object)
    })
  })
  sent.end()
}

function replaceAll(value: Json, pairs: readonly (readonly [from: string, to: string])[]): Json {
  return JSON.parse(pairs.reduce((text, [from, to]) => text.replaceAll(from, to), JSON.stringify(value)))
}

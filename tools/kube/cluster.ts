import { randomBytes } from "node:crypto"
import { closeSync, cpSync, existsSync, fstatSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs"
import type { Server } from "node:net"
import { join } from "node:path"
import { type AddOn, type AddOns, makeAddOns, prepareAddOn } from "./add-ons.ts"
import { type Access, type Api, connectApi, type Patience, until } from "./api.ts"
import { prepareBinaries, prepareContainerd } from "./binaries.ts"
import { makeCertificates } from "./certificates.ts"
import { run } from "./command.ts"
import {
  apiServer,
  type Component,
  controllerManager,
  etcd,
  kubeconfig,
  kwok,
  makeTokens,
  scheduler,
} from "./components.ts"
import { listenForOrders } from "./control.ts"
import { pushPauseImage } from "./images.ts"
import { allowPlainHttp, containerd, containerdSocket, kubelet, type NodePlace, pauseImage, registry } from "./node.ts"
import { network } from "./orders.ts"
import { preparePackages } from "./packages.ts"
import { freePort, openSandbox, planHierarchies, type Sandbox } from "./sandbox.ts"
import { makeStateFolder, removeLeftovers, removeState, writeOwner } from "./state.ts"

export type ClusterOptions = {
  /** How many nodes kwok simulates: named kwok-0, kwok-1, …; labelled type=kwok and tainted. */
  kwokNodes?: number
  /** What happens to their pods, as stages of kwok. Its built-in ones give a container no ID, and never restart one. */
  kwokStages?: readonly object[]
  /** Whether there is a real node too, with kubelet, containerd and a registry. */
  kubelet?: boolean
  /** Which containerd the real node has: Debian's 1.6, or 2.3.5, which is built when it is first asked for. */
  containerd?: "1.6" | "2.3.5"
  /** An older version whose APIs, features and CEL the control plane is to have, such as `1.34`: up to three back. */
  emulatedVersion?: string
  /** What runs besides, from the start. `add` starts it later. */
  addOns?: readonly AddOn[]
  /** Receives the progress, line by line. */
  say?: (line: string) => void
  /** Stops the start half-way. */
  signal?: AbortSignal
  /** Where the programs' logs are copied to when the start fails, or by `keepLogs`. */
  logsFolder?: string
}

export type Cluster = {
  folder: string
  /** Path of an administrator's kubeconfig, for programs outside. */
  kubeconfig: string
  access: Access
  kubectl: string
  /** `127.0.0.1:PORT`: the same reference works here and for containerd. Undefined without a real node. */
  registry?: string
  containerdSocket?: string
  /** For `nsenter --target PID --all`. */
  pid: number
  startedInMs: number
  /** Ends one program, as a crash would with SIGKILL, and later starts it again. */
  stopProgram(name: string, signal?: NodeJS.Signals): Promise<void>
  startProgram(name: string): Promise<void>
  /** Starts what only some tests need, builds it before if need be, and gives its URL outside if it has one. */
  add: AddOns["add"]
  remove: AddOns["remove"]
  /** Of the add-ons that were asked for at the start. */
  urls: Partial<Record<AddOn, string>>
  /** Makes a loopback port of the machine reachable from nodes and pods (also as a plain registry for pulls). */
  expose(port: number): Promise<void>
  /** Copies the programs' logs out of the folder that `stop` removes, and returns the new folder. */
  keepLogs(to: string): string
  stop(): Promise<void>
  /** Resolves when the cluster has ended, by `stop` or by itself. */
  ended: Promise<void>
}

/** Starts a cluster and returns when its nodes are ready. Leaves nothing behind when that fails. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { kwokNodes = 2, kwokStages, kubelet: withNode = true, emulatedVersion, say = () => {}, signal } = options
  const { addOns: wanted = [] } = options
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    throw new Error("a cluster needs Linux and root, for its namespaces")
  if (!withNode && wanted.length > 0)
    throw new Error(`pods that run are needed for ${wanted.join(" and ")}: the cluster must have a real node`)
  await removeLeftovers()
  await preparePackages({ node: withNode, say })
  const binaries = await prepareBinaries(say, signal)
  const containerdFolder = withNode ? await findContainerd(options.containerd, say, signal) : undefined
  for (const name of wanted) await prepareAddOn[name](say, signal)
  signal?.throwIfAborted()

  const started = Date.now()
  const since = () => `${((Date.now() - started) / 1000).toFixed(1)} s`
  const folder = makeStateFolder()
  const hierarchies = planHierarchies(folder)
  writeOwner(folder, hierarchies)
  const groups = hierarchies.map(({ group }) => group)
  let sandbox: Sandbox | undefined
  let api: Api | undefined
  const listeners: Server[] = []
  const over = new AbortController()
  const patience = { withinMs: 120_000, signal: over.signal }
  const stop = async () => {
    over.abort(new Error("the cluster was stopped"))
    api?.close()
    for (const listener of listeners) listener.close()
    await sandbox?.close()
    await removeState(folder, groups)
  }
  const keepLogs = (to: string) => {
    cpSync(join(folder, "logs"), to, { recursive: true })
    return to
  }

  try {
    const making = Promise.all([makeCertificates(folder), chooseSnapshotter(folder)])
    making.catch(() => {}) // looked at below, when there is a sandbox to take down
    const inside = await openSandbox({ folder, hierarchies })
    sandbox = inside
    const [certificates, snapshotter] = await making
    const [apiPort, registryPort] = await Promise.all([freePort(), freePort()])
    listeners.push(apiPort.listener, registryPort.listener)
    writeOwner(folder, hierarchies, inside.pid)
    const tokens = makeTokens(() => randomBytes(16).toString("hex"))
    const nodeParts = { registryPort: registryPort.port, snapshotter, containerdFolder }
    const place: NodePlace = { folder, binaries, certificates, tokens, emulatedVersion, ...nodeParts }
    const programs = new Map<string, Component>()
    const watch = watchPrograms(inside, folder, say, signal)
    const launch = async (...components: Component[]) => {
      for (const component of components) {
        programs.set(component.name, component)
        watch.expected.delete(component.name)
        watch.running.add(component.name)
      }
      await Promise.all(
        components.map(component => inside.start({ ...component, log: logFile(folder, component.name) })),
      )
    }

    await inside.relay(apiPort.listener, { host: network.address, port: network.apiPort })
    const access = {
      server: `https://127.0.0.1:${apiPort.port}`,
      certificateAuthority: readFileSync(certificates.authority, "utf8"),
      token: tokens.admin,
    }
    const kubeconfigFile = join(folder, "kubeconfig")
    writeFileSync(kubeconfigFile, kubeconfig(access), { mode: 0o600 })
    const client = connectApi(access)
    api = client

    const bringUp = async () => {
      await launch(etcd(place), apiServer(place))
      const node = withNode
        ? startNode({ place, sandbox: inside, listener: registryPort.listener, launch, patience })
        : undefined
      // It is awaited only when the API server is up; an error before that must wait, not end the process.
      node?.catch(() => {})
      await until("the API server is ready", async () => (await client.text("/readyz")) === "ok", patience)
      say(`API server ready after ${since()}`)
      await launch(controllerManager(place), scheduler(place), kwok(place, kwokStages))
      await Promise.all([makeKwokNodes(client, kwokNodes), node?.then(() => launch(kubelet(place)))])
      await nodesAreReady(client, kwokNodes + (withNode ? 1 : 0), patience)
      const account = "/api/v1/namespaces/default/serviceaccounts/default"
      await until("the default service account", () => client.find(account), patience)
      say(`nodes ready after ${since()}`)
    }
    await watch.during(bringUp)

    const known = (name: string) => {
      const component = programs.get(name)
      if (!component)
        throw new Error(`no program ${name} in this cluster; there are ${[...programs.keys()].join(", ")}`)
      return component
    }
    const stopProgram = async (name: string, how?: NodeJS.Signals) => {
      watch.expected.add(known(name).name)
      await inside.stop(name, how)
    }
    const startProgram = (name: string) => launch(known(name))
    const expose = async (port: number) => {
      allowPlainHttp(folder, port)
      await inside.expose(port)
    }
    const addOns = makeAddOns({
      ...{ place, sandbox: inside, api: client, launch, patience, say, signal },
      end: async name => {
        if (watch.running.has(name)) await stopProgram(name)
      },
      keep: listener => void listeners.push(listener),
    })
    const add: AddOns["add"] = name => watch.during(() => addOns.add(name))
    const urls: Cluster["urls"] = {}
    for (const [index, url] of (await Promise.all(wanted.map(add))).entries()) if (url) urls[wanted[index]!] = url
    if (wanted.length > 0) say(`${wanted.join(", ")} ready after ${since()}`)
    const control = await listenForOrders(folder, order => {
      if (order.do === "expose") return expose(order.port)
      if (order.do === "add") return add(order.addOn)
      if (order.do === "remove") return addOns.remove(order.addOn)
      return order.do === "stopProgram" ? stopProgram(order.name, order.signal) : startProgram(order.name)
    })
    listeners.push(control)
    if (!withNode) registryPort.listener.close()

    return {
      folder,
      kubeconfig: kubeconfigFile,
      access,
      kubectl: binaries.kubectl,
      ...(withNode ? { registry: `127.0.0.1:${registryPort.port}`, containerdSocket: containerdSocket(folder) } : {}),
      pid: inside.pid,
      startedInMs: Date.now() - started,
      stopProgram,
      startProgram,
      add,
      remove: addOns.remove,
      urls,
      expose,
      keepLogs,
      stop,
      ended: inside.ended,
    }
  } catch (error) {
    if (options.logsFolder) say(`logs of the failed start: ${keepLogs(options.logsFolder)}`)
    await stop()
    throw error
  }
}

/** The folder of a containerd that is not Debian's. */
async function findContainerd(wanted: ClusterOptions["containerd"], ...rest: Parameters<typeof prepareContainerd>) {
  if (wanted === undefined || wanted === "1.6") return undefined
  const { version, folder } = await prepareContainerd(...rest)
  if (version !== `v${wanted}`) throw new Error(`tools/kube/containerd/go.mod has ${version}, not v${wanted}`)
  return folder
}

/** Registry and containerd, and the one image that every pod needs. Ready for kubelet when it returns. */
async function startNode(parts: {
  place: NodePlace
  sandbox: Sandbox
  listener: Server
  launch: (...components: Component[]) => Promise<void>
  patience: Patience
}) {
  const { place, sandbox, listener, launch, patience } = parts
  const address = `127.0.0.1:${place.registryPort}`
  await sandbox.relay(listener, { host: network.address, port: place.registryPort })
  await launch(registry(place), containerd(place))
  await until("the registry answers", async () => (await fetch(`http://${address}/v2/`)).ok, patience)
  await pushPauseImage(address, pauseImage)
  await until("containerd answers", async () => existsSync(containerdSocket(place.folder)), patience)
}

async function makeKwokNodes(api: Api, count: number) {
  const names = Array.from({ length: count }, (_, index) => `kwok-${index}`)
  const inParallel = 20
  for (let next = 0; next < count; next += inParallel)
    await Promise.all(names.slice(next, next + inParallel).map(name => api.create("/api/v1/nodes", kwokNode(name))))
}

function kwokNode(name: string) {
  const capacity = { cpu: "32", memory: "256Gi", pods: "1000", "ephemeral-storage": "1Ti" }
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: { "kwok.x-k8s.io/node": "fake" },
      labels: {
        type: "kwok",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
      },
    },
    spec: { taints: [{ key: "kwok.x-k8s.io/node", value: "fake", effect: "NoSchedule" }] },
    status: { capacity, allocatable: capacity },
  }
}

async function nodesAreReady(api: Api, count: number, patience: Patience) {
  await until(
    `${count} nodes are ready`,
    async () => {
      const { items } = await api.get("/api/v1/nodes")
      return items.filter(isReady).length === count
    },
    patience,
  )
}

type Node = { status: { conditions?: { type: string; status: string }[] }; spec: { taints?: { key: string }[] } }

/** Ready, and the controllers know it: until they take the taint away, nothing is scheduled there. */
function isReady({ status, spec }: Node): boolean {
  const ready = status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false
  return ready && !spec.taints?.some(({ key }) => key === "node.kubernetes.io/not-ready")
}

/** Overlay mounts where the kernel lets us, plain copies otherwise. */
async function chooseSnapshotter(folder: string): Promise<NodePlace["snapshotter"]> {
  const attempt = `cd "$(mktemp -d -p "$1")" && mkdir l u w m && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w o m`
  return await run("unshare", ["--mount", "sh", "-c", attempt, "sh", folder]).then(
    () => "overlayfs",
    () => "native",
  )
}

/** Notices when a program ends unexpectedly: while something starts that is a failure, otherwise it is reported. */
function watchPrograms(sandbox: Sandbox, folder: string, say: (line: string) => void, signal?: AbortSignal) {
  const starts = new Set<(error: Error) => void>()
  const fail = (error: Error) => {
    for (const reject of starts) reject(error)
  }
  signal?.addEventListener("abort", () => fail(signal.reason))
  const [expected, running] = [new Set<string>(), new Set<string>()]
  sandbox.onEnded((name, how) => {
    running.delete(name)
    if (expected.has(name)) return
    const story = `${name} ended (${how}); the end of its log:\n${logEnd(logFile(folder, name))}`
    if (starts.size > 0) fail(new Error(story))
    else say(story)
  })
  return {
    expected,
    running,
    async during<T>(work: () => Promise<T>): Promise<T> {
      signal?.throwIfAborted()
      const { promise, reject } = Promise.withResolvers<never>()
      starts.add(reject)
      try {
        return await Promise.race([work(), promise])
      } finally {
        starts.delete(reject)
      }
    },
  }
}

const logFile = (folder: string, name: string) => join(folder, "logs", `${name}.log`)

function logEnd(file: string, bytes = 2000): string {
  const log = openSync(file, "r")
  try {
    const { size } = fstatSync(log)
    const buffer = Buffer.alloc(Math.min(bytes, size))
    readSync(log, buffer, 0, buffer.length, size - buffer.length)
    return buffer.toString()
  } finally {
    closeSync(log)
  }
}

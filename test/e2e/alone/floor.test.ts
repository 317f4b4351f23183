import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import {
  floor,
  floorWithFaults,
  type Json,
  kubeconfigFor,
  onKwok,
  onRealNode,
  ownCluster,
  quickEnd,
  realNode,
  serviceAccountAccess,
  uniqueNamespace,
  until,
} from "#test/support/floor.ts"
import { connectApi } from "#tools/kube/api.ts"
import { repository } from "#tools/kube/folders.ts"
import { pushImage } from "#tools/kube/images.ts"
import { network } from "#tools/kube/orders.ts"
import { isAlive, mark, type ProcessMark } from "#tools/kube/processes.ts"
import { removeLeftovers } from "#tools/kube/state.ts"

test("every node is ready: the real one and kwok's", async () => {
  const isReady = ({ status }: Json) =>
    status.conditions.some((condition: Json) => condition.type === "Ready" && condition.status === "True")
  const nodes: Json[] = await until("every node is ready", async () => {
    const { items } = await floor().api.get("/api/v1/nodes")
    return items.every(isReady) && items
  })
  expect(nodes.map(({ metadata }) => metadata.name).sort()).toEqual(["kwok-0", "kwok-1", "kwok-2", realNode])
})

test("a pod on the real node runs the image that was pushed, and says which", async () => {
  const { api, pushImage } = floor()
  const namespace = await uniqueNamespace()
  const [one, two] = await Promise.all([pushImage("dicom-service:v1"), pushImage("dicom-service:v2")])
  expect(one.digest).not.toBe(two.digest)

  await api.create(pods(namespace), pod("dicom", { image: two.reference }))
  const running = await podIn(namespace, "dicom", isRunning)
  expect(running.spec.nodeName).toBe(realNode)
  expect(running.status.containerStatuses[0].imageID).toContain(two.digest)
  await until("its log", async () => (await api.text(`${pods(namespace)}/dicom/log`)).includes("version v2"))
})

test("containerd reads which registries have no TLS, also by the node's own address", async () => {
  const { api, folder, pushImage } = floor()
  const namespace = await uniqueNamespace()
  const { reference } = await pushImage("by-address:v1")
  const image = reference.replace("127.0.0.1", network.address) // of loopback it would assume it anyway
  await api.create(pods(namespace), pod("by-address", { image }))
  await podIn(namespace, "by-address", isRunning)
  const log = readFileSync(join(folder, "logs", "containerd.log"), "utf8")
  expect(log.split("\n").filter(line => /hosts\.toml|failed to (decode|load|parse)/i.test(line))).toEqual([])
})

test("the image of a running container can be changed in place", async () => {
  const { api, pushImage } = floor()
  const namespace = await uniqueNamespace()
  const [one, two] = await Promise.all([pushImage("in-place:v1"), pushImage("in-place:v2")])
  const before = await api.create(pods(namespace), pod("dicom", { image: one.reference }))
  await podIn(namespace, "dicom", isRunning)
  await api.patchStrategically(`${pods(namespace)}/dicom`, {
    spec: { containers: [{ name: "main", image: two.reference }] },
  })
  const after = await podIn(namespace, "dicom", ({ status }) =>
    status.containerStatuses?.[0].imageID.includes(two.digest),
  )
  expect(after.metadata.uid).toBe(before.metadata.uid)
})

test("an image that does not exist is reported by kubelet", async () => {
  const { api, registry } = floor()
  const namespace = await uniqueNamespace()
  await api.create(pods(namespace), pod("missing", { image: `${registry}/nobody:v1` }))
  const waiting = ({ status }: Json) => status.containerStatuses?.[0].state.waiting?.reason
  const seen = await podIn(namespace, "missing", pod => /^(ErrImagePull|ImagePullBackOff)$/.test(waiting(pod)))
  expect(seen.status.phase).toBe("Pending")
})

test("a pod reaches the API server as in any cluster, as its service account", async () => {
  const { api, pushImage, kubectl } = floor()
  const namespace = await uniqueNamespace()
  const { reference } = await pushImage("asks-the-api:v1")
  await allow(namespace)
  // Without a kubeconfig, kubectl finds address, certificate authority and token as every program in a pod does.
  const asks = pod("asks", {
    image: reference,
    command: ["kubectl", "get", "pod", "asks", "--output=jsonpath={.metadata.uid}"],
    once: true,
  })
  await api.create(pods(namespace), withFile(asks, { from: kubectl, to: "/bin/kubectl" }))
  const ended = await podIn(namespace, "asks", ({ status }) => /^(Succeeded|Failed)$/.test(status.phase))
  const log = await until("its log", async () => (await api.text(`${pods(namespace)}/asks/log`)) || undefined)
  expect([ended.status.phase, log]).toEqual(["Succeeded", ended.metadata.uid])
})

test("a deployment on kwok's nodes becomes available", async () => {
  const { api } = floor()
  const namespace = await uniqueNamespace()
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  const labels = { app: "fleet" }
  const template = { metadata: { labels }, spec: { ...pod("", { image: "anything:v1" }).spec, ...onKwok } }
  await api.create(deployments, {
    metadata: { name: "fleet" },
    spec: { replicas: 5, selector: { matchLabels: labels }, template },
  })
  await until("five available", async () => (await api.get(`${deployments}/fleet`)).status.availableReplicas === 5)
  const { items } = await api.get(pods(namespace))
  expect(items.every((each: Json) => each.status.phase === "Running" && each.spec.nodeName.startsWith("kwok-"))).toBe(
    true,
  )
})

test("access is by RBAC: an account does what its rules say and no more", async () => {
  const namespace = await uniqueNamespace()
  const access = await serviceAccountAccess(namespace, "reader", [
    { apiGroups: [""], resources: ["nodes"], verbs: ["list"] },
  ])
  const api = connectApi(access)
  expect((await api.get("/api/v1/nodes")).items.length).toBeGreaterThan(0)
  await expect(api.get("/api/v1/secrets")).rejects.toMatchObject({ status: 403 })
  api.close()
  const config = `--kubeconfig=${kubeconfigFor(access)}`
  expect(await floor().kubectlRun("get", "nodes", "--output=name", config)).toContain(`node/${realNode}`)
})

test("the fault proxy loses the answer to a write that the server has done", async () => {
  const namespace = await uniqueNamespace()
  const proxy = await floorWithFaults()
  proxy.fault({ match: { method: "POST", path: /configmaps/ }, do: { do: "swallow" } })
  const api = connectApi(proxy.access)
  await expect(
    api.create(`/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: "lost" } }),
  ).rejects.toThrow()
  expect(await floor().api.find(`/api/v1/namespaces/${namespace}/configmaps/lost`)).toBeDefined()
  expect(proxy.writes()).toMatchObject([{ method: "POST", status: 201 }])
  api.close()
})

test("a server of the test can play the registry that containerd pulls from", async () => {
  const { api, expose, pushImage, registry } = floor()
  const namespace = await uniqueNamespace()
  const { reference } = await pushImage("behind:v1")
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    asked.push(`${request.method} ${request.url}`)
    const headers = { accept: request.headers.accept ?? "*/*" }
    const answer = await fetch(`http://${registry}${request.url}`, { method: request.method ?? "GET", headers })
    const body = Buffer.from(await answer.arrayBuffer())
    response
      .writeHead(answer.status, { ...Object.fromEntries(answer.headers), "content-encoding": "identity" })
      .end(body)
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  await expose(port)

  await api.create(pods(namespace), pod("behind", { image: reference.replace(registry, `127.0.0.1:${port}`) }))
  await podIn(namespace, "behind", isRunning)
  expect(asked).toContainEqual(expect.stringContaining("/v2/behind/manifests/"))
})

test("a program of the cluster can be killed and started again", async () => {
  const { api, stopProgram, startProgram } = floor()
  const namespace = await uniqueNamespace()
  await stopProgram("kube-apiserver", "SIGKILL")
  await expect(api.get("/version")).rejects.toThrow()
  await startProgram("kube-apiserver")
  await until("it answers again", () => api.text("/readyz"))
  expect(await api.find(`/api/v1/namespaces/${namespace}`)).toBeDefined()
  await expect(stopProgram("kube-nothing")).rejects.toThrow("no program kube-nothing")
})

test("a second cluster beside the first leaves nothing behind, containers included", async () => {
  const cluster = await ownCluster({ kwokNodes: 1, kubelet: true })
  const api = connectApi(cluster.access)
  const { reference } = await pushImage(cluster.registry ?? "", "stays:v1")
  await api.create(pods("default"), pod("stays", { image: reference }))
  await until("it runs", async () => isRunning(await api.get(`${pods("default")}/stays`)))
  api.close()
  const before = traces(cluster.folder, cluster.pid)
  // Otherwise this test would pass by seeing nothing at all.
  expect(before.processes.length).toBeGreaterThan(8)
  expect(before.processes.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["etcd", "kubelet", "containerd-shim", "sh"]),
  )

  await cluster.stop()
  expect(leftOf(before)).toEqual({ processes: [], namespaces: [], mounts: [], groups: [], links: [], folder: false })
})

test("a cluster whose process was killed ends too, and the next start cleans up", async () => {
  const child = spawn(process.execPath, [join(repository, "tools", "cluster.ts"), "--no-kubelet", "--nodes", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const { folder, pid } = await new Promise<{ folder: string; pid: number }>((resolve, reject) => {
    let said = ""
    child.once("exit", () => reject(new Error(`it ended early: ${said}`)))
    child.stdout.on("data", data => {
      said += data
      const [, folder, pid] = /KUBECONFIG=(\S+)\/kubeconfig[\s\S]*--target (\d+)/.exec(said) ?? []
      if (folder && pid) resolve({ folder, pid: Number(pid) })
    })
  })
  const before = traces(folder, pid)
  expect(before.processes.map(({ name }) => name)).toContain("kube-apiserver")

  child.kill("SIGKILL")
  await until("its processes end", async () => leftOf(before).processes.length === 0)
  expect(existsSync(folder)).toBe(true)
  expect(await removeLeftovers()).toContain(folder)
  expect(leftOf(before)).toEqual({ processes: [], namespaces: [], mounts: [], groups: [], links: [], folder: false })
  // The cluster that the other tests share is none of its business.
  expect(existsSync(floor().folder)).toBe(true)
})

const pods = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`

function pod(name: string, { image, command, once }: { image: string; command?: string[]; once?: boolean }) {
  const container = { name: "main", image, ...(command ? { command } : {}) }
  const restartPolicy = once ? "Never" : "Always"
  return { metadata: { name }, spec: { containers: [container], restartPolicy, ...quickEnd, ...onRealNode } }
}

/** The pod with one file of the machine in its container. */
function withFile({ metadata, spec }: ReturnType<typeof pod>, { from, to }: { from: string; to: string }) {
  const volumeMounts = [{ name: "file", mountPath: to, readOnly: true }]
  const containers = spec.containers.map(container => ({ ...container, volumeMounts }))
  return {
    metadata,
    spec: { ...spec, containers, volumes: [{ name: "file", hostPath: { path: from, type: "File" } }] },
  }
}

const isRunning = ({ status }: Json) => status.phase === "Running" && status.containerStatuses?.[0].ready

function podIn(namespace: string, name: string, isSo: (pod: Json) => unknown): Promise<Json> {
  return until(`pod ${name}`, async () => {
    const seen = await floor().api.get(`${pods(namespace)}/${name}`)
    return isSo(seen) ? seen : undefined
  })
}

/** Lets the namespace's default account read pods there. */
async function allow(namespace: string) {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
  const { api } = floor()
  await api.create(`${rbac}/roles`, {
    metadata: { name: "reads-pods" },
    rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }],
  })
  await api.create(`${rbac}/rolebindings`, {
    metadata: { name: "reads-pods" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reads-pods" },
    subjects: [{ kind: "ServiceAccount", name: "default", namespace }],
  })
}

type Traces = { folder: string; processes: (ProcessMark & { name: string })[]; namespaces: string[]; groups: string[] }

/** Everything on this machine that belongs to one cluster, seen from outside. */
function traces(folder: string, pid: number): Traces {
  const own = namespacesOf(pid)
  const inside = processIds().filter(id => namespacesOf(id)[0] === own[0] || isBelow(id, pid))
  return {
    folder,
    processes: inside.flatMap(id => {
      const name = nameOf(id)
      return name === undefined ? [] : [{ ...mark(id), name }]
    }),
    namespaces: own,
    groups: JSON.parse(readFileSync(join(folder, "owner.json"), "utf8")).groups,
  }
}

function leftOf({ folder, processes, namespaces, groups }: Traces) {
  return {
    processes: processes.filter(isAlive).map(({ name }) => name),
    namespaces: processIds()
      .flatMap(namespacesOf)
      .filter(namespace => namespaces.includes(namespace)),
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter(line => line.includes(folder)),
    groups: groups.filter(existsSync),
    links: readdirSync("/sys/class/net").filter(name => /^(aim|veth)/.test(name)),
    folder: existsSync(folder),
  }
}

const processIds = () =>
  readdirSync("/proc")
    .filter(name => /^\d+$/.test(name))
    .map(Number)

/** Undefined if the process is gone by now. */
function nameOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim()
  } catch {
    return undefined
  }
}

/** Network, mount and process namespace; a process may be gone by the time it is looked at. */
function namespacesOf(pid: number): string[] {
  try {
    return ["net", "mnt", "pid"].map(kind => readlinkSync(`/proc/${pid}/ns/${kind}`))
  } catch {
    return []
  }
}

/** Containers have namespaces of their own, but are descendants of the cluster's first process. */
function isBelow(pid: number, ancestor: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])
    return parent === ancestor || (parent > 1 && isBelow(parent, ancestor))
  } catch {
    return false
  }
}

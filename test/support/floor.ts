import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type IncomingMessage, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { inject, onTestFinished } from "vitest"
import type { AddOn } from "#tools/kube/add-ons.ts"
import { type Access, type Api, connectApi, type Json, until } from "#tools/kube/api.ts"
import { type Cluster, type ClusterOptions, startCluster } from "#tools/kube/cluster.ts"
import { run } from "#tools/kube/command.ts"
import { kubeconfig, realNode } from "#tools/kube/components.ts"
import { type ClusterOrder, orderCluster } from "#tools/kube/control.ts"
import { type ImageOptions, type PushedImage, pushImage } from "#tools/kube/images.ts"
import { type FaultProxy, faultProxy } from "./fault-proxy.ts"

/** What `floor-setup.ts` passes to a worker about its cluster, which the files that it runs share one after another. */
export type FloorInfo = {
  folder: string
  /** Path of an administrator's kubeconfig. */
  kubeconfig: string
  access: Access
  /** Path of kubectl, of the same version as the server. */
  kubectl: string
  /** `127.0.0.1:PORT`, here and on the real node alike. */
  registry: string
  containerdSocket: string
  /** A process inside, for `nsenter --target PID --all`. */
  pid: number
}

declare module "vitest" {
  interface ProvidedContext {
    /** Path of the socket that answers with the cluster of a worker. */
    floors: string
    /** Which containerd the real nodes of a project have. */
    containerd: NonNullable<ClusterOptions["containerd"]>
  }
}

/** The worker's cluster as a test uses it. */
export type Floor = FloorInfo & {
  /** As administrator. */
  api: Api
  kubectlRun(...args: string[]): Promise<string>
  /** Makes a small image (see `ImageOptions`) and pushes it, e.g. as `dicom-service:v2`. */
  pushImage(name: string, options?: ImageOptions): Promise<PushedImage>
  /**
   * Makes a server of the test on 127.0.0.1 reachable from the node and its pods: as 127.0.0.1:PORT for containerd, so
   * that it can play a registry, and as 10.88.0.1:PORT for pods.
   */
  expose(port: number): Promise<void>
  /** Ends one program of the cluster (kube-controller-manager, …); the test must start it again. */
  stopProgram(name: string, signal?: NodeJS.Signals): Promise<void>
  startProgram(name: string): Promise<void>
  /** Starts kube-proxy, the gateway or Prometheus if it does not run, and gives its URL outside if it has one. */
  add(name: AddOn): Promise<string | undefined>
  remove(name: AddOn): Promise<void>
}

let opened: Floor | undefined

export function floor(): Floor {
  if (!opened) throw new Error("no cluster: test/support/open-floor.ts must be among the project's setupFiles")
  return opened
}

/** Waits for the cluster of this worker; the first file that it runs starts it. */
export async function openFloor(): Promise<void> {
  const path = `/${process.env.VITEST_POOL_ID}-${inject("containerd")}`
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ socketPath: inject("floors"), path }, resolve)
      .once("error", reject)
      .end()
  })
  const said = await text(answer)
  if (answer.statusCode !== 200) throw new Error(`the cluster did not start: ${said}`)
  const info: FloorInfo = JSON.parse(said)
  const env = { ...process.env, KUBECONFIG: info.kubeconfig }
  const order = (what: ClusterOrder) => orderCluster(info.folder, what)
  opened = {
    ...info,
    api: connectApi(info.access),
    kubectlRun: (...args) => run(info.kubectl, args, { env }),
    pushImage: (name, options) => pushImage(info.registry, name, options),
    expose: async port => void (await order({ do: "expose", port })),
    stopProgram: async (name, signal = "SIGTERM") => void (await order({ do: "stopProgram", name, signal })),
    startProgram: async name => void (await order({ do: "startProgram", name })),
    add: addOn => order({ do: "add", addOn }) as Promise<string | undefined>,
    remove: async addOn => void (await order({ do: "remove", addOn })),
  }
}

/** What is to be done when a test ends. Tests that run side by side have one each, in their context. */
export type AtEnd = (end: () => void | Promise<void>) => void

/** A namespace for the test that runs; deleted when it ends. Pods can be created in it at once. */
export async function uniqueNamespace(
  labels: Record<string, string> = {},
  atEnd: AtEnd = onTestFinished,
): Promise<string> {
  const { api } = floor()
  const name = `test-${randomBytes(4).toString("hex")}`
  await api.create("/api/v1/namespaces", { metadata: { name, labels } })
  atEnd(() => api.remove(`/api/v1/namespaces/${name}`))
  // Without it the server refuses pods.
  await until("the namespace's service account", () => api.find(`/api/v1/namespaces/${name}/serviceaccounts/default`))
  return name
}

export type Rules = { apiGroups: string[]; resources: string[]; verbs: string[]; resourceNames?: string[] }[]

/** What an account is asked to be allowed; in all namespaces unless one is given. */
type Right = { verb: string; group?: string; resource: string; name?: string; namespace?: string }

/** A server learns of its roles and bindings by a watch, each on its own: they are in force some time after they were created. */
export async function untilAllowed(account: { namespace: string; name: string }, right: Right): Promise<void> {
  const user = `system:serviceaccount:${account.namespace}:${account.name}`
  const [resource, subresource] = right.resource.split("/")
  const review = { user, resourceAttributes: { ...right, resource, ...(subresource && { subresource }) } }
  await until(`${user} may ${right.verb} ${right.resource}`, async () => {
    const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return (await floor().api.create(path, { spec: review })).status.allowed
  })
}

/**
 * Credentials of a service account that may do what `rules` say, in the whole cluster, and nothing else. They are in
 * force when this returns. What it is given cluster-wide is taken away when the test ends.
 */
export async function serviceAccountAccess(
  namespace: string,
  name: string,
  rules: Rules = [],
  atEnd: AtEnd = onTestFinished,
): Promise<Access> {
  const { api, access } = floor()
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
  await api.create(accounts, { metadata: { name } })
  const rbac = "/apis/rbac.authorization.k8s.io/v1"
  const metadata = { name: `${namespace}-${name}` }
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: metadata.name }
  const subjects = [{ kind: "ServiceAccount", namespace, name }]
  await api.create(`${rbac}/clusterroles`, { metadata, rules })
  await api.create(`${rbac}/clusterrolebindings`, { metadata, roleRef, subjects })
  atEnd(async () => {
    for (const kind of ["clusterrolebindings", "clusterroles"]) await api.remove(`${rbac}/${kind}/${metadata.name}`)
  })
  const { status } = await api.create(`${accounts}/${name}/token`, { spec: { expirationSeconds: 3600 } })
  // One rule is enough: all of them came with one role and one binding.
  const [first] = rules
  if (first)
    await untilAllowed(
      { namespace, name },
      {
        ...{ verb: first.verbs[0]!, group: first.apiGroups[0]!, resource: first.resources[0]! },
        ...(first.resourceNames && { name: first.resourceNames[0]! }),
      },
    )
  return { ...access, token: status.token }
}

/** Writes a kubeconfig for these credentials and gives its path; removed when the test ends. */
export function kubeconfigFor(access: Access, atEnd: AtEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "aim-kubeconfig-"))
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, "kubeconfig")
  writeFileSync(file, kubeconfig(access), { mode: 0o600 })
  return file
}

/** A fault proxy in front of the shared cluster, closed when the test ends. */
export async function floorWithFaults(access: Access = floor().access): Promise<FaultProxy> {
  const proxy = await faultProxy({ target: access })
  onTestFinished(() => proxy.close())
  return proxy
}

/** A cluster of the test's own, for what would disturb others; stopped when the test ends. */
export async function ownCluster(options: ClusterOptions): Promise<Cluster> {
  const cluster = await startCluster(options)
  onTestFinished(() => cluster.stop())
  return cluster
}

export { type Access, type Api, type Cluster, type Json, realNode, until }

/** Lets a pod run on the nodes that kwok plays. */
export const onKwok = {
  nodeSelector: { type: "kwok" },
  tolerations: [{ key: "kwok.x-k8s.io/node", operator: "Exists" }],
}

/** Makes a pod run on the real node; without it, it goes there too, as it tolerates no taint. */
export const onRealNode = { nodeSelector: { type: "real" } }

/** Pods of kwok's nodes are gone when they are deleted: a busy kwok leaves them Terminating for minutes. */
export const endAtOnce = { terminationGracePeriodSeconds: 0 }

/** Pods end at once instead of after half a minute. */
export const quickEnd = { terminationGracePeriodSeconds: 1 }

import { afterAll, beforeAll, expect } from "vitest"
import { approvedAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import { rulesFor } from "#cli/manifests/rules.ts"
import { createCanaryController } from "#controllers/canary/controller.ts"
import type { Surroundings } from "#controllers/surroundings.ts"
import { canaryHold } from "#policies/canary-hold.ts"
import { canarySnapshots } from "#policies/canary-snapshots.ts"
import { connect } from "#runtime/client/index.ts"
import { events } from "#runtime/events.ts"
import { runManager } from "#runtime/manager.ts"
import { gateway } from "#tools/kube/gateway.ts"
import { traefikGateway } from "#tools/kube/traefik.ts"
import { startTraffic, type Traffic, type TrafficOptions, type TrafficResult } from "./clients.ts"
import {
  hostOf,
  openWay,
  pushShop,
  readyPods,
  shopDeployment,
  shopService,
  shopWorkload,
  type Way,
  type WorkloadKind,
} from "./data-planes.ts"
import { installKinds } from "./fleet.ts"
import { type AtEnd, floor, type Json, kubeconfigFor, serviceAccountAccess, uniqueNamespace, until } from "./floor.ts"
import { surroundings } from "./in-process.ts"

/** A Canary on the real floor: the policy, the controller, the application of examples/traffic, and its clients. */

export type Version = "v1" | "v2" | "v3" | "bad"
const images = new Map<Version, string>()
const imageOf = (version: Version): string => images.get(version)!

/** The shop as another version, that its environment makes a bad one. */
export const pushVersion = (name: string, env: Record<string, string>) => pushShop(`shop:${name}`, env)

const policies = [canaryHold, canarySnapshots].flatMap(policyManifests) as Json[]
const policyPath = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`

/**
 * The kind, the policy, the controller and the images, for all tests of a file. Prometheus has to be added before. `more`:
 * what the controller is told beside it.
 */
export function useCanaries(more: (atEnd: AtEnd) => Promise<Surroundings> = async () => ({})): void {
  const stop = new AbortController()
  let ended: Promise<number> | undefined
  const ends: (() => void | Promise<void>)[] = []
  beforeAll(async () => {
    const { api } = floor()
    await installKinds()
    for (const manifest of policies) await api.apply(policyPath(manifest), manifest)
    for (const version of ["v1", "v2", "v3"] as const) images.set(version, await pushShop(`shop:${version}`))
    images.set("bad", await pushShop("shop:bad", { ERROR_RATE: "0.5" }))
    const atEnd: AtEnd = end => void ends.push(end)
    ended = startController(await more(atEnd), stop.signal, atEnd)
    // It never ends by itself: one that could not begin is not waited for.
    const never = ended.then(code => Promise.reject(new Error(`the controller ended with ${code}`)))
    await Promise.race([policyIsInForce(), never])
  })
  afterAll(async () => {
    const { api } = floor()
    // Canaries of tests that are over go with their namespaces, by its hand. The next file begins on a cluster without.
    await until("no Canary is left", async () => (await api.get(everyCanary)).items.length === 0)
    stop.abort()
    await ended
    for (const end of ends) await end()
    for (const manifest of policies.toReversed()) await api.remove(policyPath(manifest))
  })
}

/** With the rights that it declares, and no others. */
async function startController(more: Surroundings, signal: AbortSignal, atEnd: AtEnd): Promise<number> {
  const controller = createCanaryController({ metricsServer: (await floor().add("prometheus"))!, ...more })
  const recording = { resource: events, verbs: ["create", "patch"] } as const
  const rules = rulesFor([...controller.permissions, recording])
  // A namespace of its own: the account goes with it, and another file on this cluster makes its own.
  const access = await serviceAccountAccess(await uniqueNamespace({}, atEnd), "canaries", rules, atEnd)
  const { transport } = await connect({ kubeconfig: kubeconfigFor(access, atEnd) })
  return runManager({ ...surroundings, transport, controllers: [controller], leaderElect: false, signal })
}

const everyCanary = "/apis/autoimagemanager.io/v1alpha1/canaries"
const canariesPath = (namespace: string) => `/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/canaries`
const workloadsPath = (namespace: string, kind: WorkloadKind = "Deployment") =>
  `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`
const servicesPath = (namespace: string) => `/api/v1/namespaces/${namespace}/services`

/** A policy is in force some time after it was created: a Deployment without pods shows when. */
async function policyIsInForce(): Promise<void> {
  const { api } = floor()
  const ends: (() => void | Promise<void>)[] = []
  const namespace = await uniqueNamespace({}, end => void ends.push(end))
  await api.create(workloadsPath(namespace), shopDeployment("shop", imageOf("v1"), { replicas: 0 }))
  await api.create(canariesPath(namespace), canaryManifest(byService({ iterations: 1 })))
  await until("the policy is in force", async () => {
    const { metadata } = await api.get(`${workloadsPath(namespace)}/shop`)
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { template: changed } }
    const tried = await api.patch(`${workloadsPath(namespace)}/shop?dryRun=All`, body)
    return tried.metadata.labels?.["autoimagemanager.io/held"] !== undefined
  })
  for (const end of ends) await end()
}
const changed = { metadata: { annotations: { tried: "policy" } } }

type Spec = Partial<CanarySpecInput> & Json
type Analysis = Partial<CanarySpecInput["analysis"]>

/** The least interval there is. */
const analysisOf = (analysis: Analysis): Json => ({ interval: "10s", threshold: 1, ...analysis })

export const byService = (analysis: Analysis, spec: Json = {}): Spec => ({
  provider: "kubernetes",
  service: { port: 80, targetPort: "http" },
  analysis: analysisOf(analysis),
  ...spec,
})

export const byRoute = (analysis: Analysis, spec: Json = {}): Spec => ({
  provider: "gatewayapi:v1",
  service: { port: 80, targetPort: "http", gatewayRefs: [gateway] },
  analysis: analysisOf(analysis),
  ...spec,
})

/** The same by an HTTPProxy of Contour. */
export const byProxy = (analysis: Analysis, spec: Json = {}): Spec => ({
  ...byRoute(analysis, spec),
  provider: "contour",
  service: { port: 80, targetPort: "http" },
})

/** The same by a TraefikService. */
export const byTraefikService = (analysis: Analysis, spec: Json = {}): Spec => ({
  ...byProxy(analysis, spec),
  provider: "traefik",
})

/** The same by an HTTPRoute of Traefik. */
export const byTraefikRoute = (analysis: Analysis, spec: Json = {}): Spec => ({
  ...byRoute(analysis, spec),
  service: { port: 80, targetPort: "http", gatewayRefs: [traefikGateway] },
})

/** For a test of two runs: several of them are played side by side, on a machine that is busy with others. */
export const patienceMs = 1_200_000

export const successRate = { name: "request-success-rate", thresholdRange: { min: 99 } }

export const canaryManifest = (spec: Spec, kind: WorkloadKind = "Deployment"): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "Canary",
  metadata: { name: "shop" },
  spec: { targetRef: { apiVersion: "apps/v1", kind, name: "shop" }, ...spec },
})

export type Shop = {
  namespace: string
  /** What clients ask, through the gateway or the Service. */
  through: Pick<TrafficOptions, "addresses" | "headers">
  /** Clients on fresh and on kept connections. */
  clients(options?: Partial<TrafficOptions>): Clients
  create(spec: Spec): Promise<void>
  canary(): Promise<Json>
  remove(): Promise<void>
  /** The Deployment, or whatever the target is. */
  workload(): Promise<Json>
  /** Those that are not ending. */
  pods(): Promise<Json[]>
  /** As `kubectl set image` does. */
  setVersion(version: Version): Promise<void>
  kubectl(...args: string[]): Promise<string>
  until(what: string, isSo: (canary: Json) => unknown): Promise<Json>
  /** Waits for the end of the run after so many, and gives its record. */
  untilEnded(runs: number): Promise<Json>
  /** Waits for the run after so many, and gives the record of the one before. */
  untilStarted(runs: number): Promise<Json>
  /** The ready pods of the revision that a run judges, once there are any. */
  tested(): Promise<Json[]>
  approve(...gates: string[]): Promise<void>
}

export type Clients = {
  /** Returns when each has had so many more answers. */
  more(count?: number): Promise<void>
  stop(): Promise<TrafficResult[]>
}

/**
 * A Deployment of the shop with version v1, ready, in a namespace of its own, with the Service that its clients use; and
 * the route, where they come through the gateway.
 */
export async function openShop(
  atEnd: AtEnd,
  { replicas = 2, isRouted, kind = "Deployment" }: { replicas?: number; isRouted: boolean | Way; kind?: WorkloadKind },
): Promise<Shop> {
  const { api, kubectlRun } = floor()
  const namespace = await uniqueNamespace({}, atEnd)
  await api.create(workloadsPath(namespace, kind), shopWorkload(kind, "shop", imageOf("v1"), { replicas }))
  const { spec } = await api.create(servicesPath(namespace), shopService("shop", {}))
  const way = isRouted === true ? "HTTPRoute" : isRouted
  const address = way ? await openWay(way, namespace) : `${spec.clusterIP}:80`
  await readyPods(namespace, replicas, { app: "shop" })
  const through = { addresses: [address], headers: { ...(way && { host: hostOf(namespace) }) } }
  const canary = () => api.get(`${canariesPath(namespace)}/shop`)
  const workload = () => api.get(`${workloadsPath(namespace, kind)}/shop`)
  const hashLabel = kind === "Deployment" ? "pod-template-hash" : "controller-revision-hash"
  const kubectl = (...args: string[]) => kubectlRun("-n", namespace, ...args)
  // A run has several pods that start, intervals and a hand-over: on a busy machine minutes.
  const untilSo: Shop["until"] = (what, isSo) =>
    until(
      what,
      async () => {
        const now = await canary()
        return (await isSo(now)) ? now : false
      },
      { withinMs: 300_000 },
    ).catch(async cause => {
      const { status } = await canary()
      throw new Error(`${what}: the Canary is ${JSON.stringify({ ...status, history: status?.history?.[0] })}`, {
        cause,
      })
    })
  const shop: Shop = {
    ...{ namespace, through, canary, workload, kubectl, until: untilSo },
    clients: options => startClients({ ...through, ...options }, atEnd),
    create: async spec => void (await api.create(canariesPath(namespace), canaryManifest(spec, kind))),
    remove: () => api.remove(`${canariesPath(namespace)}/shop`),
    async pods() {
      const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods`)
      return items.filter(({ metadata }: Json) => !metadata.deletionTimestamp)
    },
    setVersion: async version => void (await kubectl("set", "image", `${kind}/shop`, `shop=${imageOf(version)}`)),
    async untilEnded(runs) {
      const { status } = await untilSo(
        `run ${runs + 1} has ended`,
        ({ status }) => status?.history?.length > runs && !status.run,
      )
      return status.history[0]
    },
    async untilStarted(runs) {
      const { status } = await untilSo(
        `run ${runs + 1} has started`,
        ({ status }) => status?.history?.length >= runs && status.run && status.run.id !== status.history[0].id,
      )
      return status.history[0]
    },
    async tested() {
      const { status } = await untilSo("the run has pods", ({ status }) => status?.run?.target.hash)
      const selector = `${hashLabel}=${status.run.target.hash}`
      return until("one is ready", async () => {
        const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=${selector}`)
        // Pods of an earlier time of the same revision may still be ending.
        const ready = items.filter(
          ({ metadata, status }: Json) =>
            !metadata.deletionTimestamp &&
            status.conditions?.some(({ type, status }: Json) => type === "Ready" && status === "True"),
        )
        return ready.length > 0 && ready
      })
    },
    async approve(...tiers) {
      const { status } = await canary()
      const text = JSON.stringify({ operation: status.run.id, checksum: status.run.checksum, tiers })
      await api.patch(`${canariesPath(namespace)}/shop`, { metadata: { annotations: { [approvedAnnotation]: text } } })
    },
  }
  await until("requests are answered", async () => {
    const { failures } = await startTraffic({ ...through, perSecond: 50, requestsMost: 10 }, atEnd).result
    return failures.length === 0
  })
  return shop
}

function startClients(options: Pick<TrafficOptions, "addresses"> & Partial<TrafficOptions>, atEnd: AtEnd): Clients {
  const all: Traffic[] = [0, 4].map(connections => startTraffic({ perSecond: 20, ...options, connections }, atEnd))
  return {
    more: async (count = 20) => void (await Promise.all(all.map(client => client.more(count)))),
    stop: () => Promise.all(all.map(client => client.stop())),
  }
}

export const uidsOf = (pods: Json[]): string[] => pods.map(({ metadata }) => metadata.uid).sort()

/** No request was lost, and no version but those named answered with an error. */
export function expectAnswered(results: TrafficResult[], ...bad: Version[]): void {
  for (const { failures, answers, sent } of results) {
    expect(failures).toEqual([])
    expect(sent).toBeGreaterThan(0)
    const wrong = answers.filter(({ status, version }) => status !== 200 && !bad.includes(version as Version))
    expect(wrong).toEqual([])
  }
}

/** All versions that answered any of these clients. */
export const versionsIn = (results: TrafficResult[]): string[] =>
  [...new Set(results.flatMap(({ answers }) => answers.map(({ version }) => version)))].sort()

/** As after a rolling update of its own: complete, with history, and without a trace of aim. */
export async function expectOrdinary({ kubectl, workload }: Shop, revisions: number): Promise<void> {
  expect(await kubectl("rollout", "status", "deploy/shop", "--timeout=180s")).toContain("successfully rolled out")
  const history = (await kubectl("rollout", "history", "deploy/shop")).split("\n").filter(line => /^\d/.test(line))
  expect(history).toHaveLength(revisions)
  const { metadata, spec } = await workload()
  expect(JSON.stringify({ ...metadata, managedFields: [] })).not.toContain("autoimagemanager.io")
  expect(spec.paused).toBeUndefined()
}

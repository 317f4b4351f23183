import type { Clock, Instant } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import type { KindStorage, StorageChange } from "../apiserver/storage.ts"
import type { SimulatedGateway } from "../gateway-api/index.ts"
import type { Json, Obj } from "../object.ts"
import type { Counters } from "./counters.ts"
import { type Clients, type ClientsOptions, createNetwork, type Endpoint, type Version } from "./network.ts"
import type { TrafficRecord } from "./record.ts"

export type TrafficOptions = {
  cluster: { storage: KindStorage }
  clock: Clock
  /** Where routes come from. Without it there are Services only. */
  gateway?: SimulatedGateway
  seed?: number
  /** How versions answer, by image, or by the hash label of their pods. Others: no errors, 10 ms. */
  versions?: Readonly<Record<string, Partial<Version>>>
  /** The same, by image, for those that are not in the list. */
  answersOf?: (image: string) => Partial<Version>
  /** From a change of an EndpointSlice to its effect in kube-proxy and Envoy. */
  endpointsMs?: number
}

/** Clients, and what divides their requests between the pods of a simulated cluster. */
export type Traffic = {
  send(options: ClientsOptions): Clients
  /** From now on a version answers so. */
  setVersion(imageOrHash: string, version: Partial<Version>): void
  /** What became of all requests up to now. */
  record(): TrafficRecord
  /** Brings the counters up to now. */
  catchUp(): void
  /** Calls back at each interval from now on, with the counters as they are at that instant. */
  every(ms: number, run: (at: Instant) => void): void
  readonly counters: Counters
  stop(): void
}

const usual: Version = { errorRate: 0, latencyMs: 10 }
const hashLabels = ["pod-template-hash", "controller-revision-hash"]
const serviceLabel = "kubernetes.io/service-name"

/** Follows Services, EndpointSlices and Pods. Every change first lets the requests before it happen. */
export function createTraffic(options: TrafficOptions): Traffic {
  const { cluster, clock, gateway, seed = 1, endpointsMs = 100 } = options
  const { storage } = cluster
  const network = createNetwork(clock.now(), seededRandom(seed))
  const versions = new Map(Object.entries(options.versions ?? {}))
  const slices = new Map<string, Map<string, readonly Endpoint[]>>()
  const listening = new Map<string, { isEnding: boolean }>()

  const catchUp = () => network.advance(clock.now())
  const versionOf = (pod: Obj) => (): Version => ({
    ...usual,
    ...options.answersOf?.(pod.spec.containers[0].image),
    ...(versions.get(revisionOf(pod)) ?? versions.get(pod.spec.containers[0].image)),
  })

  function seePod({ type, object: pod }: Pick<StorageChange, "type" | "object">) {
    const { uid, deletionTimestamp } = pod.metadata
    const known = listening.get(uid)
    const isUp = type !== "DELETED" && isRunning(pod)
    if (isUp && !known) {
      const isEnding = deletionTimestamp !== undefined
      const server = { uid, revision: revisionOf(pod), version: versionOf(pod), isEnding, target: targetOf(pod) }
      listening.set(uid, server)
      network.listen(server)
    }
    if (known && deletionTimestamp) known.isEnding = true
    if (!isUp && known) {
      listening.delete(uid)
      network.end(uid)
    }
  }

  function seeSlice({ type, object: slice }: Pick<StorageChange, "type" | "object">, lagMs: number) {
    const { namespace, name, labels } = slice.metadata
    const key = `${namespace}/${labels?.[serviceLabel]}`
    const own = slices.get(key) ?? new Map<string, readonly Endpoint[]>()
    slices.set(key, own)
    if (type === "DELETED") own.delete(name)
    else own.set(name, endpointsIn(slice))
    const all = [...own.values()].flat()
    network.put(clock.now() + lagMs, ({ services }) => {
      if (services.has(key)) services.set(key, all)
    })
  }

  function seeService({ type, object }: Pick<StorageChange, "type" | "object">, lagMs: number) {
    const key = `${object.metadata.namespace}/${object.metadata.name}`
    if (type === "MODIFIED") return
    network.put(clock.now() + lagMs, ({ services }) => {
      if (type === "DELETED") services.delete(key)
      else if (!services.has(key)) services.set(key, [...(slices.get(key)?.values() ?? [])].flat())
    })
  }

  function seeRoutes() {
    const [routes, clusters] = [gateway?.routes() ?? [], gateway?.clusters()]
    network.put(clock.now(), state => {
      Object.assign(state, { routes, clusters })
    })
  }

  type See = (change: Pick<StorageChange, "type" | "object">, lagMs: number) => void
  const followed: [string, string, See][] = [
    ["v1", "Service", seeService],
    ["discovery.k8s.io/v1", "EndpointSlice", seeSlice],
    ["v1", "Pod", seePod],
  ]
  const stops = followed.map(([apiVersion, kind, see]) => {
    const served = storage.kind(apiVersion, kind)
    if (!served) throw new Error(`${apiVersion} ${kind} is not served`)
    for (const object of storage.list(served).items) see({ type: "ADDED", object }, 0)
    return storage.subscribe(served, change => {
      catchUp()
      see(change, endpointsMs)
    })
  })
  if (gateway) {
    seeRoutes()
    stops.push(
      gateway.onRoutes(() => {
        catchUp()
        seeRoutes()
      }),
    )
  }
  catchUp()

  return {
    counters: network.counters,
    catchUp,
    send(clientsOptions) {
      catchUp()
      const clients = network.send(clock.now(), clientsOptions)
      return {
        stop() {
          catchUp()
          clients.stop()
        },
        record() {
          catchUp()
          return clients.record()
        },
      }
    },
    every(ms, run) {
      catchUp()
      const next = (at: Instant) =>
        network.put(at, () => {
          run(at)
          next(at + ms)
        })
      next(clock.now() + ms)
    },
    setVersion(imageOrHash, version) {
      catchUp()
      versions.set(imageOrHash, version)
    },
    record() {
      catchUp()
      return network.record()
    },
    stop() {
      for (const stop of stops) stop()
    },
  }
}

const revisionOf = ({ metadata: { labels = {} }, spec }: Obj): string =>
  hashLabels.map(label => labels[label]).find(Boolean) ?? spec.containers[0].image

/** The process that answers is that of the first container. */
function isRunning({ spec, status }: Obj): boolean {
  const [{ name }] = spec.containers
  return Boolean(status?.containerStatuses?.find((each: Json) => each.name === name)?.state?.running)
}

/** With the labels that Prometheus gives to pods it discovers, under the names of its usual configurations. */
function targetOf({ metadata: { namespace = "", name } }: Obj) {
  const labels = { namespace, pod: name, kubernetes_namespace: namespace, kubernetes_pod_name: name }
  return { labels: { job: "pods", instance: name, ...labels } }
}

function endpointsIn({ endpoints }: Obj): Endpoint[] {
  return (endpoints ?? []).flatMap(({ targetRef, conditions }: Json) =>
    targetRef?.kind === "Pod"
      ? [{ uid: targetRef.uid, ready: conditions?.ready !== false, serving: conditions?.serving !== false }]
      : [],
  )
}

import { Holds } from "#core/holds.ts"
import type { NodeState } from "#core/in-place/standing.ts"
import type { TakenPods } from "#core/in-place/taken.ts"
import { splitImage } from "#core/pulls/image-name.ts"
import { type NodeImageFacts, readNodeImage } from "#core/pulls/node-facts.ts"
import { MultiMap } from "#lib/multi-map.ts"
import { noVersion } from "#lib/resource-version.ts"
import type { Cache, Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf, nameOf, podDisruptionBudgets, type Resource } from "#runtime/resource.ts"
import { watchGrants } from "../grants.ts"
import { type BudgetPlaces, budgetPlaces } from "./budget-places.ts"
import { type Job, type NodeSeen, type Owned, readBudget, readJob, readNodeState } from "./facts.ts"
import { type KeptPod, podKeeper } from "./kept-pods.ts"
import type { Adapter } from "./kind.ts"
import { createInPlaceMetrics, type InPlaceMetrics } from "./metrics.ts"
import type { ImageOnNode } from "./plan.ts"
import { asked } from "./plan.ts"
import { imagePullJobs, nodeImages, nodes, pods } from "./resources.ts"
import { openStrays, type Strays } from "./strays.ts"

/** A watch that is further behind than this is not waited for: its next event is a reason to look again. */
const shownMs = 5000

type Kept<T> = Projected & { readonly facts?: T | undefined }

/** What is watched of a namespace while one of its workloads is held. */
export type Neighbourhood = {
  readonly revisions: WatchedCache<Kept<Owned>>
  readonly pods: WatchedCache<KeptPod>
  readonly jobs: WatchedCache<Kept<Job>>
  readonly budgets: WatchedCache<ReturnType<typeof readBudget>>
}

/** A workload as the cache has it. Its status is never written here. */
export type HeldWorkload = KubeObject & { apiVersion: string; kind: string; status?: never }

export type World = Pick<Wiring, "client" | "clock" | "events"> & {
  readonly budgets: Omit<BudgetPlaces, "open" | "close">
  readonly adapter: Adapter
  /** What surrounds a held workload, and whether all of it is known. */
  around(key: string): { readonly near: Neighbourhood; readonly isCurrent: boolean }
  /** What the agent of a node says of an image that a job asks for. */
  imageOn(node: string, image: string, job: string | undefined): ImageOnNode
  /** Whether a node is ready. One that is gone is not. */
  nodeOf(name: string): NodeState | undefined
  /** The workload is looked at again when one of these nodes reports something, or one of these budgets has changed. */
  waitFor(key: string, what: { readonly nodes: readonly string[]; readonly budgets: readonly string[] }): void
  /** The workload as it is known at this moment. */
  newest(key: string): HeldWorkload | undefined
  leave(key: string): void
  /** Resolves when the cache shows what was written, or after a few seconds. A decision before would repeat the write. */
  shown(key: string, written: KubeObject): Promise<void>
  holds: Holds<"Forbidden" | "Refused">
  metrics: InPlaceMetrics
  readonly strays: Strays
}

/** The controller of one kind. The pods that are taken are those of all kinds. */
type Part = { readonly adapter: Adapter; readonly taken: TakenPods }

/**
 * Nothing but held workloads is watched before one is held. Then it is what surrounds it: revisions, pods, jobs and
 * budgets of its namespace, and what the agents say.
 */
export function openWorld({ adapter, taken }: Part, wiring: Wiring, objects: Cache<Held<HeldWorkload>>): World {
  const { client, clock, events, enqueue, enqueueAfter } = wiring
  const places = new Map<string, Neighbourhood>()
  const users = new MultiMap()
  const waiting = new Waiting()
  const keptPod = podKeeper()
  const holds: World["holds"] = new Holds()
  const metrics = createInPlaceMetrics(wiring.metrics, adapter.resource.kind)
  const wakeAt = (place: string) => {
    for (const key of waiting.at(place)) enqueue(key)
  }
  const budgets = budgetPlaces({
    ...{ kind: adapter.resource.kind, taken, clock },
    onRoom: (namespace, name) => wakeAt(budgetPlace(namespace, name)),
  })
  let agents: WatchedCache<NodeImageFacts> | undefined
  let machines: WatchedCache<NodeSeen> | undefined

  /** Woken when a cache that was opened for it shows everything. */
  const wakes = <T extends Projected>(cache: WatchedCache<T>, keys: () => Iterable<string>) => {
    const wake = () => {
      for (const key of keys()) enqueue(key)
    }
    cache.current().then(wake, () => {})
    return cache
  }

  function watchIn<T extends Projected>(
    namespace: string,
    resource: Resource,
    project: (object: KubeObject) => T,
    indexes = {},
  ) {
    return wakes(wiring.watch<T>(resource, { namespace, project, indexes }), () => users.of(namespace))
  }

  function openPlace(namespace: string): Neighbourhood {
    const kept =
      <T>(read: (object: KubeObject) => T | undefined) =>
      (object: KubeObject): Kept<T> => ({ resourceVersion: object.metadata.resourceVersion ?? "", facts: read(object) })
    const owner = ({ facts }: Kept<Owned>) => (facts ? [facts.owner.uid] : [])
    const near: Neighbourhood = {
      revisions: watchIn(namespace, adapter.revisions, kept(adapter.readRevision), { owner }),
      pods: watchIn(namespace, pods, keptPod, { owner: ownersOf }),
      jobs: watchIn(
        namespace,
        imagePullJobs,
        kept(object => readJob(object, adapter.resource.kind)),
        { owner },
      ),
      budgets: watchIn(namespace, podDisruptionBudgets, readBudget),
    }
    const wake = (name: string, afterMs = 0) => {
      const key = keyOf({ namespace, name })
      if (objects.get(key)) afterMs > 0 ? enqueueAfter(key, afterMs) : enqueue(key)
    }
    for (const cache of [near.revisions, near.jobs] as readonly WatchedCache<Kept<Owned>>[])
      cache.subscribe(({ before, after }) => {
        const found = (after ?? before)?.facts
        if (found) wake(found.owner.name)
      })
    budgets.open(namespace, near)
    near.pods.subscribe(({ before, after }) => {
      const found = after?.facts ?? before?.facts ?? before?.ending
      const revisionOf = (name: string) => near.revisions.get(keyOf({ namespace, name }))?.facts
      const name = found && adapter.workloadOf(found.ownerName, revisionOf)
      if (found && name !== undefined) wake(name, gatherMs(near.pods.keysBy("owner", found.owner).size))
    })
    return near
  }

  const everyKey = () => [...objects.entries()].map(([key]) => key)

  function openAgents(): WatchedCache<NodeImageFacts> {
    const cache = wakes(wiring.watch(nodeImages, { project: readNodeImage }), everyKey)
    cache.subscribe(({ key: node }) => wakeAt(nodePlace(node)))
    return cache
  }

  function openMachines(): WatchedCache<NodeSeen> {
    const cache = wakes(wiring.watch(nodes, { project: readNodeState }), everyKey)
    cache.subscribe(({ key: node, before, after }) => {
      if (before?.isReady !== after?.isReady) wakeAt(nodePlace(node))
    })
    return cache
  }

  watchGrants(wiring, namespace => {
    for (const key of holds.release(namespace)) enqueue(key)
  })

  return {
    adapter,
    client,
    clock,
    events,
    holds,
    metrics,
    budgets,
    strays: openStrays(objects),
    around(key) {
      const { namespace = "" } = nameOf(key)
      users.add(namespace, key)
      const near = places.get(namespace) ?? openPlace(namespace)
      places.set(namespace, near)
      agents ??= openAgents()
      machines ??= openMachines()
      const all: readonly Pick<WatchedCache<Projected>, "isCurrent">[] = [...Object.values(near), agents, machines]
      return { near, isCurrent: all.every(cache => cache.isCurrent) }
    },
    imageOn: (node, image, job) => agentSays(agents?.get(node), image, job),
    nodeOf: name => (name === "" || !machines?.isCurrent ? undefined : (machines.get(name) ?? gone)),
    waitFor(key, { nodes, budgets }) {
      const { namespace = "" } = nameOf(key)
      waiting.set(key, [...nodes.map(nodePlace), ...budgets.map(name => budgetPlace(namespace, name))])
    },
    newest: key => objects.get(key)?.object,
    leave(key) {
      const { namespace = "" } = nameOf(key)
      waiting.set(key, [])
      budgets.keep(key, [])
      holds.delete(key)
      metrics.forget(key)
      users.delete(namespace, key)
      if (users.has(namespace)) return
      for (const cache of Object.values(places.get(namespace) ?? {})) cache.close()
      places.delete(namespace)
      budgets.close(namespace)
      if (places.size > 0) return
      agents?.close()
      agents = undefined
      machines?.close()
      machines = undefined
    },
    async shown(key, { kind, metadata }) {
      const near = places.get(nameOf(key).namespace ?? "")
      const caches = { [adapter.resource.kind]: objects, [adapter.revisions.kind]: near?.revisions }
      const cache: Pick<Cache<Projected>, "reached"> | undefined = caches[kind ?? ""]
      if (!cache) return
      const waiting = new AbortController()
      const cancel = clock.after(shownMs, () => waiting.abort())
      await cache.reached(metadata, metadata.resourceVersion ?? noVersion, waiting.signal).catch(() => {})
      cancel()
    },
  }
}

/** Workloads by what they wait for. */
class Waiting {
  readonly #keys = new MultiMap()
  readonly #places = new Map<string, readonly string[]>()

  at(place: string): Iterable<string> {
    return this.#keys.of(place)
  }

  set(key: string, places: readonly string[]): void {
    for (const place of this.#places.get(key) ?? []) this.#keys.delete(place, key)
    for (const place of places) this.#keys.add(place, key)
    if (places.length > 0) this.#places.set(key, places)
    else this.#places.delete(key)
  }
}

function ownersOf({ facts, ending }: KeptPod): readonly string[] {
  const uid = (facts ?? ending)?.owner
  return uid ? [uid] : []
}

const nodePlace = (name: string) => `node ${name}`
const budgetPlace = (namespace: string, name: string) => `budget ${namespace}/${name}`

/**
 * A look judges all pods of its workload. Events of pods are gathered for as long as ten such looks would take, so that
 * the looks stay a small part of the work, however many pods there are.
 */
const gatherMs = (pods: number) => Math.min(Math.floor(pods / 20), 1000)

const gone: NodeState = { isReady: false, since: 0 }

/** An answer counts only for the job of this operation: what was there before may be gone. */
function agentSays(node: NodeImageFacts | undefined, image: string, job: string | undefined): ImageOnNode {
  if (!node || node.publicKey === "") return { is: "NoAgent" }
  const wanted = splitImage(image)
  const entry = node.entries.find(({ name, tag }) => name === wanted?.name && tag === wanted.tag)
  if (job === undefined || !entry?.owners.includes(job)) return { is: "Missing", why: asked }
  if (entry.phase === "Succeeded") return { is: "Present", digest: entry.digest }
  return { is: "Missing", why: entry.reason || asked }
}

import type { ServedKind } from "../../apiserver/kind.ts"
import type { DeleteOptions, KindStorage, StorageChange } from "../../apiserver/storage.ts"
import type { Obj, Owner } from "../../object.ts"
import { createRecorder, type Recorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { loop, servedKind, type Watch } from "./loop.ts"
import { manager, tolerateAbsence } from "./owned.ts"

/** The state of an owner reference: its owner exists, is gone, waits for its dependents, or cannot be an owner. */
export type Standing = "solid" | "dangling" | "waiting" | "unknown-kind" | "wrong-scope"

export type Snapshot = {
  object: Obj
  standings: readonly Standing[] // of its owner references, in their order
  dependents: readonly Obj[]
}

export type Plan =
  | { do: "nothing" }
  | { do: "keep-owners"; owners: readonly Owner[] }
  | { do: "release-dependents"; dependents: readonly Obj[] }
  | { do: "remove-finalizer"; finalizer: string }
  | { do: "look-at"; dependents: readonly Obj[] }
  | { do: "delete"; policy: NonNullable<DeleteOptions["propagationPolicy"]>; unblock: boolean }

const orphan = "orphan"
const foreground = "foregroundDeletion"

/** Decides about one object by the state of its owners, and about its dependents by its own state. */
export function plan({ object, standings, dependents }: Snapshot): Plan {
  const { ownerReferences: owners = [], uid } = object.metadata
  if (object.metadata.deletionTimestamp) {
    if (has(object, orphan))
      return dependents.length > 0
        ? { do: "release-dependents", dependents }
        : { do: "remove-finalizer", finalizer: orphan }
    if (!has(object, foreground)) return { do: "nothing" }
    const blocking = dependents.filter(({ metadata }) =>
      metadata.ownerReferences?.some(owner => owner.uid === uid && owner.blockOwnerDeletion),
    )
    if (blocking.length === 0) return { do: "remove-finalizer", finalizer: foreground }
    return { do: "look-at", dependents: blocking.filter(dependent => !isEndingInForeground(dependent)) }
  }
  if (owners.length === 0 || standings.includes("unknown-kind") || standings.includes("wrong-scope"))
    return { do: "nothing" }

  const solid = owners.filter((_, index) => standings[index] === "solid")
  if (solid.length === owners.length) return { do: "nothing" }
  if (solid.length > 0) return { do: "keep-owners", owners: solid }
  if (standings.includes("waiting") && dependents.length > 0)
    // A cycle of owners would wait for itself for ever.
    return { do: "delete", policy: "Foreground", unblock: dependents.some(isEndingInForeground) }
  const policy = has(object, orphan) ? "Orphan" : has(object, foreground) ? "Foreground" : "Background"
  return { do: "delete", policy, unblock: false }
}

const has = ({ metadata }: Obj, finalizer: string) => metadata.finalizers?.includes(finalizer) ?? false
const isEndingInForeground = (object: Obj) => object.metadata.deletionTimestamp !== undefined && has(object, foreground)

/** Deletes objects whose owners are gone, and makes owners wait for their dependents. Reads and writes every kind. */
export function garbageCollector(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const record = createRecorder(world, "garbage-collector-controller")
  const graph = createGraph()
  const reportElsewhere = elsewhereReporter(record, graph)

  function standing(object: Obj, owner: Owner): Standing {
    const kind = storage.kind(owner.apiVersion, owner.kind)
    if (!kind) return "unknown-kind"
    const { namespace } = object.metadata
    if (kind.namespaced && !namespace) return "wrong-scope"
    const found = storage.find(kind, { namespace: kind.namespaced ? namespace : undefined, name: owner.name })
    if (found?.metadata.uid !== owner.uid) return "dangling"
    return isEndingInForeground(found) ? "waiting" : "solid"
  }

  function* wakes({ type, object, before }: StorageChange): Generator<string> {
    const { uid, ownerReferences: owners = [] } = object.metadata
    if (type === "DELETED") {
      graph.remove(object)
      // A deleted object no longer blocks its owners, and its dependents may have to be deleted.
      for (const { uid: owner } of owners) if (graph.isHeldBack(owner)) yield owner
      yield* graph.dependentsOf(uid)
      return
    }
    graph.put(object, before)
    const isEnding = object.metadata.deletionTimestamp !== undefined
    if (isEnding && (has(object, orphan) || has(object, foreground))) {
      yield uid
      if (has(object, foreground)) yield* graph.dependentsOf(uid)
    }
    if (owners.length === 0) return
    if (before && sameOwners(before, object)) return
    for (const owner of before?.metadata.ownerReferences ?? []) if (graph.isHeldBack(owner.uid)) yield owner.uid
    // Nearly always the owner exists: an object is queued only if it does not.
    if (owners.some(owner => standing(object, owner) !== "solid")) yield uid
  }

  function apply(kind: ServedKind, object: Obj, next: Plan) {
    const { name, namespace, uid, resourceVersion } = object.metadata
    switch (next.do) {
      case "keep-owners":
        storage.update(kind, withOwners(object, next.owners), manager)
        return
      case "release-dependents":
        for (const dependent of next.dependents) {
          const kindOfIt = servedKind(storage, dependent.apiVersion, dependent.kind)
          const rest = dependent.metadata.ownerReferences?.filter(owner => owner.uid !== uid) ?? []
          tolerateAbsence(() => storage.update(kindOfIt, withOwners(dependent, rest), manager))
        }
        apply(kind, object, { do: "remove-finalizer", finalizer: orphan })
        return
      case "remove-finalizer": {
        const finalizers = object.metadata.finalizers?.filter(finalizer => finalizer !== next.finalizer) ?? []
        const { finalizers: _, ...metadata } = object.metadata
        storage.update(
          kind,
          { ...object, metadata: finalizers.length > 0 ? { ...metadata, finalizers } : metadata },
          manager,
        )
        return
      }
      case "delete": {
        let version = resourceVersion
        if (next.unblock) {
          const unblocked = object.metadata.ownerReferences?.map(owner => ({ ...owner, blockOwnerDeletion: false }))
          version = storage.update(kind, withOwners(object, unblocked ?? []), manager).metadata.resourceVersion
        }
        tolerateAbsence(() =>
          storage.delete(
            kind,
            { name, namespace },
            { propagationPolicy: next.policy, preconditions: { uid, resourceVersion: version } },
          ),
        )
      }
    }
  }

  function reconcile(uid: string): number | undefined {
    const place = graph.find(uid)
    const kind = place && storage.kind(place.apiVersion, place.kind)
    const object = kind && storage.find(kind, place)
    if (!kind || object?.metadata.uid !== uid) return undefined
    const standings = (object.metadata.ownerReferences ?? []).map(owner => standing(object, owner))
    const dependents = [...graph.dependentsOf(uid)].flatMap(each => {
      const at = graph.find(each)
      const kindOfIt = at && storage.kind(at.apiVersion, at.kind)
      const found = kindOfIt && storage.find(kindOfIt, at)
      return found?.metadata.uid === each ? [found] : []
    })
    reportElsewhere(object, standings)
    const next = plan({ object, standings, dependents })
    if (next.do === "look-at") for (const dependent of next.dependents) reconcile(dependent.metadata.uid)
    else apply(kind, object, next)
    // A kind that is not served may be defined later; the real collector retries, too.
    return standings.includes("unknown-kind") ? 30_000 : undefined
  }

  const watchOf = ({ group, version, kind }: ServedKind): Watch => ({
    apiVersion: group ? `${group}/${version}` : version,
    kind,
    keys: wakes,
  })

  return {
    name: "garbage-collector-controller",
    start() {
      let stop = () => {}
      let watched = ""
      const restart = () => {
        const kinds = collected(storage)
        const names = kinds.map(({ storage }) => storage).join()
        if (names === watched) return
        watched = names
        stop()
        graph.clear()
        for (const kind of kinds) for (const object of storage.list(kind).items) graph.put(object)
        stop = loop(world, { name: "garbage-collector-controller", watches: kinds.map(watchOf), reconcile }).start()
      }
      restart()
      // Definitions of custom kinds may change; their kinds are served a moment later.
      const definitions = storage.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
      let cancel = () => {}
      const unsubscribe = definitions
        ? storage.subscribe(definitions, () => {
            cancel()
            cancel = clock.after(20, restart)
          })
        : () => {}
      return () => {
        unsubscribe()
        cancel()
        stop()
      }
    },
  }
}

/** Records, once, that an owner is in a scope where it cannot own this object, which is why it is deleted or stays. */
function elsewhereReporter(record: Recorder, graph: Pick<ReturnType<typeof createGraph>, "find">) {
  const reported = new Set<string>()
  return (object: Obj, standings: readonly Standing[]) => {
    const { namespace = "", ownerReferences: owners = [] } = object.metadata
    for (const [index, owner] of owners.entries()) {
      const place = graph.find(owner.uid)
      const isElsewhere =
        standings[index] === "wrong-scope" ||
        (standings[index] === "dangling" && place?.namespace !== undefined && place.namespace !== namespace)
      const key = `${object.metadata.uid} ${owner.uid}`
      if (!isElsewhere || reported.has(key)) continue
      reported.add(key)
      const identity = `[${owner.apiVersion}/${owner.kind}, namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}]`
      const message = `ownerRef ${identity} does not exist in namespace ${JSON.stringify(namespace)}`
      record(object, "Warning", "OwnerRefInvalidNamespace", message)
    }
  }
}

/** One version of every kind that can be deleted, except events, which have no owners. */
function collected(storage: KindStorage): ServedKind[] {
  const byPlace = new Map<string, ServedKind>()
  for (const kind of storage.kinds())
    if (kind.plural !== "events" && kind.verbs.includes("delete") && !byPlace.has(kind.storage))
      byPlace.set(kind.storage, kind)
  return [...byPlace.values()]
}

type Place = { apiVersion: string; kind: string; namespace?: string | undefined; name: string }

/** Owners and dependents by uid. Only objects with an owner or a dependent are in it. */
function createGraph() {
  const places = new Map<string, Place & { isHeldBack: boolean }>()
  const dependents = new Map<string, Set<string>>()

  function unlink(object: Obj) {
    for (const { uid: owner } of object.metadata.ownerReferences ?? []) {
      const those = dependents.get(owner)
      if (those?.delete(object.metadata.uid) && those.size === 0) dependents.delete(owner)
    }
  }
  return {
    put(object: Obj, before?: Obj) {
      const { uid, name, namespace, ownerReferences: owners = [] } = object.metadata
      const { apiVersion, kind } = object
      places.set(uid, { apiVersion, kind, namespace, name, isHeldBack: isEndingInForeground(object) })
      if (before && sameOwners(before, object)) return
      if (before) unlink(before)
      for (const { uid: owner } of owners) {
        const those = dependents.get(owner)
        if (those) those.add(uid)
        else dependents.set(owner, new Set([uid]))
      }
    },
    remove(object: Obj) {
      unlink(object)
      places.delete(object.metadata.uid)
    },
    find: (uid: string) => places.get(uid),
    isHeldBack: (uid: string) => places.get(uid)?.isHeldBack ?? false,
    dependentsOf: (uid: string): Iterable<string> => dependents.get(uid) ?? [],
    clear() {
      places.clear()
      dependents.clear()
    },
  }
}

function sameOwners(a: Obj, b: Obj): boolean {
  const [one, other] = [a.metadata.ownerReferences ?? [], b.metadata.ownerReferences ?? []]
  return (
    one === other || (one.length === other.length && one.every((owner, index) => isSameOwner(owner, other[index]!)))
  )
}

const isSameOwner = (a: Owner, b: Owner) =>
  a.uid === b.uid && a.name === b.name && a.kind === b.kind && a.blockOwnerDeletion === b.blockOwnerDeletion

function withOwners(object: Obj, owners: readonly Owner[]) {
  const { ownerReferences: _, ...metadata } = object.metadata
  return { ...object, metadata: owners.length > 0 ? { ...metadata, ownerReferences: owners } : metadata }
}

import { isEmptySelector, selects } from "#lib/label-selector.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import type { KindStorage, StorageChange } from "../../apiserver/storage.ts"
import type { Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { servedKind } from "./loop.ts"
import { controllerOf, ownerReference } from "./pods.ts"

export const manager = { fieldManager: "kube-controller-manager" }

/** The objects of one kind by the uid of their controller, and those of a namespace without a controller. */
export type OwnedIndex = {
  of(owner: Obj): Obj[]
  orphans(namespace: string): Obj[]
  /** Starts to follow the storage; returns a function that stops it. */
  begin(): () => void
}

/** Updated with every change, so that the cost for one owner does not depend on the size of the cluster. */
export function ownedIndex(storage: KindStorage, apiVersion: string, kind: string, ownerKind: string): OwnedIndex {
  const byPlace = new Map<string, Map<string, Obj>>()
  const place = (object: Obj): string | undefined => {
    const controller = controllerOf(object)
    if (!controller) return `orphans of ${object.metadata.namespace}`
    return controller.kind === ownerKind ? controller.uid : undefined
  }
  function drop(object: Obj) {
    const key = place(object)
    const found = key !== undefined ? byPlace.get(key) : undefined
    if (key !== undefined && found?.delete(object.metadata.uid) && found.size === 0) byPlace.delete(key)
  }
  function put(object: Obj) {
    const key = place(object)
    if (key === undefined) return
    const found = byPlace.get(key)
    if (found) found.set(object.metadata.uid, object)
    else byPlace.set(key, new Map([[object.metadata.uid, object]]))
  }
  const at = (key: string) => [...(byPlace.get(key)?.values() ?? [])]
  return {
    of: owner => at(owner.metadata.uid),
    orphans: namespace => at(`orphans of ${namespace}`),
    begin() {
      byPlace.clear()
      const served = servedKind(storage, apiVersion, kind)
      for (const object of storage.list(served).items) put(object)
      return storage.subscribe(served, ({ type, object, before }) => {
        if (before && place(before) !== place(object)) drop(before)
        if (type === "DELETED") drop(object)
        else put(object)
      })
    },
  }
}

/**
 * The owners that a change of an owned object queues: its controller, its previous controller, and, if it has no
 * controller, the owners that might adopt it.
 */
export function* ownersToWake(
  { type, object, before }: StorageChange,
  ownerKind: string,
  adopters: (orphan: Obj) => Iterable<Obj>,
): Generator<string> {
  const { namespace } = object.metadata
  const now = controllerOf(object)
  const then = before && controllerOf(before)
  if (then && then.uid !== now?.uid && then.kind === ownerKind) yield `${namespace}/${then.name}`
  if (now) {
    if (now.kind === ownerKind) yield `${namespace}/${now.name}`
    return
  }
  if (type === "DELETED") return
  for (const adopter of adopters(object)) yield `${namespace}/${adopter.metadata.name}`
}

/** The owners of a kind that might adopt an orphan, because they select it. */
export const adoptersAmong =
  (storage: KindStorage, kind: ServedKind, mayOwn: (owner: Obj, orphan: Obj) => boolean = () => true) =>
  (orphan: Obj): Obj[] => {
    const { labels, namespace } = orphan.metadata
    if (Object.keys(labels ?? {}).length === 0) return []
    return storage
      .list(kind, { namespace })
      .items.filter(
        owner => !isEmptySelector(owner.spec.selector) && selects(owner.spec.selector, labels) && mayOwn(owner, orphan),
      )
  }

export type Claim = { storage: KindStorage; kind: ServedKind; owner: Obj; owned: OwnedIndex }

/**
 * Returns the objects that an owner controls and selects. An object that it selects and that has no controller is
 * adopted. An object that it controls and no longer selects is released. An owner that is being deleted adopts nothing.
 */
export function claim({ storage, kind, owner, owned }: Claim, matches: (object: Obj) => boolean): Obj[] {
  const isEnding = owner.metadata.deletionTimestamp !== undefined
  const claimed: Obj[] = []
  for (const object of owned.of(owner)) {
    if (matches(object)) claimed.push(object)
    else if (!isEnding) {
      const rest = object.metadata.ownerReferences?.filter(({ uid }) => uid !== owner.metadata.uid) ?? []
      tolerateAbsence(() => storage.update(kind, withOwners(object, rest), manager))
    }
  }
  if (isEnding) return claimed
  for (const object of owned.orphans(owner.metadata.namespace!)) {
    if (object.metadata.deletionTimestamp || !matches(object)) continue
    const adopted = tolerateAbsence(() =>
      storage.update(
        kind,
        withOwners(object, [...(object.metadata.ownerReferences ?? []), ownerReference(owner)]),
        manager,
      ),
    )
    if (adopted) claimed.push(adopted)
  }
  return claimed
}

function withOwners(object: Obj, ownerReferences: Obj["metadata"]["ownerReferences"]) {
  const { ownerReferences: _, ...metadata } = object.metadata
  return { ...object, metadata: ownerReferences?.length ? { ...metadata, ownerReferences } : metadata }
}

/** For writes of an object that may be gone, or may have just been changed by another client. */
export function tolerateAbsence<T>(write: () => T): T | undefined {
  try {
    return write()
  } catch (error) {
    if (error instanceof StatusError && error.code === 404) return undefined
    throw error
  }
}

import type { Instant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Json, Obj, Owner } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { createRecorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { positive } from "./counts.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { adoptersAmong, claim, manager, ownedIndex, ownersToWake, tolerateAbsence } from "./owned.ts"
import { isAvailable, isReady, nextAvailableInMs, ownerReference, podFromTemplate } from "./pods.ts"
import {
  createRevision,
  isSameData,
  listRevisions,
  renumber,
  revisionData,
  revisionHash,
  revisionLabel,
} from "./revisions.ts"
import { same } from "./same.ts"

export type Snapshot = {
  set: Obj
  pods: readonly Obj[]
  current: Obj // the revision of pods before the current update
  update: Obj // the revision of the current template
  collisionCount: number
  now: Instant
}

export type Action =
  | { do: "create"; pod: Json }
  | { do: "delete"; pod: Obj }
  | { do: "claim"; pod: Json } // create or update its volume claims
  | { do: "identify"; pod: Obj } // its labels or volumes were changed by hand

export type Plan = { actions: Action[]; status: Json }

const nameLabel = "statefulset.kubernetes.io/pod-name"
const indexLabel = "apps.kubernetes.io/pod-index"

/**
 * Decides the next step of one StatefulSet. Unless pods are managed in parallel, each pod waits for the one before it.
 * So a broken pod blocks the others until it recovers or is deleted, even if the template has been fixed.
 */
function plan(snapshot: Snapshot): Plan {
  const { set, pods, update, now } = snapshot
  const { minReadySeconds = 0 } = set.spec
  const actions: Action[] = []
  const isOrdered = set.spec.podManagementPolicy !== "Parallel"
  const isOut = (pod: Obj) => !isAvailable(pod, minReadySeconds, now) || isEnding(pod)

  const start = set.spec.ordinals?.start ?? 0
  const replicas: Obj[] = Array.from({ length: set.spec.replicas }, (_, index) => newPod(snapshot, start + index))
  const condemned: Obj[] = []
  for (const pod of pods) {
    const index = ordinalOf(pod) - start
    if (index >= 0 && index < replicas.length) replicas[index] = pod
    else if (ordinalOf(pod) >= 0) condemned.push(pod)
  }
  condemned.sort((a, b) => ordinalOf(b) - ordinalOf(a))
  const firstOut = replicas.find(isOut) ?? condemned.findLast(isOut)

  if (set.metadata.deletionTimestamp) return { actions, status: statusOf(snapshot, pods) }
  const counted = () => statusOf(snapshot, [...replicas, ...condemned])

  for (const pod of replicas) {
    if (isOver(pod)) {
      if (!isEnding(pod)) actions.push({ do: "delete", pod })
      if (isOrdered) return { actions, status: counted() }
      continue
    }
    if (!isCreated(pod)) {
      actions.push({ do: "create", pod })
      if (isOrdered) return { actions, status: counted() }
      continue
    }
    if (pod.status.phase === "Pending") actions.push({ do: "claim", pod })
    const mustWait = isEnding(pod) || !isRunningAndReady(pod) || !isAvailable(pod, minReadySeconds, now)
    if (isOrdered && mustWait) return { actions, status: counted() }
    if (!isItself(set, pod)) actions.push({ do: "identify", pod })
    else actions.push({ do: "claim", pod })
  }

  for (const pod of condemned) actions.push({ do: "claim", pod })
  for (const pod of condemned) {
    if (isEnding(pod)) {
      if (isOrdered) return { actions, status: counted() }
      continue
    }
    const isBroken = !isRunningAndReady(pod) || !isAvailable(pod, minReadySeconds, now)
    if (isOrdered && isBroken && pod !== firstOut) return { actions, status: counted() }
    actions.push({ do: "delete", pod })
    if (isOrdered) return { actions, status: counted() }
  }

  const status = counted()
  if (set.spec.updateStrategy?.type === "OnDelete") return { actions, status }
  const partition = set.spec.updateStrategy?.rollingUpdate?.partition ?? 0
  for (let index = replicas.length - 1; index >= partition; index--) {
    const pod = replicas[index]!
    if (revisionOf(pod) !== update.metadata.name && !isEnding(pod)) {
      actions.push({ do: "delete", pod })
      const left = (status.currentReplicas ?? 0) - 1
      const { currentReplicas: _, ...rest } = status
      return { actions, status: { ...rest, ...positive("currentReplicas", left) } }
    }
    if (isOut(pod)) break // one at a time
  }
  return { actions, status }
}

function statusOf({ set, current, update, collisionCount, now }: Snapshot, pods: readonly Obj[]): Json {
  const count = (counts: (pod: Obj) => boolean) => pods.filter(counts).length
  const isOf = (revision: Obj) => (pod: Obj) =>
    isCreated(pod) && !isEnding(pod) && revisionOf(pod) === revision.metadata.name
  return {
    observedGeneration: set.metadata.generation,
    replicas: count(isCreated),
    ...positive("readyReplicas", count(isRunningAndReady)),
    ...positive("currentReplicas", count(isOf(current))),
    ...positive("updatedReplicas", count(isOf(update))),
    currentRevision: current.metadata.name,
    updateRevision: update.metadata.name,
    collisionCount,
    availableReplicas: count(pod => isRunningAndReady(pod) && isAvailable(pod, set.spec.minReadySeconds ?? 0, now)),
  }
}

/** The new revision becomes the current one once all pods exist, are ready and have it. */
function completed(set: Obj, status: Json): Json {
  const { replicas } = set.spec
  const isDone =
    set.spec.updateStrategy?.type === "RollingUpdate" &&
    (status.updatedReplicas ?? 0) === replicas &&
    (status.readyReplicas ?? 0) === replicas &&
    status.replicas === replicas
  if (!isDone) return status
  const { currentReplicas: _, ...rest } = status
  return { ...rest, ...positive("currentReplicas", replicas), currentRevision: status.updateRevision }
}

/** A missing pod, with the revision for its ordinal: below the partition the current one. */
function newPod({ set, current, update }: Snapshot, ordinal: number): Obj {
  const { updateStrategy, ordinals } = set.spec
  const start = ordinals?.start ?? 0
  const { rollingUpdate } = updateStrategy ?? {}
  const isKept = rollingUpdate
    ? ordinal < start + (rollingUpdate.partition ?? 0)
    : updateStrategy?.type === "RollingUpdate" && ordinal < start + (set.status?.currentReplicas ?? 0)
  const revision = isKept ? current : update
  const { $patch: _, ...template } = revision.data.spec.template
  const pod = podFromTemplate(template, set)
  const name = `${set.metadata.name}-${ordinal}`
  const { serviceName } = set.spec
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      name,
      labels: { ...pod.metadata.labels, ...identity(name), [revisionLabel]: revision.metadata.name },
    },
    spec: {
      ...pod.spec,
      ...volumesOf(set, name, pod.spec),
      hostname: name,
      ...(serviceName && { subdomain: serviceName }),
    },
  }
}

const identity = (name: string) => ({ [nameLabel]: name, [indexLabel]: String(ordinalIn(name)) })

const ordinalIn = (name: string) => Number(/-(\d+)$/.exec(name)?.[1] ?? -1)
const ordinalOf = ({ metadata }: Obj) => ordinalIn(metadata.name)
const revisionOf = ({ metadata }: Obj) => metadata.labels?.[revisionLabel]
const isCreated = ({ status }: Obj) => Boolean(status?.phase)
const isOver = ({ status }: Obj) => status?.phase === "Failed" || status?.phase === "Succeeded"
const isEnding = ({ metadata }: Obj) => metadata.deletionTimestamp !== undefined
const isRunningAndReady = (pod: Obj) => pod.status?.phase === "Running" && isReady(pod)

/** `data-web-0`, by the name of its template. */
const claimNames = (set: Obj, pod: string): [template: Json, name: string][] =>
  (set.spec.volumeClaimTemplates ?? []).map((template: Json) => [
    template,
    `${template.metadata.name}-${set.metadata.name}-${ordinalIn(pod)}`,
  ])

function volumesOf(set: Obj, pod: string, spec: Json): Json {
  const claims = claimNames(set, pod).map(([template, claimName]) => ({
    name: template.metadata.name,
    persistentVolumeClaim: { claimName },
  }))
  const others = (spec.volumes ?? []).filter((volume: Json) => !claims.some(({ name }) => name === volume.name))
  return claims.length + others.length > 0 ? { volumes: [...claims, ...others] } : {}
}

function isItself(set: Obj, pod: Obj): boolean {
  const hasClaim = ([template, claimName]: [Json, string]) =>
    pod.spec.volumes?.some(
      (volume: Json) => volume.name === template.metadata.name && volume.persistentVolumeClaim?.claimName === claimName,
    )
  return pod.metadata.labels?.[nameLabel] === pod.metadata.name && claimNames(set, pod.metadata.name).every(hasClaim)
}

/** The owner of a claim by the retention policy: none, the set, or a pod that is scaled down. */
function claimOwners(set: Obj, pod: Obj, owners: readonly Owner[]): readonly Owner[] {
  const { whenDeleted = "Retain", whenScaled = "Retain" } = set.spec.persistentVolumeClaimRetentionPolicy ?? {}
  const index = ordinalOf(pod) - (set.spec.ordinals?.start ?? 0)
  const isScaledAway = index < 0 || index >= set.spec.replicas
  const isOurs = ({ kind, name, uid }: Owner) =>
    uid === set.metadata.uid || uid === pod.metadata.uid || (kind === "Pod" && name === pod.metadata.name)
  const others = owners.filter(owner => !isOurs(owner))
  if (whenScaled === "Delete" && isScaledAway && pod.metadata.uid) return [...others, ownerReference(asPod(pod))]
  if (whenDeleted === "Delete") return [...others, ownerReference(set)]
  return others
}

const asPod = (pod: Obj): Obj => ({ ...pod, apiVersion: "v1", kind: "Pod" })

/** Runs pods with stable identities. Reads StatefulSets, Pods and claims; writes Pods, claims, revisions and status. */
export function statefulSetController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const sets = servedKind(storage, "apps/v1", "StatefulSet")
  const podKind = servedKind(storage, "v1", "Pod")
  const revisionKind = servedKind(storage, "apps/v1", "ControllerRevision")
  const claims = servedKind(storage, "v1", "PersistentVolumeClaim")
  const owned = ownedIndex(storage, "v1", "Pod", "StatefulSet")
  const history = ownedIndex(storage, "apps/v1", "ControllerRevision", "StatefulSet")
  const record = createRecorder(world, "statefulset-controller")

  const adopters = adoptersAmong(storage, sets, ({ metadata }, pod) => isMember(metadata.name, pod))

  function revisionsOf(set: Obj) {
    const { selector, template } = set.spec
    const revisions = listRevisions({
      storage,
      owner: set,
      owned: history,
      matches: ({ metadata }) => selects(selector, metadata.labels),
    })
    const data = revisionData(template)
    const latest = revisions.at(-1)
    const number = (latest?.revision ?? 0) + 1
    const equal = revisions.findLast(revision => isSameData(revision.data, data))
    const known = set.status?.collisionCount ?? 0
    let made = { revision: equal as Obj, collisionCount: known }
    if (equal && equal !== latest) made.revision = renumber(storage, equal, number)
    if (!equal) {
      const hashOf = (count: number) => revisionHash(data, count)
      made = createRevision(storage, set, { data, number, hashOf, annotations: set.metadata.annotations }, known)
    }
    const current = revisions.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? made.revision
    return { revisions, update: made.revision, current, collisionCount: made.collisionCount }
  }

  function seeToClaims(set: Obj, pod: Json) {
    const { namespace, name } = pod.metadata
    for (const [template, claimName] of claimNames(set, name)) {
      const existing = storage.find(claims, { namespace, name: claimName })
      if (existing) {
        if (existing.metadata.deletionTimestamp)
          throw new StatusError(409, "Conflict", `pvc ${claimName} is being deleted`)
        const owners = claimOwners(set, pod, existing.metadata.ownerReferences ?? [])
        if (!same(owners, existing.metadata.ownerReferences ?? [])) {
          const metadata = { ...existing.metadata, ownerReferences: owners }
          storage.update(claims, { ...existing, metadata }, manager)
        }
        continue
      }
      const labels = { ...template.metadata.labels, ...set.spec.selector.matchLabels }
      const metadata = { ...template.metadata, name: claimName, namespace, labels }
      storage.create(
        claims,
        { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec: template.spec },
        manager,
      )
      const message = `Create Claim ${claimName} Pod ${name} in StatefulSet ${set.metadata.name} success`
      record(set, "Normal", "SuccessfulCreate", message)
    }
  }

  function tell(set: Obj, pod: Json, verb: "create" | "update" | "delete", act: () => void) {
    const [title, which] = [`${verb[0]!.toUpperCase()}${verb.slice(1)}`, `Pod ${pod.metadata.name} in StatefulSet`]
    try {
      act()
      record(set, "Normal", `Successful${title}`, `${title} ${which} ${set.metadata.name} successful`)
    } catch (error) {
      if (error instanceof StatusError && error.reason !== "AlreadyExists") {
        const message = `${title} ${which} ${set.metadata.name} failed error: ${error.message}`
        record(set, "Warning", `Failed${title}`, message)
      }
      throw error
    }
  }

  function apply(set: Obj, action: Action) {
    const { pod } = action
    switch (action.do) {
      case "create":
        tell(set, pod, "create", () => {
          seeToClaims(set, pod)
          const created = storage.create(podKind, pod, manager)
          seeToClaims(set, created)
        })
        break
      case "delete":
        tell(set, pod, "delete", () => void tolerateAbsence(() => storage.delete(podKind, action.pod.metadata)))
        break
      case "claim":
        seeToClaims(set, pod)
        break
      case "identify": {
        const labels = { ...action.pod.metadata.labels, ...identity(action.pod.metadata.name) }
        tell(set, pod, "update", () => {
          storage.update(podKind, { ...action.pod, metadata: { ...action.pod.metadata, labels } }, manager)
        })
      }
    }
  }

  function truncate(set: Obj, revisions: readonly Obj[], pods: readonly Obj[], live: readonly Obj[]) {
    const names = new Set([...live.map(({ metadata }) => metadata.name), ...pods.map(revisionOf)])
    const spare = revisions.filter(({ metadata }) => !names.has(metadata.name))
    const limit = set.spec.revisionHistoryLimit ?? 10
    for (const revision of spare.slice(0, Math.max(0, spare.length - limit)))
      tolerateAbsence(() => storage.delete(revisionKind, revision.metadata))
  }

  return loop(world, {
    name: "statefulset-controller",
    begin() {
      const stops = [owned.begin(), history.begin()]
      return () => stops.forEach(stop => void stop())
    },
    watches: [
      { apiVersion: "apps/v1", kind: "StatefulSet", keys: ({ object }) => [keyOf(object)] },
      { apiVersion: "v1", kind: "Pod", keys: change => ownersToWake(change, "StatefulSet", adopters) },
    ],
    reconcile(key) {
      const set = storage.find(sets, nameOf(key))
      if (!set) return undefined
      const { selector, minReadySeconds = 0 } = set.spec
      const pods = claim(
        { storage, kind: podKind, owner: set, owned },
        pod => selects(selector, pod.metadata.labels) && isMember(set.metadata.name, pod),
      )
      const { revisions, current, update, collisionCount } = revisionsOf(set)
      const now = clock.now()
      const next = plan({ set, pods, current, update, collisionCount, now })
      let trouble: unknown
      try {
        for (const action of next.actions) apply(set, action)
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        trouble = error
      }
      const status = completed(set, next.status)
      if (!same(status, set.status)) storage.update(sets, { ...set, status }, { ...manager, subresource: "status" })
      truncate(set, revisions, pods, [current, update])
      if (trouble) throw trouble
      return nextAvailableInMs(pods, minReadySeconds, now)
    },
  })
}

const isMember = (set: string, { metadata }: Obj) => /^(.*)-\d+$/.exec(metadata.name)?.[1] === set

/** Binds a claim when it is created, since volumes are unlimited here. Reads and writes PersistentVolumeClaims. */
export function volumeBinder(world: PhysicsWorld): Part {
  const { storage } = world
  const claims = servedKind(storage, "v1", "PersistentVolumeClaim")
  return loop(world, {
    name: "persistentvolume-binder",
    watches: [{ apiVersion: "v1", kind: "PersistentVolumeClaim", keys: ({ object }) => [keyOf(object)] }],
    reconcile(key) {
      const found = storage.find(claims, nameOf(key))
      if (!found || found.metadata.deletionTimestamp || found.status?.phase === "Bound") return undefined
      const { accessModes, resources } = found.spec
      const bound = found.spec.volumeName
        ? found
        : storage.update(
            claims,
            { ...found, spec: { ...found.spec, volumeName: `pvc-${found.metadata.uid}` } },
            manager,
          )
      const status = { phase: "Bound", accessModes, capacity: { storage: resources?.requests?.storage } }
      storage.update(claims, { ...bound, status }, { ...manager, subresource: "status" })
      return undefined
    },
  })
}

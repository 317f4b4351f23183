import type { Instant } from "#lib/instant.ts"
import { isEmptySelector, selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { isChosen, untolerated } from "../fit.ts"
import { createRecorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { positive } from "./counts.ts"
import { intOrPercent } from "./int-or-percent.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { adoptersAmong, claim, manager, ownedIndex, ownersToWake, tolerateAbsence } from "./owned.ts"
import { podTemplateHash } from "./pod-template-hash.ts"
import { createdAt, isAvailable, isReady, isTerminal, nextAvailableInMs, podFromTemplate } from "./pods.ts"
import { isNamespaceTerminating } from "./refusals.ts"
import { byRevision, isSameData, listRevisions, renumber, revisionData, revisionLabel } from "./revisions.ts"
import { same } from "./same.ts"

export type Snapshot = {
  daemonSet: Obj
  nodes: readonly Obj[]
  pods: readonly Obj[]
  hash: string // of the current template
  /** Until when a failed pod on a node is kept. */
  heldUntil(node: string): Instant | undefined
  now: Instant
}

export type Report = { pod: Obj; node: string; phase: "Failed" | "Succeeded" }
export type Plan = { create: string[]; remove: Obj[]; reports: Report[]; lookAgainInMs?: number }

const generationAnnotation = "deprecated.daemonset.template.generation"
const generationLabel = "pod-template-generation"
const burst = 250

/** On which nodes to create a pod, and which pods to delete: first misplaced pods, then outdated ones. */
function plan(snapshot: Snapshot): Plan {
  const placed = place(snapshot)
  const isStill = placed.create.length + placed.remove.length === 0
  if (!isStill || snapshot.daemonSet.spec.updateStrategy?.type !== "RollingUpdate") return placed
  return { ...placed, ...roll(snapshot) }
}

/** One pod on each eligible node, none on the others. */
function place(snapshot: Snapshot): Plan {
  const { daemonSet, nodes, hash, now } = snapshot
  const { minReadySeconds = 0 } = daemonSet.spec
  const byNode = podsByNode(snapshot)
  const isSurging = surge(daemonSet, 1) > 0
  const next: Plan = { create: [], remove: [], reports: [] }

  for (const node of nodes) {
    const { name } = node.metadata
    const there = byNode.get(name)
    const { shouldRun, mayStay } = standing(daemonSet, node)
    if (shouldRun && !there) {
      next.create.push(name)
      continue
    }
    const alive = there?.filter(({ metadata }) => !metadata.deletionTimestamp) ?? []
    if (!mayStay) {
      next.remove.push(...alive)
      continue
    }
    for (const pod of alive.filter(isTerminal)) {
      const { phase } = pod.status
      const held = phase === "Failed" ? snapshot.heldUntil(name) : undefined
      if (held !== undefined && held > now) {
        next.lookAgainInMs = Math.min(next.lookAgainInMs ?? Number.POSITIVE_INFINITY, held - now)
        continue
      }
      next.reports.push({ pod, node: name, phase })
      next.remove.push(pod)
    }
    const running = alive.filter(pod => !isTerminal(pod)).sort(byAge)
    if (!isSurging) {
      next.remove.push(...running.slice(1))
      continue
    }
    if (running.length === 0 && shouldRun) next.create.push(name)
    if (running.length <= 1) continue
    const fresh = running.find(pod => hasHash(pod, hash))
    const stale = running.find(pod => !hasHash(pod, hash))
    next.remove.push(...running.filter(pod => pod !== fresh && pod !== stale))
    if (fresh && stale && (!isReady(stale) || isAvailable(fresh, minReadySeconds, now))) next.remove.push(stale)
  }
  const known = new Set(nodes.map(({ metadata }) => metadata.name))
  for (const [name, pods] of byNode)
    if (!known.has(name)) next.remove.push(...pods.filter(({ spec }) => !spec.nodeName))
  return next
}

/** Replaces outdated pods: unavailable ones at once, the others within maxUnavailable or maxSurge. */
function roll(snapshot: Snapshot): Pick<Plan, "create" | "remove"> {
  const { daemonSet, nodes, now } = snapshot
  const { minReadySeconds = 0, updateStrategy } = daemonSet.spec
  const byNode = podsByNode(snapshot)
  const eligible = nodes.filter(node => standing(daemonSet, node).shouldRun)
  for (const { metadata } of eligible) if (!byNode.has(metadata.name)) byNode.set(metadata.name, [])
  const isFine = (pod: Obj) => isAvailable(pod, minReadySeconds, now)
  const maxSurge = surge(daemonSet, eligible.length)
  const allowed = intOrPercent(updateStrategy.rollingUpdate?.maxUnavailable, eligible.length, "up")
  const maxUnavailable = eligible.length > 0 && allowed === 0 && maxSurge === 0 ? 1 : allowed

  const create: string[] = []
  const remove: Obj[] = []
  const candidates: Obj[] = []
  const unwanted: Obj[] = []
  const newNodes: string[] = []
  let [missing, added, available] = [0, 0, 0]
  for (const [name, pods] of byNode) {
    const alive = pods.filter(({ metadata }) => !metadata.deletionTimestamp)
    const fresh = alive.filter(pod => isUpdated(snapshot, pod))
    const stale = alive.filter(pod => !isUpdated(snapshot, pod))
    if (fresh.length > 1 || stale.length > 1) {
      missing++
      added++
      continue
    }
    const [newPod, oldPod] = [fresh[0], stale[0]]
    if (maxSurge === 0) {
      if (Boolean(newPod) === Boolean(oldPod)) missing++
      else if (newPod) missing += isFine(newPod) ? 0 : 1
      else if (oldPod && !isFine(oldPod)) {
        remove.push(oldPod)
        missing++
      } else if (oldPod && missing < maxUnavailable) candidates.push(oldPod)
      continue
    }
    const serving = oldPod ?? newPod
    if (serving && isFine(serving)) available++
    if (!oldPod) continue
    if (newPod) {
      if (isFine(newPod)) remove.push(oldPod)
      else added++
      continue
    }
    const node = nodes.find(({ metadata }) => metadata.name === name)
    const shouldRun = node !== undefined && standing(daemonSet, node).shouldRun
    if (!shouldRun) (isFine(oldPod) ? unwanted : remove).push(oldPod)
    else if (!isFine(oldPod)) create.push(name)
    else if (added < maxSurge) newNodes.push(name)
  }
  if (maxSurge === 0) {
    remove.push(...candidates.slice(0, Math.max(0, maxUnavailable - missing)))
    return { create, remove }
  }
  remove.push(...unwanted.slice(0, Math.max(0, available - eligible.length)))
  create.push(...newNodes.slice(0, Math.max(0, maxSurge - added)))
  return { create, remove }
}

function status(snapshot: Snapshot): Json {
  const { daemonSet, nodes, now } = snapshot
  const { minReadySeconds = 0 } = daemonSet.spec
  const byNode = podsByNode(snapshot)
  let [desired, current, misplaced, ready, updated, available] = [0, 0, 0, 0, 0, 0]
  for (const node of nodes) {
    const pods = byNode.get(node.metadata.name)
    if (!standing(daemonSet, node).shouldRun) {
      if (pods) misplaced++
      continue
    }
    desired++
    if (!pods) continue
    current++
    const pod = [...pods].sort(byAge)[0]!
    if (isReady(pod)) ready++
    if (isAvailable(pod, minReadySeconds, now)) available++
    if (isUpdated(snapshot, pod)) updated++
  }
  const { collisionCount, conditions } = daemonSet.status ?? {}
  return {
    currentNumberScheduled: current,
    numberMisscheduled: misplaced,
    desiredNumberScheduled: desired,
    numberReady: ready,
    observedGeneration: daemonSet.metadata.generation,
    ...positive("updatedNumberScheduled", updated),
    ...positive("numberAvailable", available),
    ...positive("numberUnavailable", desired - available),
    ...(collisionCount !== undefined && { collisionCount }),
    ...(conditions && { conditions }),
  }
}

/** Pods by the node they are on or meant for, without pods that have ended and are being deleted. */
function podsByNode({ pods }: Snapshot): Map<string, Obj[]> {
  const byNode = new Map<string, Obj[]>()
  for (const pod of pods) {
    if (isTerminal(pod) && pod.metadata.deletionTimestamp) continue
    const node = targetNode(pod)
    if (node === undefined) continue
    const there = byNode.get(node)
    if (there) there.push(pod)
    else byNode.set(node, [pod])
  }
  return byNode
}

function targetNode({ spec }: Obj): string | undefined {
  if (spec.nodeName) return spec.nodeName
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  for (const { matchFields = [] } of terms)
    for (const { key, operator, values } of matchFields)
      if (key === "metadata.name" && operator === "In" && values?.length === 1) return values[0]
  return undefined
}

function standing({ spec: { template } }: Obj, node: Obj): { shouldRun: boolean; mayStay: boolean } {
  const { spec } = template
  if (spec.nodeName && spec.nodeName !== node.metadata.name) return { shouldRun: false, mayStay: false }
  if (!isChosen(spec, node)) return { shouldRun: false, mayStay: false }
  const tolerations = daemonTolerations(spec)
  const { taints } = node.spec ?? {}
  return {
    shouldRun: !untolerated(taints, tolerations, ["NoExecute", "NoSchedule"]),
    mayStay: !untolerated(taints, tolerations, ["NoExecute"]),
  }
}

/** A daemon stays on a node in trouble, since it may be needed to repair the node. */
function daemonTolerations(spec: Json): Json[] {
  const own: Json[] = [...(spec.tolerations ?? [])]
  const wanted: [key: string, effect: string][] = [
    ["not-ready", "NoExecute"],
    ["unreachable", "NoExecute"],
    ["disk-pressure", "NoSchedule"],
    ["memory-pressure", "NoSchedule"],
    ["pid-pressure", "NoSchedule"],
    ["unschedulable", "NoSchedule"],
  ]
  if (spec.hostNetwork) wanted.push(["network-unavailable", "NoSchedule"])
  for (const [name, effect] of wanted) {
    const toleration = { key: `node.kubernetes.io/${name}`, operator: "Exists", effect }
    const index = own.findIndex(
      each =>
        each.key === toleration.key && each.effect === effect && (each.operator ?? "Equal") === "Exists" && !each.value,
    )
    if (index < 0) own.push(toleration)
    else own[index] = toleration
  }
  return own
}

/** The pod for one node. Its affinity to the node's name makes the scheduler bind it there. */
function podFor(daemonSet: Obj, hash: string, node: string): Json {
  const { template } = daemonSet.spec
  const generation = daemonSet.metadata.annotations?.[generationAnnotation]
  const pod = podFromTemplate(template, daemonSet)
  const { affinity } = template.spec
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: {
        ...pod.metadata.labels,
        ...(generation !== undefined && { [generationLabel]: generation }),
        [revisionLabel]: hash,
      },
    },
    spec: {
      ...pod.spec,
      tolerations: daemonTolerations(template.spec),
      affinity: {
        ...affinity,
        nodeAffinity: {
          ...affinity?.nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: {
            ...required,
            nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: [node] }] }],
          },
        },
      },
    },
  }
}

const hasHash = ({ metadata }: Obj, hash: string) => metadata.labels?.[revisionLabel] === hash

function isUpdated({ daemonSet, hash }: Snapshot, pod: Obj): boolean {
  const generation = daemonSet.metadata.annotations?.[generationAnnotation]
  return hasHash(pod, hash) || (generation !== undefined && pod.metadata.labels?.[generationLabel] === generation)
}

function surge({ spec: { updateStrategy } }: Obj, count: number): number {
  if (updateStrategy?.type !== "RollingUpdate") return 0
  return intOrPercent(updateStrategy.rollingUpdate?.maxSurge, count, "up")
}

const byAge = (a: Obj, b: Obj) =>
  Number(Boolean(b.spec.nodeName)) - Number(Boolean(a.spec.nodeName)) ||
  (createdAt(a) ?? 0) - (createdAt(b) ?? 0) ||
  (a.metadata.name < b.metadata.name ? -1 : 1)

/** Runs one pod per node. Reads DaemonSets, Nodes and Pods; writes Pods, revisions and the status of DaemonSets. */
export function daemonSetController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const daemonSets = servedKind(storage, "apps/v1", "DaemonSet")
  const podKind = servedKind(storage, "v1", "Pod")
  const nodeKind = servedKind(storage, "v1", "Node")
  const revisionKind = servedKind(storage, "apps/v1", "ControllerRevision")
  const owned = ownedIndex(storage, "v1", "Pod", "DaemonSet")
  const history = ownedIndex(storage, "apps/v1", "ControllerRevision", "DaemonSet")
  const record = createRecorder(world, "daemonset-controller")
  const holds = new Map<string, { until: Instant; ms: number }>()

  const adopters = adoptersAmong(storage, daemonSets)

  /** The revision of the current template, and the others. Throws if a name was taken: the retry uses another one. */
  function revisionsOf(daemonSet: Obj): { current: Obj; old: Obj[] } {
    const { selector, template } = daemonSet.spec
    const matches = ({ metadata }: Obj) => selects(selector, metadata.labels)
    const all = listRevisions({ storage, owner: daemonSet, owned: history, matches })
    const data = revisionData(template)
    const old = all.filter(revision => !isSameData(revision.data, data))
    const number = Math.max(0, ...old.map(({ revision }) => revision)) + 1
    const found = all.findLast(revision => isSameData(revision.data, data))
    if (found) return { current: found.revision < number ? renumber(storage, found, number) : found, old }

    const { collisionCount } = daemonSet.status ?? {}
    const hash = podTemplateHash(template, collisionCount)
    const { name, namespace, annotations } = daemonSet.metadata
    try {
      const current = storage.create(
        revisionKind,
        {
          apiVersion: "apps/v1",
          kind: "ControllerRevision",
          metadata: {
            name: `${name}-${hash}`,
            namespace,
            labels: { ...template.metadata?.labels, [revisionLabel]: hash },
            ...(annotations && { annotations }),
            ownerReferences: podFromTemplate(template, daemonSet).metadata.ownerReferences,
          },
          data,
          revision: number,
        },
        manager,
      )
      return { current, old }
    } catch (error) {
      if (error instanceof StatusError && error.reason === "AlreadyExists") {
        const next = { ...daemonSet.status, collisionCount: (collisionCount ?? 0) + 1 }
        storage.update(daemonSets, { ...daemonSet, status: next }, { ...manager, subresource: "status" })
      }
      throw error
    }
  }

  function act(daemonSet: Obj, hash: string, { create, remove, reports }: Plan) {
    const { uid, namespace } = daemonSet.metadata
    for (const { pod, node, phase } of reports) {
      const which = `daemon pod ${namespace}/${pod.metadata.name} on node ${node}`
      if (phase === "Succeeded")
        record(daemonSet, "Normal", "SucceededDaemonPod", `Found succeeded ${which}, will try to delete it`)
      else {
        const key = `${uid} ${node}`
        const ms = Math.min(15 * 60_000, (holds.get(key)?.ms ?? 500) * 2)
        holds.set(key, { until: clock.now() + ms, ms })
        record(daemonSet, "Warning", "FailedDaemonPod", `Found failed ${which}, will try to kill it`)
      }
    }
    for (const node of create.slice(0, burst)) {
      try {
        const pod = storage.create(podKind, podFor(daemonSet, hash, node), manager)
        record(daemonSet, "Normal", "SuccessfulCreate", `Created pod: ${pod.metadata.name}`)
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        if (isNamespaceTerminating(error)) return
        record(daemonSet, "Warning", "FailedCreate", `Error creating: ${error.message}`)
        throw error
      }
    }
    for (const pod of remove.slice(0, burst)) {
      const removed = tolerateAbsence(() => storage.delete(podKind, pod.metadata))
      if (removed) record(daemonSet, "Normal", "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`)
    }
  }

  function cleanUp(daemonSet: Obj, old: readonly Obj[], pods: readonly Obj[]) {
    let surplus = old.length - (daemonSet.spec.revisionHistoryLimit ?? 10)
    const live = new Set(pods.map(({ metadata }) => metadata.labels?.[revisionLabel]))
    for (const revision of [...old].sort(byRevision)) {
      if (surplus <= 0) return
      if (live.has(revision.metadata.labels?.[revisionLabel])) continue
      tolerateAbsence(() => storage.delete(revisionKind, revision.metadata))
      surplus--
    }
  }

  return loop(world, {
    name: "daemonset-controller",
    begin() {
      const stops = [owned.begin(), history.begin()]
      return () => stops.forEach(stop => void stop())
    },
    watches: [
      { apiVersion: "apps/v1", kind: "DaemonSet", keys: ({ object }) => [keyOf(object)] },
      { apiVersion: "v1", kind: "Pod", keys: change => ownersToWake(change, "DaemonSet", adopters) },
      {
        apiVersion: "v1",
        kind: "Node",
        // A daemon depends on a node's labels and taints, not on its heartbeat.
        keys: ({ type, object, before }) =>
          type === "MODIFIED" && before && same(placing(before), placing(object))
            ? []
            : storage.list(daemonSets).items.map(keyOf),
      },
    ],
    reconcile(key) {
      const daemonSet = storage.find(daemonSets, nameOf(key))
      if (!daemonSet || daemonSet.metadata.deletionTimestamp) return undefined
      const { selector, minReadySeconds = 0 } = daemonSet.spec
      if (isEmptySelector(selector)) return undefined
      const { current, old } = revisionsOf(daemonSet)
      const hash = current.metadata.labels?.[revisionLabel] ?? ""
      const pods = claim({ storage, kind: podKind, owner: daemonSet, owned }, pod =>
        selects(selector, pod.metadata.labels),
      )
      const now = clock.now()
      const heldUntil = (node: string) => holds.get(`${daemonSet.metadata.uid} ${node}`)?.until
      const snapshot = { daemonSet, nodes: storage.list(nodeKind).items, pods, hash, heldUntil, now }
      const next = plan(snapshot)
      let trouble: unknown
      try {
        act(daemonSet, hash, next)
        cleanUp(daemonSet, old, pods)
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        trouble = error
      }
      // Unlike the other controllers, this one reads its pods again after it has acted.
      const left = owned.of(daemonSet).filter(pod => selects(selector, pod.metadata.labels))
      const nextStatus = status({ ...snapshot, pods: left })
      if (!same(nextStatus, daemonSet.status))
        storage.update(daemonSets, { ...daemonSet, status: nextStatus }, { ...manager, subresource: "status" })
      if (trouble) throw trouble
      return next.lookAgainInMs ?? nextAvailableInMs(pods, minReadySeconds, now)
    },
  })
}

const placing = ({ metadata, spec }: Obj) => ({ labels: metadata.labels, taints: spec?.taints })

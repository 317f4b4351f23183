import { isDeepStrictEqual } from "node:util"
import type { Json } from "#cluster-sim/index.ts"
import type { Instant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import {
  allowanceOf,
  graceMsOf,
  isHeldInPlace,
  isUnverified,
  noteOf,
  protectedBy,
  rootOf,
} from "./in-place-workloads.ts"

// What always holds where pods are updated in place, read from what was committed and from what was sent, not from the
// code that is judged by it.

const gate = "autoimagemanager.io/InPlaceUpdateReady"
const drainReason = "InPlaceUpdate"
/** How old a picture may be where nothing delays it. */
const usualLagMs = 10_000

/** Everything that is wrong with updates in place in a run, each with the invariant it breaks. */
export function inPlaceViolationsOf(run: Run): string[] {
  if ((run.updates ?? []).length === 0) return []
  const reading = read(run)
  return [
    ...versions(run).map(what => `S10 ${what}`),
    ...reading.writes.flatMap(write => unproven(reading, write).map(what => `S17 ${tell(write)}: ${what}`)),
    ...reading.writes.flatMap(write => conditions(write).map(what => `S21 ${tell(write)}: ${what}`)),
    ...reading.writes.flatMap(write => drained(reading, write).map(what => `S21 ${tell(write)}: ${what}`)),
    ...reading.writes.flatMap(write => served(reading, write).map(what => `S22 ${tell(write)}: ${what}`)),
    ...reading.writes.flatMap(write => counted(reading, write).map(what => `S22 ${tell(write)}: ${what}`)),
    ...budgets(reading).map(what => `S23 ${what}`),
    ...reading.writes.flatMap(write => onlyImages(write).map(what => `S24 ${tell(write)}: ${what}`)),
    ...others(reading).map(what => `S24 ${what}`),
    ...replaced(reading).map(what => `S24 ${what}`),
  ]
}

/** A write of ours to a pod that was committed. */
type PodWrite = {
  sent: Sent
  commit: Commit
  before: Json
  after: Json
  /** Containers whose images it changes. */
  images: readonly string[]
}

export type Reading = {
  run: Run
  writes: readonly PodWrite[]
  byRevision: ReadonlyMap<number, PodWrite>
}

function read(run: Run): Reading {
  const commits = new Map(run.commits.map(commit => [commit.revision, commit]))
  const writes = (run.updates ?? []).flatMap((sent): PodWrite[] => {
    const commit = commits.get(sent.revision ?? Number.NaN)
    if (commit?.object.kind !== "Pod" || !commit.before) return []
    const { before, object: after } = commit
    return [{ sent, commit, before, after, images: changedImages(before, after) }]
  })
  writes.sort((a, b) => a.commit.revision - b.commit.revision)
  return { run, writes, byRevision: new Map(writes.map(write => [write.commit.revision, write])) }
}

const tell = ({ sent, commit }: PodWrite) =>
  `pod ${commit.object.metadata.name} by process ${sent.process} at ${commit.revision}`

const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value : [])
const containersOf = ({ spec }: Json) => [...listOf(spec.initContainers), ...listOf(spec.containers)]
const statusOf = ({ status }: Json, name: string): Json | undefined =>
  [...listOf(status?.initContainerStatuses), ...listOf(status?.containerStatuses)].find(each => each.name === name)
const conditionOf = ({ status }: Json, type: string): Json | undefined =>
  listOf(status?.conditions).find(each => each.type === type)
const isReady = (pod: Json) => conditionOf(pod, "Ready")?.status === "True"
const hasGate = ({ spec }: Json) => listOf(spec.readinessGates).some(({ conditionType }) => conditionType === gate)
const isDrained = (pod: Json) => {
  const condition = conditionOf(pod, gate)
  return condition?.status === "False" && condition.reason === drainReason
}

const changedImages = (before: Json, after: Json): string[] =>
  containersOf(after).flatMap(({ name, image }) =>
    containersOf(before).some(each => each.name === name && each.image !== image) ? [name] : [],
  )

/** Every change of an object, pods aside, is decided from the version that it changes. */
function versions({ commits, updates = [] }: Run): string[] {
  const byRevision = new Map(commits.map(commit => [commit.revision, commit]))
  return updates.flatMap(({ method, revision, body, process }) => {
    const { object, before } = byRevision.get(revision ?? Number.NaN) ?? {}
    if (method !== "PATCH" || !object || !before || object.kind === "Pod") return []
    const version = Array.isArray(body)
      ? body.find(({ path }) => path === "/metadata/resourceVersion")?.value
      : body?.metadata?.resourceVersion
    return version === before.metadata.resourceVersion
      ? []
      : [
          `${object.kind} ${object.metadata.name} by process ${process} at ${revision}: sent for version ${version ?? "of any"}`,
        ]
  })
}

/** No pod gets another image before the agent of its node has shown it, except one that goes back. */
function unproven({ run }: Reading, { sent, commit, before, after, images }: PodWrite): string[] {
  const mark = noteOf(after)
  if (mark?.failed !== undefined || String(mark?.operation).startsWith("back-") || !before.spec.nodeName) return []
  if (workloadsAt(run, sent, commit, before).some(isUnverified)) return []
  const known = { ...run, commits: run.commits.filter(({ revision }) => revision < commit.revision) }
  // What was asked for: admission may make something else of it.
  const asked = { ...after, spec: { ...after.spec, ...sent.body?.spec } }
  return images.flatMap(name => (digestsOf(known, asked, name).size > 0 ? [] : [`the image of ${name} was not shown`]))
}

/** Every write to a pod is decided from the very pod that it changes. */
function conditions({ sent, before }: PodWrite): string[] {
  const { uid, resourceVersion } = sent.body?.metadata ?? {}
  if (uid !== before.metadata.uid) return [`sent for uid ${uid ?? "of any pod"}`]
  return resourceVersion === before.metadata.resourceVersion ? [] : [`sent for version ${resourceVersion ?? "of any"}`]
}

/** With the gate, a pod that serves gets another image only when the gate was False for as long as was asked for. */
function drained({ run }: Reading, { sent, commit, before, images }: PodWrite): string[] {
  if (images.length === 0 || !hasGate(before)) return []
  if (!isDrained(before)) return isReady(before) ? [`another image for ${images.join()} while its gate is True`] : []
  const { uid } = before.metadata
  const since = run.commits.findLast(
    ({ object, before: old, revision }) =>
      revision < commit.revision && object.metadata.uid === uid && isDrained(object) && !(old && isDrained(old)),
  )!.at
  // A pod that was not ready before served nothing.
  const graceMs = Math.min(...workloadsAt(run, sent, commit, before).map(graceMsOf))
  return commit.at - since < graceMs ? [`after ${commit.at - since} ms, and its grace period is ${graceMs} ms`] : []
}

/** The workload of a pod as it may have been seen when a write was decided. */
function workloadsAt(run: Run, sent: Sent, commit: Commit, pod: Json): Json[] {
  const id = rootOf(run, pod, commit.revision)
  const from = sent.at - run.lagMs - usualLagMs
  const states = run.commits.filter(
    ({ object, revision }) => object.metadata.uid === id && revision < commit.revision && object.kind !== "Pod",
  )
  const recent = states.filter(({ at }) => at >= from)
  const first = states.findLast(({ at }) => at < from)
  return [...(first ? [first] : []), ...recent].map(({ object }) => object)
}

/** The gate is True again only on a pod whose changed containers are new ones, with the bits that were pulled. */
function served(reading: Reading, write: PodWrite): string[] {
  const { commit, before, after } = write
  if (!isDrained(before) || isDrained(after)) return []
  const drains = drainsOf(reading, before.metadata.uid)
  return unchanged(reading, write, drains.findLast(({ revision }) => revision < commit.revision)?.revision ?? 0)
}

const revisionLabel = "controller-revision-hash"

/** A pod of a set counts as one of the new revision only then, too. */
function counted(reading: Reading, write: PodWrite): string[] {
  const { before, after, sent, commit } = write
  if (before.metadata.labels?.[revisionLabel] === after.metadata.labels?.[revisionLabel]) return []
  const changes = reading.writes.filter(
    each => each.images.length > 0 && each.before.metadata.uid === before.metadata.uid,
  )
  const isOf = ({ spec }: Json) =>
    containersOf(spec.template).every(({ name, image }) =>
      containersOf(after).some(each => each.name === name && each.image === image),
    )
  // A new name of the same bits changes no image.
  if (changes.length > 0 && !workloadsAt(reading.run, sent, commit, after).some(isOf))
    return ["it is labelled with the images of another revision"]
  return unchanged(reading, write, 0)
}

/** What is not proven yet of all that we have changed in a pod since then. */
function unchanged(reading: Reading, { commit, before }: PodWrite, began: number): string[] {
  const { uid } = before.metadata
  const changes = reading.writes.filter(
    write =>
      write.images.length > 0 &&
      write.before.metadata.uid === uid &&
      write.commit.revision < commit.revision &&
      write.commit.revision > began,
  )
  const names = new Set(changes.flatMap(({ images }) => images))
  return [...names].flatMap(name => {
    const changed = changes.findLast(({ images }) => images.includes(name))!
    const now = statusOf(before, name)
    if (!now?.containerID || now.containerID === statusOf(changed.before, name)?.containerID)
      return isSameBits(reading.run, before, name, now) ? [] : [`${name} is not a new container`]
    if (!now.ready) return [`${name} is not ready`]
    return isProven(reading.run, before, name, now) ? [] : [`${name} runs ${now.imageID}, and other bits were pulled`]
  })
}

const drainsOf = ({ run }: Reading, uid: string) =>
  run.commits.filter(
    ({ object, before }) => object.metadata.uid === uid && isDrained(object) && !(before && isDrained(before)),
  )

/** What the agent of its node has found for the image of a container, at any time. */
function digestsOf({ commits }: Run, pod: Json, name: string): Set<string> {
  const { image } = containersOf(pod).find(each => each.name === name)!
  const told = commits.flatMap(({ object }) =>
    object.kind === "NodeImage" && object.metadata.name === pod.spec.nodeName
      ? Object.entries<Json>(object.status?.imageStatuses ?? {})
      : [],
  )
  return new Set(
    told.flatMap(([repository, { tags }]) =>
      listOf(tags).flatMap(({ tag, phase, digest }) =>
        phase === "Succeeded" && digest && `${repository}:${tag}` === image ? [String(digest)] : [],
      ),
    ),
  )
}

function isProven(run: Run, pod: Json, name: string, now: Json): boolean {
  const digests = digestsOf(run, pod, name)
  return digests.size === 0 || [...digests].some(digest => String(now.imageID).endsWith(digest))
}

/** An image that was changed back before the kubelet saw the change restarts nothing. Its name counts where no agent was asked. */
function isSameBits(run: Run, pod: Json, name: string, now: Json | undefined): boolean {
  const { image } = containersOf(pod).find(each => each.name === name)!
  if (now?.ready !== true) return false
  return digestsOf(run, pod, name).size > 0 ? isProven(run, pod, name, now) : now.image === image
}

type Down = { pod: Json; root: string; was: ReadonlyMap<string, string>; since: Instant }

/** No more pods are down because of us than are allowed, and no budget is exceeded by us alone. */
function budgets({ run, byRevision }: Reading): string[] {
  const down = new Map<string, Down>()
  const live = new Map<string, Json>()
  const protectors = new Map<string, Json>()
  const problems: string[] = []
  for (const commit of run.commits) {
    const { object, type } = commit
    const { uid } = object.metadata
    if (object.kind === "PodDisruptionBudget") {
      if (type === "DELETED") protectors.delete(uid)
      else protectors.set(uid, object)
    }
    if (object.kind !== "Pod") continue
    if (type === "DELETED" || object.metadata.deletionTimestamp) {
      down.delete(uid)
      live.delete(uid)
      continue
    }
    live.set(uid, object)
    const write = byRevision.get(commit.revision)
    const disturbs = write && isReady(write.before) && (write.images.length > 0 || isDrained(object))
    if (write && (disturbs || (down.has(uid) && write.images.length > 0))) {
      const was = new Map([...(down.get(uid)?.was ?? [])])
      for (const name of write.images) was.set(name, String(statusOf(write.before, name)?.containerID ?? ""))
      down.set(uid, { pod: object, root: rootOf(run, object, commit.revision), was, since: commit.at })
    } else if (isServingAgain(object, down.get(uid), commit.at)) down.delete(uid)
    if (!disturbs) continue
    const { root } = down.get(uid)!
    const count = [...down.values()].filter(each => each.root === root).length
    const allowed = Math.max(...workloadsAt(run, write.sent, commit, object).map(allowanceOf))
    if (count > allowed) problems.push(`${tell(write)}: ${count} pods are down, ${allowed} are allowed`)
    for (const budget of protectors.values()) {
      const covers = ({ metadata }: Json) => selects(budget.spec.selector, metadata.labels ?? {})
      if (!covers(object)) continue
      const covered = [...live.values()].filter(covers).length
      const ours = [...down.values()].filter(({ pod }) => covers(pod)).length
      const most = covered - protectedBy(budget, covered)
      if (ours > most)
        problems.push(`${tell(write)}: ${ours} pods of budget ${budget.metadata.name} are down, ${most} are allowed`)
    }
  }
  return problems
}

/** After half a minute, a container that was not replaced will not be. The record of the change has whole seconds. */
const unseenMs = 29_000

const isServingAgain = (pod: Json, down: Down | undefined, at: Instant) =>
  down !== undefined &&
  isReady(pod) &&
  !isDrained(pod) &&
  [...down.was].every(([name, id]) => statusOf(pod, name)?.containerID !== id || at - down.since > unseenMs)

/** Of a pod, nothing but images is changed, and of its status nothing but the gate. */
function onlyImages({ before, after, sent }: PodWrite): string[] {
  const problems: string[] = []
  if (before.metadata.uid !== after.metadata.uid) problems.push("it is another pod")
  const plain = ({ spec }: Json) => ({
    ...spec,
    containers: listOf(spec.containers).map(({ image: _, ...rest }) => rest),
    initContainers: listOf(spec.initContainers).map(({ image: _, ...rest }) => rest),
  })
  if (!isDeepStrictEqual(plain(before), plain(after))) problems.push("more of its spec than images is changed")
  for (const { type } of listOf(sent.body?.status?.conditions))
    if (type !== gate) problems.push(`condition ${type} is written`)
  const { conditions: _, ...rest } = sent.body?.status ?? {}
  if (Object.keys(rest).length > 0) problems.push(`status ${Object.keys(rest).join()} is written`)
  return problems
}

/** A container whose image we did not change goes on. What ends by itself is not ours. */
function others({ run, writes }: Reading): string[] {
  const touched = new Map<string, Set<string>>()
  const problems: string[] = []
  const changed = new Map(writes.map(write => [write.commit.revision, write]))
  const isRestartedByRequest = run.commits.some(({ object }) => object.kind === "ContainerRecreateRequest")
  if (isRestartedByRequest) return []
  for (const { object, before, revision } of run.commits) {
    if (object.kind !== "Pod" || !before) continue
    const { uid, name } = object.metadata
    const write = changed.get(revision)
    if (write) for (const image of write.images) touched.set(uid, (touched.get(uid) ?? new Set()).add(image))
    const ours = touched.get(uid)
    if (!ours) continue
    for (const { name: container } of containersOf(object)) {
      const [old, now] = [statusOf(before, container), statusOf(object, container)]
      if (ours.has(container) || !old?.containerID || old.containerID === now?.containerID) continue
      if (old.state?.terminated) continue
      if (isSameImage(before, object, container))
        problems.push(`pod ${name} at ${revision}: container ${container} was replaced`)
    }
  }
  return problems
}

const isSameImage = (a: Json, b: Json, name: string) =>
  isDeepStrictEqual(
    ...([a, b].map(pod => containersOf(pod).find(each => each.name === name)?.image) as [unknown, unknown]),
  )

/** From the hold to the next change, a Deployment that completed in place never had pods in a second ReplicaSet. */
function replaced({ run }: Reading): string[] {
  const problems: string[] = []
  for (const [index, { object, before, revision }] of run.commits.entries()) {
    if (object.kind !== "Deployment" || !before || !isHeldInPlace(before) || isHeldInPlace(object)) continue
    const note = noteOf(object)
    if (note?.fence === undefined || note.reason !== "Completed") continue
    const end = run.commits.findIndex(
      (each, at) =>
        at > index &&
        each.object.metadata.uid === object.metadata.uid &&
        !isDeepStrictEqual(each.object.spec.template, object.spec.template),
    )
    const after = run.commits.slice(index, end < 0 ? undefined : end)
    const made = after.filter(
      each =>
        each.object.kind === "ReplicaSet" &&
        each.type === "ADDED" &&
        listOf(each.object.metadata.ownerReferences).some(({ uid }) => uid === object.metadata.uid) &&
        (each.object.spec.replicas ?? 1) > 0,
    )
    if (made.length > 0)
      problems.push(
        `${object.metadata.name} was released at ${revision}, and got another ReplicaSet at ${made[0]!.revision}`,
      )
  }
  return problems
}

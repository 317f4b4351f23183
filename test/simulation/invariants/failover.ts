import type { Json } from "#cluster-sim/index.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import type { Commit, Run } from "#test/support/record.ts"
import { isHeldInPlace } from "./in-place-workloads.ts"
import { decisionOf, idOf, keyOf } from "./reading.ts"

// What always holds where AlternateImageSources look after pulls, read from what was committed and not from the code
// that is judged by it.

/** A container that was sent elsewhere: of a pod, or in the template of a workload. */
type Move = {
  commit: Commit
  before: Json
  decision: Json
  isPod: boolean
  container: string
  from: string
  to: string
  /** The AlternateImageSource that decided, as it stood. */
  source: Json | undefined
  /** What the pod belongs to in the end, or the workload itself; undefined where the chain of uids is broken. */
  root: Json | undefined
  /** What has changed since then cannot be known. */
  seenBefore: Instant
  /** What the pod was made with. */
  made: string | undefined
  rootChangedAt: Instant
  /** Pods of the root, and those of them that could not pull what the template says. */
  pods: number
  failing: number
  /** What the image that the root names was last seen to be. */
  digest: string | undefined
  /** When the run of a Canary that the pod is of was given up. */
  runOverAt: Instant | undefined
}

/** Everything that is wrong with how pulls were failed over in a run, each with the invariant it breaks. */
export function failoverViolationsOf(run: Run): string[] {
  if (!run.commits.some(({ object }) => object.kind === "AlternateImageSource")) return []
  const moves = movesOf(run)
  return [
    ...moves.flatMap(each => equivalents(each).map(what => `S11 ${tell(each)} ${what}`)),
    ...digests(run, moves),
    ...moves.flatMap(each => waiting(each).map(what => `S12 ${tell(each)} ${what}`)),
    ...calmness(moves),
    ...moves.filter(({ source }) => !source).map(each => `S14 ${tell(each)}: no source of its namespace decided that`),
    ...moves.flatMap(each => shares(each).map(what => `S15 ${tell(each)} ${what}`)),
    ...moves
      .filter(({ runOverAt, seenBefore }) => runOverAt !== undefined && runOverAt < seenBefore)
      .map(each => `S32 ${tell(each)}: its run was given up`),
    ...preconditions(run),
    ...accepted(run, moves),
  ]
}

const usualLagMs = 10_000
const tell = ({ commit, container, from, to }: Move) =>
  `${commit.object.kind} ${keyOf(commit.object)} ${container} at ${commit.revision}: ${from} → ${to}`

function movesOf(run: Run): Move[] {
  const live = new Map<string, Json>(run.initial.map(object => [idOf(object), object]))
  const changedAt = new Map<string, Instant>()
  const seen = new Map<string, string>()
  const made = new Map(run.initial.map(object => [object.metadata.uid, object]))
  const runOverAt = new Map<string, Instant>()
  const moves: Move[] = []
  for (const commit of run.commits) {
    const { object, before, type, at } = commit
    const decision = decisionOf(object)
    const isOurs =
      String(decision.by ?? "").startsWith("alternateimagesource/") &&
      before?.metadata.uid === object.metadata.uid &&
      JSON.stringify(decisionOf(before!)) !== JSON.stringify(decision)
    if (isOurs) {
      const root = rootOf(live, before!)
      const named = String(decision.by).replace("alternateimagesource/", "")
      const source = [...live.values()].find(
        ({ kind, metadata }) =>
          kind === "AlternateImageSource" &&
          metadata.name === named &&
          metadata.namespace === object.metadata.namespace,
      )
      for (const { name, from, to } of changed(before!, object)) {
        const mine = [...live.values()].filter(each => each.kind === "Pod" && sameObject(rootOf(live, each), root))
        moves.push({
          commit,
          before: before!,
          decision,
          isPod: object.kind === "Pod",
          container: name,
          from,
          to,
          source,
          root,
          seenBefore: (parseInstant(decision.at) ?? at) - run.lagMs - usualLagMs,
          made: imageOf(made.get(object.metadata.uid) ?? object, name),
          rootChangedAt: root ? (changedAt.get(idOf(root)) ?? Number.NEGATIVE_INFINITY) : at,
          pods: mine.length,
          failing: mine.filter(each => imageOf(each, name) === from && isWaiting(each, name)).length,
          runOverAt: ownersOf(live, before!).flatMap(each => runOverAt.get(each.metadata.uid) ?? [])[0],
          digest: seen.get(`${object.metadata.namespace} ${decision.was?.[name] ?? from}`),
        })
      }
    } else if (before && JSON.stringify(before.spec) !== JSON.stringify(object.spec)) changedAt.set(idOf(object), at)
    if (object.kind === "Pod")
      for (const { name, imageID = "" } of statusesOf(object))
        if (imageID.includes("@"))
          seen.set(`${object.metadata.namespace} ${imageOf(object, name)}`, imageID.split("@")[1]!)
    if (object.kind === "Pod" && !made.has(object.metadata.uid)) made.set(object.metadata.uid, object)
    const isOver = object.metadata.deletionTimestamp || object.metadata.labels?.[endedLabel]
    if (isCanary(ownerOf(object)) && isOver && !runOverAt.has(object.metadata.uid))
      runOverAt.set(object.metadata.uid, at)
    if (type === "DELETED") live.delete(idOf(object))
    else live.set(idOf(object), object)
  }
  return moves
}

/** Along controller references, by uid and in the same namespace. In a circle the nearest owner stands for itself. */
export function rootOf(live: ReadonlyMap<string, Json>, object: Json, below: readonly Json[] = []): Json | undefined {
  if (below.includes(object)) return below.find(({ kind }) => kind !== "Pod")
  const owner = ownerOf(object)
  if (!owner) return object
  const above = aboveOf(live, object, owner)
  // The pods of a run are the target's.
  if (above && isCanary(owner)) return live.get(placeOf(object, { ...above.spec.targetRef })) ?? object
  if (above) return rootOf(live, above, [...below, object])
  // Of kinds that are not served here only the reference is known.
  return /^(apps|batch)\//.test(owner.apiVersion) ? undefined : object
}

const ownerOf = ({ metadata }: Json): Json | undefined =>
  metadata.ownerReferences?.find((each: Json) => each.controller)
const isCanary = (owner: Json | undefined) =>
  owner?.kind === "Canary" && owner.apiVersion.startsWith("autoimagemanager.io/")
const placeOf = ({ metadata: { namespace } }: Json, { apiVersion, kind, name }: Json) =>
  idOf({ apiVersion, kind, metadata: { name, namespace } })
function aboveOf(live: ReadonlyMap<string, Json>, object: Json, owner = ownerOf(object)): Json | undefined {
  const above = owner && live.get(placeOf(object, owner))
  return above?.metadata.uid === owner?.uid ? above : undefined
}

/** A pod's ReplicaSet and what has that. */
function ownersOf(live: ReadonlyMap<string, Json>, pod: Json): Json[] {
  const set = aboveOf(live, pod)
  const next = set && aboveOf(live, set)
  return [set, next].filter(each => each !== undefined)
}

const endedLabel = "autoimagemanager.io/canary-run-ended"
/** By an update in place or by a Canary. */
const isHeld = (root: Json) => isHeldInPlace(root) || root.metadata.labels?.["autoimagemanager.io/held"] === "canary"

const sameObject = (a: Json | undefined, b: Json | undefined) => a !== undefined && a.metadata.uid === b?.metadata.uid

const podSpecOf = ({ kind, spec }: Json): Json =>
  kind === "Pod" ? spec : (kind === "CronJob" ? spec.jobTemplate.spec : spec).template?.spec
const containersOf = (object: Json): Json[] => {
  const { initContainers = [], containers = [] } = podSpecOf(object) ?? {}
  return [...initContainers, ...containers]
}
const imageOf = (object: Json, name: string): string | undefined =>
  containersOf(object).find(each => each.name === name)?.image
const statusesOf = ({ status }: Json): Json[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
]

const changed = (before: Json, after: Json) =>
  containersOf(after).flatMap(({ name, image }) => {
    const from = imageOf(before, name)
    return from !== undefined && from !== image ? [{ name, from, to: image as string }] : []
  })

/** It has not started, and waits for an image that could not be pulled, for a reason that may be got around. */
function isWaiting(pod: Json, container: string): boolean {
  const status = statusesOf(pod).find(({ name }) => name === container)
  const { reason, message = "" } = status?.state?.waiting ?? {}
  const isPull = ["ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"].includes(reason)
  return isPull && !/signature|no space left/i.test(message) && !status.containerID && !status.restartCount
}

const splitImage = (image: string): [string, string] => {
  const at = image.includes("@") ? image.indexOf("@") : image.length
  const colon = image.slice(0, at).lastIndexOf(":")
  const end = colon > image.lastIndexOf("/", at) ? colon : at
  return [image.slice(0, end), image.slice(end)]
}

function equivalents({ source, from, to }: Move): string[] {
  const [[repository, version], [, versionBefore]] = [splitImage(to), splitImage(from)]
  const sets: Json[] = source?.spec.imageSourceReplacements ?? []
  if (version !== versionBefore) return [`has another tag or digest`]
  if (!sets.some(set => set.equivalentRepositories.includes(repository))) return [`is no repository of the spec`]
  return source?.spec.policy?.disabledRepositories?.includes(repository) ? ["is disabled"] : []
}

/** Whatever a moved pod came to run is what was known to run before. */
function digests({ commits }: Run, moves: readonly Move[]): string[] {
  return moves.flatMap(move => {
    const { commit, container, to, digest, source, isPod } = move
    if (!isPod || digest === undefined || source?.spec.policy?.requireSameDigest === "Never") return []
    const isRun = ({ object, revision }: Commit) =>
      revision > commit.revision &&
      object.metadata.uid === commit.object.metadata.uid &&
      imageOf(object, container) === to
    const ran = commits
      .filter(isRun)
      .flatMap(({ object }) => statusesOf(object))
      .find(({ name, imageID = "" }) => name === container && imageID.includes("@"))
    return ran && !ran.imageID.endsWith(digest) ? [`S11 ${tell(move)} ran ${ran.imageID}, known was ${digest}`] : []
  })
}

function waiting({ isPod, before, container, from, made, root, rootChangedAt, seenBefore, failing }: Move): string[] {
  if (!root) return ["has no owner"]
  if (isPod && !isWaiting(before, container)) return ["did not wait for it"]
  if (!isPod && failing === 0) return ["no pod waited for it"]
  // While a workload is held, its pods are made from the template before.
  const named = isPod && isHeld(root) ? made : imageOf(root, container)
  const isCurrent = named !== undefined && splitImage(named)[1] === splitImage(from)[1]
  return isCurrent || rootChangedAt > seenBefore ? [] : [`its workload says ${named}`]
}

/** Per workload, container and tag: one step per cool-down; a template never goes back, nor further than there are repositories. */
function calmness(moves: readonly Move[]): string[] {
  const groups = Map.groupBy(
    moves,
    ({ root, container, to }) => `${root?.metadata.uid} ${container} ${splitImage(to)[1]}`,
  )
  return [...groups.values()].flatMap(group => {
    // A write may arrive long after it was decided.
    const decided = [...group].sort((a, b) => atOf(a) - atOf(b))
    const steps = decided.filter((move, index) => move.to !== decided[index - 1]?.to)
    const problems = steps.flatMap((step, index) => {
      const last = steps[index - 1]
      const cooldown = (step.source?.spec.policy?.cooldownSeconds ?? 60) * 1000
      return last && atOf(step) - atOf(last) < cooldown - 1000 ? [`S13 ${tell(step)} soon after ${tell(last)}`] : []
    })
    const templates = steps.filter(({ isPod }) => !isPod)
    for (const [index, step] of templates.entries()) {
      const incident = templates.slice(0, index).filter(each => atOf(step) - atOf(each) < incidentMsMost)
      if (incident.some(({ from, to }) => from === step.to || to === step.to))
        problems.push(`S13 ${tell(step)} goes back to what was found bad`)
    }
    return problems
  })
}

const atOf = ({ decision, commit }: Move) => parseInstant(decision.at) ?? commit.at
/** A workload that was changed and has run well for so long has forgotten why. */
const incidentMsMost = 600_000

function shares({ isPod, pods, failing, source, seenBefore, commit }: Move): string[] {
  const share = Number.parseInt(source?.spec.policy?.templateShare ?? "50%", 10)
  // From an old picture of the world it may have looked otherwise.
  if (isPod || commit.at - seenBefore > 2 * usualLagMs) return []
  return failing * 100 < pods * share ? [`${failing} of ${pods} pods failed, below ${share}%`] : []
}

function preconditions({ failovers = [] }: Run): string[] {
  return failovers.flatMap(({ method, path, body, process }) => {
    const { resourceVersion, uid } = body?.metadata ?? {}
    const isStatus = /\/alternateimagesources\/[^/]+\/status(\?|$)/.test(path)
    const isGood = isStatus ? method === "PUT" && resourceVersion : method === "PATCH" && resourceVersion && uid
    return isGood ? [] : [`S10 ${method} ${path} of process ${process} does not say what it was decided from`]
  })
}

/** A switch, and where an image can be pulled instead, is reported only after a pod was sent there. */
function accepted({ commits }: Run, moves: readonly Move[]): string[] {
  return commits.flatMap(({ object, revision }) => {
    if (object.kind !== "AlternateImageSource") return []
    const done = moves.filter(({ commit }) => commit.revision < revision).map(({ to }) => to)
    return ((object.status?.targetsAvailable ?? []) as Json[]).flatMap(({ switches = [], incident }) => {
      const told: string[] = switches
        .filter(({ reason }: Json) => reason !== "SwitchedBack")
        .map(({ newImage }: Json) => newImage)
      const untrue = told.filter(image => !done.includes(image))
      const isUntried = incident?.working && !done.some(image => splitImage(image)[0] === incident.working)
      return [...untrue, ...(isUntried ? [incident.working] : [])].map(
        what => `told at ${revision} and not done: ${what}`,
      )
    })
  })
}

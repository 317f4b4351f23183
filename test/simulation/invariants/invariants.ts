import type { Json } from "#cluster-sim/index.ts"
import type { Instant } from "#lib/instant.ts"
import { type Commit, type Run, wasJudged } from "#test/support/record.ts"
import { canaryViolationsOf } from "./canary.ts"
import { failoverViolationsOf } from "./failover.ts"
import { inPlaceViolationsOf } from "./in-place.ts"
import { unjudgedSteps } from "./judged-tiers.ts"
import { nodeWorkViolationsOf } from "./node-work.ts"
import { unprovenTiers } from "./pre-cache.ts"
import {
  between,
  conditionOf,
  deadlineOf,
  decisionOf,
  fenceAnnotation,
  haltsOnFailure,
  hasLabels,
  idOf,
  imageIn,
  isCounted,
  isDecisionOf,
  isImage,
  isJob,
  isManaged,
  isPinned,
  isRollingBack,
  isServiceImage,
  isStatusOf,
  isTouch,
  isTrue,
  isUpToDate,
  keepsContract,
  keyOf,
  ownerOf,
  type Reading,
  read,
  type Stamp,
  type StatusWrite,
  selects,
  tierOf,
  tierStatusOf,
} from "./reading.ts"
import { sideBySideViolationsOf } from "./side-by-side.ts"

export type Invariant = (reading: Reading) => string[]

/** What always holds, whatever happens to processes, connections and views of the world. Each returns its violations. */
const invariants: Record<string, Invariant> = {
  "S1 an image is written only if the spec its process last confirmed wants it there": wantedImages,
  "S2 after Complete nothing is written that was decided by an older generation": nothingOlderAfterComplete,
  "S3 Complete is true when it is said": completeIsTrue,
  "S4 no object is stamped before those of a higher priority are up to date": priorities,
  "S4 no object is stamped while the rollout is paused or halted": standstill,
  "S5 an object that keeps its own image is left alone": handsOff,
  "S6 per object, no leader writes an image after its successor did": epochs,
  "S6 an image is written only while the status names the object as in flight": declared,
  "S6 what a predecessor declared leaves the list, and Complete is said, only after it was touched": inheritance,
  "S7 what is said of a generation is never replaced by something older, and times move with what they date": sayings,
  "S8 no condition contradicts itself: what is complete is complete": contradictions,
  "S9 no object gets an image twice, except after a touch or another writer's change": stampedOnce,
  "S10 every write carries the version it was decided from, except touches": preconditions,
  "S17 no object of a tier is stamped before its image was shown on the nodes of its pods": unprovenTiers,
  "S33 a step with an analysis is passed by a good round of its own": unjudgedSteps,
}

/** Everything that is wrong with a run, each with the invariant it breaks. */
export function violationsOf(run: Run): string[] {
  const reading = read(run)
  return Object.entries(invariants).flatMap(([name, check]) => check(reading).map(what => `${name}: ${what}`))
}

/** Fails if anything is wrong with a run. */
export function judge(run: Run): void {
  const found = [
    ...violationsOf(run),
    ...failoverViolationsOf(run),
    ...nodeWorkViolationsOf(run),
    ...inPlaceViolationsOf(run),
    ...sideBySideViolationsOf(run),
    ...canaryViolationsOf(run),
  ]
  wasJudged(run)
  if (found.length > 0) throw new Error(`seed ${run.seed}: ${found.slice(0, 5).join("\n")}`)
}

/** How old a picture may be where nothing delays it: a request that was throttled is sent again. */
const usualLagMs = 10_000

const tell = ({ commit, sent }: Stamp) => `${keyOf(commit.object)} by process ${sent.process} at ${commit.revision}`
const isBlank = ({ before, source }: Stamp) => source !== undefined && imageIn(source.serviceImage, before) === ""

function wantedImages({ stamps }: Reading): string[] {
  return stamps.flatMap(stamp => {
    const { source, before } = stamp
    if (!source) return [`${tell(stamp)}: its process had not written a status yet`]
    const allowed = allowedImages(source, before)
    // What it asked for: admission may make something else of it.
    const image = imageIn(source.serviceImage, stamp.sent.body!)
    return allowed.some(each => isImage(image, each))
      ? []
      : [`${tell(stamp)} got ${image}, wanted was ${allowed.join(" or ")}`]
  })
}

function allowedImages({ serviceImage }: StatusWrite, before: Json): string[] {
  const tier = tierOf(serviceImage, before)
  if (!tier) return []
  const forNew = imageIn(serviceImage, before) !== "" ? [] : [tierStatusOf(serviceImage, tier)?.newDeploymentImage]
  if (!isRollingBack(serviceImage)) return [tier.image, ...forNew]
  const { history } = serviceImage.status
  // A later operation may have been complete without this tier: it says nothing about it.
  const complete: Json[] = history.filter(({ phase }: Json) => phase === "Complete")
  const good = complete.map(({ images }) => images[tier.upgradeTier]).find(image => image !== undefined)
  const { from } = decisionOf(before)
  return [isDecisionOf(serviceImage, before) && from ? from : good, ...forNew].filter(image => image !== undefined)
}

const completes = ({ status, metadata }: Json) => {
  const condition = conditionOf(status, "Complete")
  return condition?.status === "True" && condition.observedGeneration === metadata.generation
}

function nothingOlderAfterComplete({ stamps, statuses }: Reading): string[] {
  return stamps.flatMap(stamp => {
    const { source, commit } = stamp
    const uid = source?.serviceImage.metadata.uid
    const generation = source?.serviceImage.metadata.generation
    const after = statuses.find(
      ({ serviceImage, commit: { revision } }) =>
        revision < commit.revision &&
        serviceImage.metadata.uid === uid &&
        completes(serviceImage) &&
        serviceImage.metadata.generation > generation,
    )
    if (!after) return []
    const { generation: complete } = after.serviceImage.metadata
    return [`${tell(stamp)} was decided by generation ${generation}, and ${complete} was complete`]
  })
}

function completeIsTrue(reading: Reading): string[] {
  const { statuses, lives, run } = reading
  return statuses.flatMap(({ commit, serviceImage }) => {
    const { before } = commit
    const isNews = completes(serviceImage) && !(before && completes(before) && sameSpec(before, serviceImage))
    if (!isNews || !keepsContract(serviceImage)) return []
    const from = commit.at - run.lagMs - usualLagMs
    const late = { right: 0, wrong: 0 }
    const problems: string[] = []
    for (const life of lives.values()) {
      const states = between(life, from, commit.revision)
      if (!isObjectOf(serviceImage, states)) continue
      if (states.some(state => !state || !gates(serviceImage, state) || isDone(serviceImage, state))) continue
      const object = states.at(-1)!
      if (!isOwned(serviceImage, object, reading, from, commit.revision)) continue
      const hasImage = isImage(imageIn(serviceImage, object), tierOf(serviceImage, object)!.image)
      late[hasImage ? "right" : "wrong"]++
      if (haltsOnFailure(object) && !hasImage)
        problems.push(`${keyOf(object)} has ${imageIn(serviceImage, object)} at ${commit.revision}`)
    }
    // An object that may fail is counted as a failure; one that lost its health after its tier was complete, as regressed.
    const told = failuresTold(serviceImage, before)
    const regressed = sum(serviceImage.status.tierStatus, "regressed")
    if (late.wrong > told || late.right + late.wrong > told + regressed)
      problems.push(
        `at ${commit.revision} ${late.wrong} had another image, ${late.right} were not up to date, and ${told} failures were told`,
      )
    return problems
  })
}

/** A failure that its owner has marked as one that halts, after the operation was complete, is told as before. */
function failuresTold({ status }: Json, before: Json | undefined): number {
  const { operation } = before?.status ?? {}
  const wasComplete = operation?.phase === "Complete" && operation.id === status.operation?.id
  const failures = status.tierStatus.flatMap((tier: Json) => tier.failures ?? [])
  return wasComplete ? sum(failures, "count") : sum(status.tierStatus, "ignoredFailures")
}

const sum = (tiers: readonly Json[], field: string) => tiers.reduce((total, tier) => total + (tier[field] ?? 0), 0)
const sameSpec = (a: Json, b: Json) =>
  a.metadata.uid === b.metadata.uid && a.metadata.generation === b.metadata.generation
const isObjectOf = ({ spec }: Json, states: readonly (Json | undefined)[]) =>
  states.some(state => state?.kind === spec.target.kind && state?.apiVersion === spec.target.apiVersion)
const gates = (serviceImage: Json, object: Json) => isManaged(serviceImage, object) && isCounted(serviceImage, object)

/**
 * Of all ServiceImages that select the object this one has it: the one that stamped it, else the oldest. A ServiceImage
 * that came or went within the time may or may not have been known.
 */
function isOwned(serviceImage: Json, object: Json, reading: Reading, from: Instant, until: number): boolean {
  const all = [...reading.lives.values()].flatMap(life => {
    const states = between(life, from, until)
    return states.some(state => state && isServiceImage(state)) ? [states] : []
  })
  return [0, -1].every(end => {
    const there = all.flatMap(states => states.at(end) ?? []).filter(({ metadata }) => !metadata.deletionTimestamp)
    const selecting = there.filter(each => selects(each, object) && isInScope(each, object, reading, until))
    return ownerOf(selecting, object)?.metadata.uid === serviceImage.metadata.uid
  })
}

/** The namespace is one that the ServiceImage selects, if it selects any. */
function isInScope({ spec }: Json, object: Json, { lives }: Reading, until: number): boolean {
  if (!spec.target.namespaceSelector) return true
  const life = lives.get(idOf({ apiVersion: "v1", kind: "Namespace", metadata: { name: object.metadata.namespace } }))
  const namespace = between(life ?? [], Number.POSITIVE_INFINITY, until).at(-1)
  return hasLabels(namespace ?? { metadata: {} }, spec.target.namespaceSelector)
}
const isDone = (serviceImage: Json, object: Json) =>
  isUpToDate(object) && isImage(imageIn(serviceImage, object), tierOf(serviceImage, object)!.image)

function priorities(reading: Reading): string[] {
  const { stamps, lives, run } = reading
  return stamps.flatMap(stamp => {
    const serviceImage = stamp.source?.serviceImage
    if (!serviceImage || !keepsContract(serviceImage) || isRollingBack(serviceImage) || isBlank(stamp)) return []
    // An object created later that never ran is not waited for, and does not wait.
    const tier = tierOf(serviceImage, stamp.before)
    if (!tier || !isCounted(serviceImage, stamp.before)) return []
    const from = stamp.sent.at - run.lagMs - usualLagMs
    for (const life of lives.values()) {
      const states = between(life, from, stamp.commit.revision)
      if (!isObjectOf(serviceImage, states)) continue
      const isBehind = (state: Json | undefined) =>
        state !== undefined &&
        gates(serviceImage, state) &&
        tierOf(serviceImage, state)!.priority > tier.priority &&
        !isDone(serviceImage, state) &&
        !mayLag(serviceImage, state, stamp.commit.at) &&
        isOwned(serviceImage, state, reading, from, stamp.commit.revision)
      if (states.every(isBehind)) return [`${tell(stamp)}, before ${keyOf(states.at(-1)!)}`]
    }
    return []
  })
}

/** Its tier was complete before it lost its health; or it has had its time, and its owner lets the others go on. */
function mayLag(serviceImage: Json, object: Json, at: number): boolean {
  const tier = tierOf(serviceImage, object)!
  const isComplete = isTrue(tierStatusOf(serviceImage, tier), "Complete")
  if (isComplete && isImage(imageIn(serviceImage, object), tier.image)) return true
  return !haltsOnFailure(object) && deadlineOf(serviceImage, object) <= at
}

function standstill({ stamps }: Reading): string[] {
  return stamps.flatMap(stamp => {
    const serviceImage = stamp.source?.serviceImage
    if (!serviceImage) return []
    if (serviceImage.spec.paused) return [`${tell(stamp)} while paused`]
    const isHalted = isTrue(serviceImage.status, "Halted") && !isRollingBack(serviceImage)
    const isNew = isBlank(stamp)
    return isHalted && !isNew ? [`${tell(stamp)} while halted`] : []
  })
}

function handsOff({ stamps }: Reading): string[] {
  return stamps.filter(({ before }) => isPinned(before) || before.metadata.deletionTimestamp).map(tell)
}

function epochs({ stamps }: Reading): string[] {
  const latest = new Map<string, number>()
  return stamps.flatMap(stamp => {
    const { source, commit } = stamp
    const id = `${commit.object.metadata.uid} ${source?.serviceImage.metadata.uid}`
    const epoch = source?.takeover ?? 0
    const before = latest.get(id) ?? 0
    latest.set(id, Math.max(before, epoch))
    return epoch < before ? [`${tell(stamp)}: epoch ${epoch} after ${before}`] : []
  })
}

function declared({ stamps }: Reading): string[] {
  return stamps
    .filter(({ standing, commit }) => standing?.status?.inflight?.includes(keyOf(commit.object)) !== true)
    .map(tell)
}

/** A write that is still on its way would be forgotten otherwise. Where a touch is refused, only time helps. */
function inheritance({ statuses, run: { commits } }: Reading): string[] {
  const since = new Map<string, { inherited: Set<string>; commit: Commit; number: number }>()
  return statuses.flatMap(({ commit, serviceImage, takeover: number }) => {
    const { uid } = serviceImage.metadata
    const [was, is] = [commit.before?.status, serviceImage.status]
    if (since.get(uid)?.number !== number) since.set(uid, { inherited: new Set(was?.inflight), commit, number })
    const takeover = since.get(uid)!
    const isNews = completes(serviceImage) && !completes(commit.before!)
    return [...takeover.inherited].flatMap(key => {
      if (!isNews && is.inflight.includes(key)) return []
      takeover.inherited.delete(key)
      const hasMoved = commits.some(({ revision, object }) => {
        return revision > takeover.commit.revision && revision < commit.revision && keyOf(object) === key
      })
      const last = commits.findLast(({ revision, object }) => revision < commit.revision && keyOf(object) === key)
      const isSafe = hasMoved || last?.type === "DELETED" || commit.at - takeover.commit.at >= requestMsMost
      return isSafe ? [] : [`${key} at ${commit.revision}`]
    })
  })
}

const requestMsMost = 60_000

function sayings({ run: { commits } }: Reading): string[] {
  return commits.flatMap(({ object, before, type, revision }) => {
    if (!isServiceImage(object) || type === "DELETED") return []
    const { generation = 0 } = object.metadata
    const at = `${object.metadata.name} at ${revision}`
    const [now, was] = [object.status ?? {}, before?.status ?? {}]
    const problems: string[] = []
    if ((now.observedGeneration ?? 0) > generation)
      problems.push(`${at}: observed ${now.observedGeneration} of ${generation}`)
    if ((now.observedGeneration ?? 0) < (was.observedGeneration ?? 0))
      problems.push(`${at}: observed ${now.observedGeneration} after ${was.observedGeneration}`)
    const pairs = [
      [now, was],
      ...(now.tierStatus ?? []).map((tier: Json) => [tier, tierStatusOf({ status: was }, tier)]),
    ]
    for (const [saying, said] of pairs)
      for (const condition of saying.conditions ?? []) {
        const old = conditionOf(said, condition.type)
        if (condition.observedGeneration > generation) problems.push(`${at}: ${condition.type} of the future`)
        if (!old) continue
        if (condition.observedGeneration < old.observedGeneration) problems.push(`${at}: ${condition.type} of the past`)
        if (condition.status === old.status && condition.lastTransitionTime !== old.lastTransitionTime)
          problems.push(`${at}: the time of ${condition.type} moved`)
      }
    return problems
  })
}

/** "n of m" in a condition that says Complete has n = m; and none that is True says what stops or holds it. */
function contradictions({ run: { commits } }: Reading): string[] {
  return commits.flatMap(({ object, type, revision }) => {
    if (!isServiceImage(object) || type === "DELETED") return []
    const told: Json[] = [object.status ?? {}, ...(object.status?.tierStatus ?? [])].flatMap(
      each => each.conditions ?? [],
    )
    return told
      .filter(each => each.status === "True" && (each.type === "Complete" || each.type === "Ready"))
      .filter(({ message = "" }) => [...message.matchAll(/(\d+) of (\d+)/g)].some(([, n, m]) => n !== m))
      .map(each => `${object.metadata.name} at ${revision}: ${each.type} is True and says "${each.message}"`)
  })
}

function stampedOnce({ stamps, run: { commits } }: Reading): string[] {
  const ours = new Set(stamps.map(({ commit }) => commit.revision))
  const groups = Map.groupBy(stamps, ({ commit, decision }) =>
    [
      commit.object.metadata.uid,
      decision.by,
      decision.uid,
      decision.operation,
      decision.reason === "RolledBack",
      decision.to,
    ].join(" "),
  )
  return [...groups.values()].flatMap(group => {
    if (group.length === 1) return []
    const { uid } = group[0]!.commit.object.metadata
    const excuses = commits.filter(({ object, before, revision }) => {
      if (object.metadata.uid !== uid || !before || ours.has(revision)) return false
      const [mark, markBefore] = [object, before].map(({ metadata }) => metadata.annotations?.[fenceAnnotation])
      // Another label may put it into another tier, and back.
      const [now, then] = [object, before].map(({ spec, metadata: { labels } }) => JSON.stringify([spec, labels]))
      return mark !== markBefore || now !== then
    })
    // Admission put another image into it.
    const altered = group.filter(({ source, commit, decision }) => {
      return source && !isImage(imageIn(source.serviceImage, commit.object), decision.to)
    })
    return group.length > 1 + excuses.length + altered.length
      ? [`${tell(group.at(-1)!)}, for the ${group.length}th time`]
      : []
  })
}

function preconditions({ run: { sent } }: Reading): string[] {
  return sent.flatMap(({ method, path, body, process }) => {
    const version = body?.metadata?.resourceVersion
    const isTold = typeof version === "string" && version !== ""
    if (isStatusOf(path) && method === "PUT" && isTold) return []
    if (method === "PATCH" && !isStatusOf(path) && (isTold || isTouch(body))) return []
    if (method === "DELETE" && body?.preconditions?.uid) return []
    // A name that is taken is refused, so creating needs no version.
    if (method === "POST" && isJob(path) && body?.metadata?.name) return []
    return [`${method} ${path} of process ${process}`]
  })
}

import { isReadable, lostHold, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceHolder, strategyAnnotation } from "#core/in-place/names.ts"
import { nextWrites, type PodsNext, type PodWrite } from "#core/in-place/next.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { parseSettings, podsOf, type Settings } from "#core/in-place/settings.ts"
import type { Evidence, Target } from "#core/in-place/standing.ts"
import {
  annotationsOf,
  type Change,
  changeOf,
  imagesOf,
  isSameTemplate,
  labelsOf,
  type PodTemplate,
  type Touched,
  withoutHash,
} from "#core/in-place/template.ts"
import { hash32 } from "#lib/hash.ts"
import type { Instant } from "#lib/instant.ts"
import { counted, nameSome } from "#lib/text.ts"
import type { Job, Revision, Workload } from "./facts.ts"
import { takingBack } from "./take-back.ts"

/** What an agent says of an image on its node. */
export type ImageOnNode =
  | { readonly is: "Present"; readonly digest: string }
  | { readonly is: "Missing"; readonly why: string }
  | { readonly is: "NoAgent" }

/** Everything a decision about one held workload is made from. */
export type Snapshot = {
  readonly workload: Workload
  /** Nothing is concluded from incomplete lists. */
  readonly isListed: boolean
  /** Its ReplicaSets. */
  readonly revisions: readonly Revision[]
  /** Pods of its ReplicaSets. */
  readonly pods: readonly PodFacts[]
  readonly jobs: readonly Job[]
  readonly disruptions: { readonly budget: string; readonly allowed: number } | undefined
  imageOn(node: string, image: string): ImageOnNode
  upSince(uid: string): Instant | undefined
  readonly now: Instant
}

export type Reason =
  | "Updating"
  | "Pulling"
  | "ImageUnavailable"
  | "BudgetSpent"
  | "Partitioned"
  | "UpdateFailed"
  | "Fencing"
  | "Completed"
  | "RolledBack"
  | "NotInPlace"
  | "NoBudget"
  | "OptedOut"
  | "InvalidAnnotation"
  | "FellBackToRollingUpdate"

export type Action =
  | { readonly do: "note"; readonly note: WorkloadNote }
  /** Gives the workload back to its own controller. */
  | { readonly do: "release"; readonly note: WorkloadNote; readonly isFenced?: true }
  | { readonly do: "rollback"; readonly template: PodTemplate; readonly note: WorkloadNote }
  | { readonly do: "unmark" }
  | {
      readonly do: "createJob"
      readonly name: string
      readonly image: string
      readonly pullPolicy: "Always" | "IfNotPresent"
      readonly pullSecrets: readonly string[]
    }
  | { readonly do: "deleteJob"; readonly job: Job }
  | { readonly do: "pod"; readonly write: PodWrite; readonly template: PodTemplate; readonly touched: Touched }
  | { readonly do: "keepHistory"; readonly name: string; readonly hash: string; readonly of: Revision }
  | { readonly do: "deleteDouble"; readonly revision: Revision }
  | { readonly do: "flip"; readonly revision: Revision; readonly template: PodTemplate }

export type Plan = {
  /** In order; stopping after any of them is safe. */
  readonly actions: readonly Action[]
  readonly lookAgainAt?: Instant | undefined
  /** Nodes whose agents are waited for. */
  readonly nodes?: readonly string[]
}

const nothing: Plan = { actions: [] }

/**
 * Decides the next writes for one held Deployment (decision 66).
 *
 *   held → note → pull → per pod: drain, patch, prove, serve → history, double, flip → fence → release → clean up
 *
 * Nothing of it is remembered: which step is next follows from the objects, so any process can take over after any write.
 */
export function plan(seen: Snapshot): Plan {
  const { workload, isListed } = seen
  const { hold } = workload
  if (!isListed) return nothing
  const isReleased = workload.annotations[heldMark] === undefined && !workload.isPaused
  const lost = hold || isReleased ? undefined : lostHold(workload.annotations[heldMark], workload.note)
  if (lost)
    return released({ ...seen, workload: { ...workload, hold: lost } }, "OptedOut", `annotation ${heldMark} is lost`)
  // Released, by us or by hand: the label goes last, since it is what makes the workload seen here.
  if (workload.annotations[heldMark] === undefined) return cleanedUp(seen)
  if (hold?.by !== inPlaceHolder) return nothing
  const parsed = parseSettings(workload.annotations)
  if (!workload.isPaused) return resumed(seen)
  if (workload.annotations[strategyAnnotation] === undefined)
    return released(seen, "OptedOut", "the annotation is gone")
  if (!parsed.ok) return stopped(seen, "InvalidAnnotation", parsed.problem)
  if (parsed.settings.strategy === "Recreate") return released(seen, "OptedOut", "update-strategy is Recreate")
  return withSettings(seen, parsed.settings)
}

function withSettings(seen: Snapshot, settings: Settings): Plan {
  const { workload, revisions, pods } = seen
  const active = revisions.filter(({ replicas, running }) => replicas > 0 || running > 0)
  const giveUp = (reason: Reason, message: string) =>
    settings.strategy === "InPlaceOnly"
      ? stopped(seen, reason, `${message}; aim release deploy/${workload.name} lets the Deployment controller do it`)
      : released(seen, reason, message)
  if (active.length > 1)
    return giveUp(
      "FellBackToRollingUpdate",
      `${counted(active.length, "ReplicaSet")} have pods: a rollout was under way`,
    )
  const [current] = active
  if (!current || (workload.replicas === 0 && pods.length === 0))
    return released(seen, "Completed", "there are no pods to update")
  const change = changeOf(current.template, workload.template)
  if (change.is === "NotInPlace") return giveUp("NotInPlace", `${change.path}: ${change.why}`)
  const touched = union(noteOf(workload)?.touched, change)
  if (!isReadable({ ...makeNote(seen, "Updating", ""), touched }))
    return giveUp("NotInPlace", "metadata: more labels and annotations change than can be recorded")
  const maxUnavailable = unavailableOf(workload, settings)
  if (change.is === "InPlace" && change.containers.length > 0 && maxUnavailable === 0)
    return giveUp(
      "NoBudget",
      `maxUnavailable allows no pod of ${workload.replicas} to restart: write in-place-max-unavailable, such as "1"`,
    )
  return update(seen, { settings, current, change, maxUnavailable })
}

/** The smaller of both; where the workload's own is none, the annotation decides alone. */
function unavailableOf({ maxUnavailable, replicas }: Workload, settings: Settings): number {
  const asked = settings.maxUnavailable && podsOf(settings.maxUnavailable, replicas)
  if (asked === undefined) return maxUnavailable
  return maxUnavailable === 0 ? asked : Math.min(asked, maxUnavailable)
}

type Course = {
  settings: Settings
  current: Revision
  change: Exclude<Change, { is: "NotInPlace" }>
  maxUnavailable: number
}

function update(seen: Snapshot, course: Course): Plan {
  const { workload } = seen
  const { settings, current, change, maxUnavailable } = course
  const operation = operationOf(workload)
  const before = noteOf(workload)
  const touched = union(before?.touched, change)
  if (before?.failed === operation)
    return stopped(seen, "UpdateFailed", `${operation} failed and was rolled back; it is not tried again`)
  // Recorded before the first pod changes: it says what an abort has to take back.
  if (!before || before.operation !== operation || !isWithin(touched, before.touched))
    return { actions: [{ do: "note", note: { ...makeNote(seen, "Updating", startWords(seen, touched)), touched } }] }
  const target: Target = {
    operation,
    images: imagesOf(workload.template),
    labels: labelsOf(workload.template),
    annotations: annotationsOf(workload.template),
    touched,
    minReadyMs: workload.minReadySeconds * 1000,
    deadlineMs: workload.deadlineSeconds * 1000,
  }
  const evidence: Evidence = {
    digestOn(node, image) {
      const found = seen.imageOn(node, image)
      return found.is === "Present" && found.digest !== "" ? found.digest : undefined
    },
    upSince: seen.upSince,
    now: seen.now,
  }
  const next = nextWrites({
    pods: seen.pods,
    target,
    settings,
    replicas: workload.replicas,
    maxUnavailable,
    disruptions: seen.disruptions,
    missingOn: (node, image) => whyMissing(seen.imageOn(node, image), settings),
    evidence,
  })
  const [failure] = next.failures
  if (failure && settings.onFailure === "Rollback" && change.is === "InPlace") {
    const message = `rolls back: ${failure.pod} ${failure.reason}, ${failure.message}`
    const note = { ...makeNote(seen, "UpdateFailed", message), failed: operation }
    const template = withoutHash(current.template)
    const back = operationOf({ ...workload, template })
    return { actions: [{ do: "rollback", template, note: { ...note, back } }] }
  }
  if (next.isDone) return finish(seen, course)
  return inProgress(seen, next, jobActions(seen, touched))
}

const whyMissing = (found: ImageOnNode, { isUnverified }: Settings): string | undefined => {
  if (found.is === "Present") return undefined
  if (found.is === "NoAgent") return isUnverified ? undefined : "no agent has answered; in-place-unverified allows it"
  return found.why
}

function inProgress(seen: Snapshot, next: PodsNext, jobs: readonly Action[]): Plan {
  const { workload } = seen
  const { reason, message } = verdictOf(seen, next)
  const writes = next.writes.map(
    (write): Action => ({ do: "pod", write, template: workload.template, touched: noteOf(workload)!.touched }),
  )
  const said = told(seen, reason, message)
  return {
    actions: [...said.actions, ...jobs, ...writes],
    lookAgainAt: next.lookAgainAt,
    nodes: [...next.missing.keys()],
  }
}

function verdictOf(seen: Snapshot, next: PodsNext): { reason: Reason; message: string } {
  const { pods, disruptions, jobs } = seen
  const progress = `${next.updated} of ${counted(pods.length, "pod")} updated`
  const [failure] = next.failures
  if (failure)
    return { reason: "UpdateFailed", message: `${progress}; ${failure.pod}: ${failure.reason}, ${failure.message}` }
  if (next.underWay > 0) return { reason: "Updating", message: progress }
  const trouble = jobs.find(job => job.trouble !== "")?.trouble
  if (next.missing.size > 0) {
    const nodes = nameSome(
      [...next.missing].slice(0, 3).map(([node, why]) => `${node} (${why})`),
      next.missing.size,
    )
    const hasFailed = trouble !== undefined || [...next.missing.values()].some(why => why !== asked)
    return {
      reason: hasFailed ? "ImageUnavailable" : "Pulling",
      message: `${progress}; not on ${counted(next.missing.size, "node")}: ${trouble ?? nodes}`,
    }
  }
  if (next.waiting > 0) {
    const by = disruptions && disruptions.allowed === 0 ? `PodDisruptionBudget ${disruptions.budget}` : "maxUnavailable"
    return { reason: "BudgetSpent", message: `${progress}; ${counted(next.waiting, "pod")} wait for ${by}` }
  }
  if (next.kept > 0) return { reason: "Partitioned", message: `${progress}; in-place-partition keeps ${next.kept}` }
  return { reason: "Updating", message: progress }
}

/** The agent was asked and has not answered yet. */
export const asked = "asked"

/** One job for each image that some pod still lacks; it stays until the end of the operation. */
function jobActions({ workload, pods, jobs }: Snapshot, touched: Touched): Action[] {
  const images = imagesOf(workload.template)
  const targets = new Map(touched.containers.flatMap(name => (images.has(name) ? [[images.get(name)!, name]] : [])))
  const isLacking = (image: string, name: string) =>
    pods.some(({ containers }) => containers.has(name) && containers.get(name)!.image !== image)
  const pullSecrets = pullSecretsOf(workload.template, pods)
  const created = [...targets].flatMap(([image, name]): Action[] => {
    if (jobs.some(job => job.image === image) || !isLacking(image, name)) return []
    const pullPolicy = pullPolicyOf(workload.template, name)
    return [{ do: "createJob", name: jobName(workload, image), image, pullPolicy, pullSecrets }]
  })
  return [
    ...created,
    ...jobs.filter(({ image }) => !targets.has(image)).map((job): Action => ({ do: "deleteJob", job })),
  ]
}

/** As many as a job may name. */
const secretsMost = 16

/** A ServiceAccount adds its own to pods, and not to their template. */
function pullSecretsOf({ spec }: PodTemplate, pods: readonly PodFacts[]): string[] {
  const own = (spec?.imagePullSecrets ?? []) as readonly { name: string }[]
  return [...new Set([...own.map(({ name }) => name), ...pods.flatMap(pod => pod.pullSecrets)])].slice(0, secretsMost)
}

function pullPolicyOf(template: PodTemplate, name: string): "Always" | "IfNotPresent" {
  const { containers = [], initContainers = [] } = (template.spec ?? {}) as Record<
    string,
    { name: string; imagePullPolicy?: string }[]
  >
  const found = [...containers, ...initContainers].find(container => container.name === name)
  return found?.imagePullPolicy === "Always" ? "Always" : "IfNotPresent"
}

const jobName = ({ name, uid, hold }: Workload, image: string) =>
  `${name.slice(0, 220).replace(/[^a-z0-9]+$/, "")}-${short([uid, hold!.generation, image])}`

/**
 * Every pod is done. What the ReplicaSet makes from now on has to be the same, and its Deployment has to know that before
 * it is let go: a controller that sees the release and not yet the flipped ReplicaSet would make another one.
 */
function finish(seen: Snapshot, { current }: Course): Plan {
  const { workload, revisions } = seen
  const others = revisions.filter(({ uid }) => uid !== current.uid)
  // An older ReplicaSet with this template would be taken for current, and get all pods.
  const doubles = others
    .filter(
      ({ template, replicas, running }) => replicas + running === 0 && isSameTemplate(template, workload.template),
    )
    .map((revision): Action => ({ do: "deleteDouble", revision }))
  if (!isSameTemplate(current.template, workload.template)) {
    // A controller that has not seen the hold yet would miss its ReplicaSet, and make another one.
    if (!workload.isObserved) return nothing
    const isKept = others.some(({ template }) => isSameTemplate(template, current.template))
    const hash = short([workload.uid, withoutHash(current.template)])
    const history: Action = { do: "keepHistory", name: `${workload.name}-${hash}`, hash, of: current }
    return {
      actions: [
        ...(isKept || !workload.keepsHistory || current.number === "" ? [] : [history]),
        ...doubles,
        { do: "flip", revision: current, template: workload.template },
      ],
    }
  }
  // It rises with every flip and is copied with our note only by a controller that sees this very ReplicaSet. The
  // Deployment's own generation would not do: it rises with every annotation.
  const fence = current.generation
  if (noteOf(workload)?.fence !== fence)
    return { actions: [...doubles, { do: "note", note: { ...makeNote(seen, "Fencing", "all pods are done"), fence } }] }
  const isPassed = current.note?.fence === fence && current.note.operation === operationOf(workload)
  if (doubles.length > 0 || !isPassed || !current.isObserved) return { actions: doubles }
  const { failed = "", back, to } = noteOf(workload)!
  const images = nameSome(Object.values(to).slice(0, 3), Object.keys(to).length)
  const pods = counted(seen.pods.length, "pod")
  return back === operationOf(workload)
    ? released(seen, "RolledBack", `${pods} went back after operation ${failed} had failed`, true)
    : released(seen, "Completed", `${pods} updated in place${images && `: ${images}`}`, true)
}

/** `kubectl rollout resume`, or another write that took the pause away: the owner's own release. */
function resumed(seen: Snapshot): Plan {
  const { workload, revisions } = seen
  const active = revisions.filter(({ replicas, running }) => replicas > 0 || running > 0)
  const isDone = active.every(({ template }) => isSameTemplate(template, workload.template))
  return isDone
    ? released(seen, "Completed", "resumed by its owner")
    : released(seen, "FellBackToRollingUpdate", "it was resumed in between")
}

/** First what was changed and stays, then the label. */
function cleanedUp(seen: Snapshot): Plan {
  const { template } = seen.workload
  const back = takingBack(seen, `back-${short(withoutHash(template))}`)
  if (!back) return { actions: [...serving(seen), ...ended(seen.jobs), { do: "unmark" }] }
  const { next, note } = back
  const writes = next.writes.map((write): Action => ({ do: "pod", write, template, touched: note.touched }))
  return { actions: [...ended(seen.jobs), ...writes], lookAgainAt: next.lookAgainAt }
}

const ended = (jobs: readonly Job[]) => jobs.map((job): Action => ({ do: "deleteJob", job }))

/** No pod stays drained. */
function serving({ workload: { template }, pods }: Snapshot): Action[] {
  const touched: Touched = { containers: [], labels: [], annotations: [] }
  const drained = pods.filter(({ gate }) => gate?.isDrained)
  return drained.map(pod => ({ do: "pod", write: { do: "undrain", pod }, template, touched }))
}

/** Gives everything back: pods serve, and the workload is its own controller's again. */
function released(seen: Snapshot, reason: Reason, message: string, isFenced = false): Plan {
  return {
    actions: [
      ...serving(seen),
      { do: "release", note: makeNote(seen, reason, message), ...(isFenced && { isFenced: true }) },
    ],
  }
}

/** Only a person can continue: until then no pod stays drained. */
const stopped = (seen: Snapshot, reason: Reason, message: string): Plan => ({
  actions: [...told(seen, reason, message).actions, ...serving(seen)],
})

/** Waits, and says why. The same reason is written once: counts alone are no write. */
function told(seen: Snapshot, reason: Reason, message: string): Plan {
  const before = noteOf(seen.workload)
  const isSaid = before?.reason === reason && before.operation === operationOf(seen.workload)
  return { actions: isSaid ? [] : [{ do: "note", note: makeNote(seen, reason, message) }] }
}

const startWords = ({ pods }: Snapshot, { containers }: Touched) =>
  containers.length > 0
    ? `${counted(pods.length, "pod")}, container ${containers.join(", ")}`
    : counted(pods.length, "pod")

function makeNote(seen: Snapshot, reason: Reason, message: string): WorkloadNote {
  const { workload, revisions } = seen
  const before = noteOf(workload)
  const current = revisions.find(({ replicas, running }) => replicas > 0 || running > 0)
  const touched = before?.touched ?? { containers: [], labels: [], annotations: [] }
  const images = imagesOf(workload.template)
  const old = current ? imagesOf(current.template) : images
  const changed = [...images].filter(([name, image]) => old.has(name) && old.get(name) !== image)
  const isFlipped = changed.length === 0
  return {
    operation: operationOf(workload),
    reason,
    message,
    touched,
    from: isFlipped && before ? before.from : Object.fromEntries(changed.map(([name]) => [name, old.get(name)!])),
    to: isFlipped && before ? before.to : Object.fromEntries(changed),
    ...(before?.fence !== undefined && { fence: before.fence }),
    ...(before?.failed !== undefined && { failed: before.failed }),
    ...(before?.back !== undefined && { back: before.back }),
  }
}

/** Of this hold: what is left of an earlier one says nothing. */
const noteOf = ({ note, hold }: Workload): WorkloadNote | undefined =>
  note?.operation.startsWith(`${hold?.generation}-`) ? note : undefined

/** The same target under the same hold is the same operation. */
const operationOf = ({ hold, template }: Workload) => `${hold?.generation}-${short(withoutHash(template))}`

const short = (value: unknown) =>
  hash32(JSON.stringify(sorted(value)))
    .toString(16)
    .padStart(8, "0")

/** A server returns fields in its own order. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  )
}

function union(before: Touched | undefined, change: Course["change"]): Touched {
  const now: Touched = change.is === "InPlace" ? change : { containers: [], labels: [], annotations: [] }
  const both = (key: keyof Touched) => [...new Set([...(before?.[key] ?? []), ...now[key]])].sort()
  return { containers: both("containers"), labels: both("labels"), annotations: both("annotations") }
}

const isWithin = (touched: Touched, recorded: Touched) =>
  (["containers", "labels", "annotations"] as const).every(key =>
    touched[key].every(each => recorded[key].includes(each)),
  )

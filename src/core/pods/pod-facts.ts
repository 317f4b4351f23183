import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import { isHeldBack } from "../image/pull-failure.ts"
import { decisionAnnotation, parseFailover } from "../image/record.ts"
import { type PodMark, parseMark } from "../in-place/marks.ts"
import { inPlaceAnnotation } from "../in-place/names.ts"
import { type Failover, standsFor } from "./one-at-a-time.ts"
import { type ContainerState, type Crash, isCrashed, type Stopped, steadySince, worstCrash } from "./steady.ts"

/** A pod, reduced to its owner and what is wrong with it. There may be many, so it is small. */
export type PodFacts = {
  readonly resourceVersion: string
  /** The uid of its controller; "" if it has none. */
  readonly owner: string
  readonly node: string // "" until it has one
  /** Of all its containers, each once, sorted. */
  readonly images: readonly string[]
  /** The Secrets that it names for its pulls, each once, sorted. */
  readonly pullSecrets: readonly string[]
  readonly trouble: PodTrouble | undefined
  /** A container exited badly. Kept while the container runs again: the pod does not show whether that lasts. */
  readonly crash: Crash | undefined
  /** Since when it is ready without a bad exit; 0 while it is not ready. */
  readonly steadySeconds: number
  /** What the facts above were read from. A request may turn out to have stopped a container. Undefined for most pods. */
  readonly crashed: Crashed | undefined
  readonly createdAtSeconds: number
  /** Nothing of it will run again. */
  readonly isFinished: boolean
  readonly isTerminating: boolean
}

export type PodTrouble = {
  readonly reason: FailureReason
  /** At most 128 printable characters, without the pod's name: the same trouble of many pods reads the same. */
  readonly message: string
  /** It may recover by itself, as a starting pod does: it counts at the deadline, not before. */
  readonly isTentative: boolean
}

/** The containers of a pod that crashed, as far as can be seen from the pod alone. */
export type Crashed = {
  readonly uid: string
  readonly readyAt: Instant | undefined
  readonly containers: readonly (ContainerState & { readonly trouble: PodTrouble | undefined })[]
  /** What would be wrong with the pod if none of these had crashed. */
  readonly otherwise: PodTrouble | undefined
}

/** The pods that every controller watches. With one selector they share the watch. */
export const podFieldSelector = "status.phase!=Succeeded"

type Json = Record<string, unknown>

/** Reads a Pod. What its owner wrote is hostile: every field is checked, and what is kept is bounded. */
export function readPod(object: { metadata: object }): PodFacts {
  const metadata = object.metadata as Json
  const { spec, status } = object as { spec?: Json; status?: Json }
  const annotations = metadata.annotations as Json | undefined
  const failover = annotations && parseFailover(annotations[decisionAnnotation])
  const phase = status?.phase
  const containers = containerStates(spec, status, failover, parseMark(annotations?.[inPlaceAnnotation])?.was)
  const ready = condition(status, "Ready")
  const readyAt = ready?.status === "True" ? (parseInstant(ready.lastTransitionTime) ?? 0) : undefined
  return {
    resourceVersion: text(metadata.resourceVersion),
    owner: controllerOf(metadata),
    node: text(spec?.nodeName),
    images: imagesOf(spec, failover),
    pullSecrets: pullSecretsOf(spec),
    trouble: troubleOf(status),
    crash: clipped(worstCrash(containers)),
    steadySeconds: steadySeconds(readyAt, containers),
    crashed: crashedOf({ uid: text(metadata.uid), readyAt }, containers, status),
    createdAtSeconds: Math.floor((parseInstant(metadata.creationTimestamp) ?? 0) / 1000),
    isFinished: phase === "Succeeded" || phase === "Failed",
    isTerminating: metadata.deletionTimestamp !== undefined,
  }
}

/** The facts about a pod of which a request has stopped containers. Their ends count as no exits. */
export function withStopped(pod: PodFacts, stopped: Stopped): PodFacts {
  const { crashed, trouble } = pod
  if (!crashed || stopped.size === 0) return pod
  const { containers, readyAt, otherwise } = crashed
  const left = containers.filter(({ exit }) => !stopped.has(exit?.id ?? ""))
  const isOther = trouble?.reason === "ImagePullFailed"
  return {
    ...pod,
    crash: clipped(worstCrash(left, stopped)),
    trouble: isOther ? trouble : (first(left, each => each.trouble) ?? otherwise),
    steadySeconds: steadySeconds(readyAt, left),
  }
}

/** Undefined where no container can be told by its ID. */
function crashedOf(
  pod: Pick<Crashed, "uid" | "readyAt">,
  all: readonly ContainerState[],
  status: Json | undefined,
): Crashed | undefined {
  const containers = all.filter(each => isCrashed(each) && each.exit?.id)
  if (containers.length === 0) return undefined
  const names = new Set(containers.map(({ name }) => name))
  const statuses = statusesOf(status)
  const troubleIn = ({ name }: ContainerState) =>
    crash(statuses.find(each => printable(text(each.name)) === name) ?? {})
  return {
    ...pod,
    // Their last messages may be long, and no other object shows them.
    containers: containers.map(each => ({
      ...each,
      exit: each.exit && { ...each.exit, message: "" },
      trouble: troubleIn(each),
    })),
    otherwise: troubleOf(status, names),
  }
}

const clipped = (crash: Crash | undefined) =>
  crash && { ...crash, message: clip(crash.message, maxMessage), said: clip(crash.said, maxMessage) }

const steadySeconds = (readyAt: Instant | undefined, containers: readonly ContainerState[]) =>
  readyAt === undefined ? 0 : Math.floor(steadySince(readyAt, containers) / 1000)

/** The uid of the owner that manages it, "" if there is none. */
export function controllerOf(metadata: object): string {
  const references = entries((metadata as Json).ownerReferences)
  return text(references.find(each => each.controller === true)?.uid)
}

/**
 * The images of the containers of a pod or of a pod template, each once, sorted. A container that is pulled from an
 * equivalent repository counts with the image of its workload.
 */
export function imagesOf(spec: Json | undefined, failover?: Failover): readonly string[] {
  const containers = [...entries(spec?.containers), ...entries(spec?.initContainers)]
  const imageOf = ({ name, image }: Json) =>
    clip(standsFor(failover, { name: text(name), image: text(image) }), maxImage)
  const images = containers.map(imageOf).filter(image => image !== "")
  return [...new Set(images)].sort().slice(0, maxImages)
}

function pullSecretsOf(spec: Json | undefined): readonly string[] {
  const names = entries(spec?.imagePullSecrets).map(({ name }) => text(name))
  return names.length === 0 ? noSecrets : [...new Set(names.filter(isName))].sort().slice(0, maxSecrets)
}

const noSecrets: readonly string[] = []
const isName = (name: string) => /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name)

/** The containers of a pod, as its status reports them, with the images of its spec. */
export function containerStates(
  spec: Json | undefined,
  status: Json | undefined,
  failover?: Failover,
  /** Containers that an update in place has replaced: their end is no exit, and restarts count from there. */
  replaced: PodMark["was"] = {},
) {
  const written = [...entries(spec?.containers), ...entries(spec?.initContainers)]
  const imageOf = (name: string) =>
    clip(standsFor(failover, { name, image: text(written.find(each => each.name === name)?.image) }), maxImage)
  return statusesOf(status).map(({ name, ready, restartCount, state, lastState }): ContainerState => {
    const old = Object.hasOwn(replaced, text(name)) ? replaced[text(name)] : undefined
    const isOld = (end: Json) => old !== undefined && text(end.containerID) === old.id
    const [ended, before] = [part(state, "terminated"), part(lastState, "terminated")].map(end =>
      isOld(end) ? {} : end,
    ) as [Json, Json]
    const isEnded = Number.isInteger(ended.exitCode)
    const exit = isEnded ? ended : before
    return {
      name: printable(text(name)),
      image: imageOf(text(name)),
      isReady: ready === true,
      restarts: Math.max(
        0,
        (Number.isInteger(restartCount) ? (restartCount as number) : 0) - (old ? old.restarts + 1 : 0),
      ),
      waiting: text(part(state, "waiting").reason),
      exit: Number.isInteger(exit.exitCode)
        ? {
            id: text(exit.containerID).slice(0, maxId),
            code: exit.exitCode as number,
            reason: printable(text(exit.reason)),
            message: printable(text(exit.message)),
            at: parseInstant(exit.finishedAt) ?? 0,
          }
        : undefined,
      isEnded,
      startedAt: parseInstant(part(state, "running").startedAt),
    }
  })
}

/**
 * The message of an owner that the server did not let create a pod: from a condition ReplicaFailure, or from an event
 * FailedCreate, which puts some words before the server's.
 */
export function refusalOf(words: unknown): PodTrouble {
  const said = text(words).slice(0, maxSaid)
  const reason: FailureReason = /exceeded quota|insufficient quota/.test(said)
    ? "QuotaExceeded"
    : said.includes("cannot create resource")
      ? "Forbidden"
      : "AdmissionDenied"
  // The name of the pod differs with every attempt.
  const cause = said
    .replace(/^Error creating: /, "")
    .replace(/^[Cc]reate .*? failed error: /, "")
    .replace(/^\S+ "[^"]*" is forbidden: /, "")
  return trouble(reason, cause)
}

const statusesOf = (status: Json | undefined) => [
  ...entries(status?.initContainerStatuses),
  ...entries(status?.containerStatuses),
]

const maxId = 256
const maxImage = 512
const maxImages = 16
const maxSecrets = 16
const maxEntries = 64
const maxMessage = 128
/** The rest of a longer message is not read. */
const maxSaid = 4096

/** Pods that the node ended for its own reasons say nothing about their image; their successors do. */
const wasEndedByNode = (reason: string) => reason.startsWith("OutOf") || endedByNode.has(reason)
const endedByNode = new Set([
  "Evicted",
  "NodeLost",
  "NodeShutdown",
  "NodeAffinity",
  "Preempting",
  "Shutdown",
  "Terminated",
  "UnexpectedAdmissionError",
])

const pullFailures = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "ImageInspectError",
  "RegistryUnavailable",
  "SignatureValidationFailed",
])

const startFailures = new Set([
  "CrashLoopBackOff",
  "CreateContainerError",
  "CreateContainerConfigError",
  "PreCreateHookError",
  "PreStartHookError",
  "PostStartHookError",
  "RunContainerError",
  "ContainerCannotRun",
  "StartError",
])

/** `spared`: containers whose exits do not count. */
function troubleOf(status: Json | undefined, spared?: ReadonlySet<string>): PodTrouble | undefined {
  if (!status) return undefined
  if (status.phase === "Succeeded" || (status.phase === "Failed" && wasEndedByNode(text(status.reason))))
    return undefined
  const containers = statusesOf(status)
  const judged = spared ? containers.filter(each => !spared.has(printable(text(each.name)))) : containers
  return (
    first(containers, pullFailure) ??
    first(judged, crash) ??
    failedPod(status) ??
    unschedulable(status) ??
    notReady(status, containers)
  )
}

function pullFailure({ state }: Json): PodTrouble | undefined {
  const { reason, message } = part(state, "waiting")
  // A node that starts only so many pulls a second has asked no registry yet.
  if (!pullFailures.has(text(reason)) || isHeldBack(text(reason), text(message))) return undefined
  // A kubelet reports the error and the wait in turn. Both end with the cause; their beginnings are noise.
  const cause = text(message)
    .replace(/^Back-off pulling image "[^"]*"(: )?/, "")
    .replace(/^ErrImagePull: /, "")
    .replace(/^rpc error: code = \w+ desc = /, "")
  return trouble("ImagePullFailed", cause === "" ? text(reason) : ending(cause))
}

function crash({ name, state, lastState, ready }: Json): PodTrouble | undefined {
  const { reason, message } = part(state, "waiting")
  const hasFailed = (end: Json) => Number.isInteger(end.exitCode) && end.exitCode !== 0
  const end = [part(state, "terminated"), part(lastState, "terminated")].find(hasFailed)
  const isWaiting = startFailures.has(text(reason))
  if (!isWaiting && (ready === true || !end)) return undefined
  const who = `${isWaiting ? `${reason}: ` : ""}container ${text(name)}`
  // The kubelet's own message for a crash loop names the pod and the wait: neither is the cause.
  if (end) return trouble("Unhealthy", `${who} exited with ${end.exitCode}${inBrackets(end.reason)}`)
  if (reason === "CrashLoopBackOff") return trouble("Unhealthy", `${who} keeps ending`)
  return trouble("Unhealthy", `${who}: ${ending(text(message), maxMessage - who.length - 2)}`)
}

function failedPod({ phase, reason, message }: Json): PodTrouble | undefined {
  if (phase !== "Failed") return undefined
  const why = text(message) === "" ? "" : `: ${text(message)}`
  return trouble("Unhealthy", `the pod failed${inBrackets(reason)}${why}`)
}

function unschedulable(status: Json): PodTrouble | undefined {
  const scheduled = condition(status, "PodScheduled")
  if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") return undefined
  return trouble("Unschedulable", text(scheduled.message))
}

function notReady(status: Json, containers: Json[]): PodTrouble | undefined {
  if (status.phase !== "Running" || condition(status, "Ready")?.status === "True") return undefined
  const names = containers.filter(each => each.ready !== true && part(each.state, "running").startedAt !== undefined)
  const which = names.length === 0 ? "the pod" : `container ${names.map(each => text(each.name)).join(", ")}`
  return { ...trouble("Unhealthy", `${which} runs and is not ready`), isTentative: true }
}

const trouble = (reason: FailureReason, message: string): PodTrouble => ({
  reason,
  message: clip(printable(message), maxMessage),
  isTentative: false,
})

/** Without characters that move a cursor, reverse text or are invisible. */
const printable = (words: string) =>
  words
    .slice(0, maxSaid)
    .replace(/[\p{C}\p{Z}\s]+/gu, " ")
    .trim()

/** The end of a long message: errors are wrapped from the front, and the cause stands last. */
const ending = (words: string, room = maxMessage) =>
  words.length <= room ? words : `…${words.slice(1 - Math.max(room, 16)).toWellFormed()}`

const inBrackets = (word: unknown) => (text(word) === "" ? "" : ` (${text(word)})`)

function first<I, T>(items: readonly I[], find: (item: I) => T | undefined): T | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

const part = (value: unknown, name: string): Json => record(record(value)[name])
const record = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {})
const entries = (value: unknown): Json[] => (Array.isArray(value) ? value.slice(0, maxEntries).map(record) : [])
const text = (value: unknown) => (typeof value === "string" ? value : "")

export function condition(status: Json | undefined, type: string): Json | undefined {
  return entries(status?.conditions).find(each => each.type === type)
}

import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import { inPlaceHolder } from "./names.ts"
import { isCarried, type Touched } from "./template.ts"

/**
 * What is kept on objects while an update in place lasts. Everything else is derived from what the objects are, so a
 * process that starts in the middle continues where the last one stopped. The annotations belong to the owner of the
 * object too and may hold any text: what cannot be read counts as absent.
 */

/** The hold of a workload, as the policy writes it with the user's own change. */
export type Hold = {
  readonly by: string
  /** Of a Canary: its name. */
  readonly name?: string
  /** The generation before the change: tells one hold from the next. */
  readonly generation: number
  /** Of a StatefulSet or DaemonSet: what to give back. Absent where it cannot be read. */
  readonly original?: UpdateStrategy
  /** It stays between updates, for servers that hold nothing by themselves (decision 89). */
  readonly isStanding?: true
  /** Of a standing hold: its own controller does a rolling update, and afterwards the hold stands again. */
  readonly isLent?: true
}

/** `updateStrategy` of a StatefulSet or DaemonSet before the hold. The block is kept whole; null: there was none. */
export type UpdateStrategy = {
  readonly type: string
  readonly rollingUpdate: Readonly<Record<string, unknown>> | null
}

export function parseHold(text: unknown): Hold | undefined {
  const { by, name, generation, original, isStanding, isLent } = objectIn(text)
  if (typeof by !== "string" || typeof generation !== "number") return undefined
  const strategy = strategyIn(original)
  return {
    by,
    ...(typeof name === "string" && { name }),
    generation,
    ...(strategy && { original: strategy }),
    ...(isStanding === true && { isStanding }),
    ...(isStanding === true && isLent === true && { isLent }),
  }
}

function strategyIn(value: unknown): UpdateStrategy | undefined {
  const { type, rollingUpdate } = recordOf(value)
  if (typeof type !== "string") return undefined
  const isBlock = typeof rollingUpdate === "object" && rollingUpdate !== null
  return { type, rollingUpdate: isBlock ? recordOf(rollingUpdate) : null }
}

/**
 * The same text as the policy writes for a StatefulSet or DaemonSet:
 * `{"by":"in-place","original":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}},"generation":3}`. The
 * strategy is JSON, or a CEL expression that gives JSON.
 */
export const setHoldOf = (strategy: string, generation: string) =>
  [`{"by":"${inPlaceHolder}","original":`, strategy, ',"generation":', generation, "}"] as const

/** The same text as the policy writes, with the generation as a CEL expression or a number. */
export const holdOf = (generation: string): readonly [before: string, generation: string, after: string] => [
  `{"by":"${inPlaceHolder}","original":{"paused":false},"generation":`,
  generation,
  "}",
]

const standing = '"isStanding":true,'

/**
 * A hold that stays between updates. The original is JSON; without one, a Deployment is to be resumed. The policies know
 * only the hold of an update: where one is in force, it writes that instead with the next change.
 */
export function standingHoldOf(original: string | undefined, generation: number, isLent = false): string {
  const { length } = holdBegins
  const text = setHoldOf(original ?? '{"paused":false}', String(generation)).join("")
  return `${text.slice(0, length)}${standing}${isLent ? '"isLent":true,' : ""}${text.slice(length)}`
}

/** How a hold of ours begins, and how one does that stays between updates. */
export const holdBegins = `{"by":"${inPlaceHolder}",`
export const standingBegins = `${holdBegins}${standing}`

/** The same standing hold, for the next update: with the generation of now. */
export const renewedHoldOf = ({ original }: Hold, generation: number, isLent = false): string =>
  standingHoldOf(original && JSON.stringify(original), generation, isLent)

/** How an update stands, on the workload. The Deployment controller copies it to the ReplicaSet it takes for current. */
export type WorkloadNote = {
  readonly operation: string
  readonly reason: string
  readonly message: string
  /** Everything that this hold has changed in pods so far. */
  readonly touched: Touched
  readonly from: Readonly<Record<string, string>>
  readonly to: Readonly<Record<string, string>>
  /**
   * What the fence is about: the generation of the ReplicaSet, or the revision of a set. With a release: every pod was
   * proven, and the workload's own controller knew it.
   */
  readonly fence?: number
  /** The operation that failed, and the one that takes it back: the first is not tried again by itself. */
  readonly failed?: string
  readonly back?: string
  /** Its owner has written the images of before again: what `from` names was never complete. */
  readonly isTakenBack?: true
  /** The operation of the ServiceImage that had stamped the template that failed. */
  readonly stamp?: string
  /** The hold has stayed: a stop without its annotation is no pause of the owner. */
  readonly isStanding?: true
}

/** How the note of a hold begins. The generation is that of the hold, or a CEL expression that gives it. */
export const noteBeginning = (generation: string): readonly [before: string, generation: string, after: string] => [
  '{"operation":"',
  generation,
  "-",
]

const lengthMost = 32_768
const messageMost = 512

/** What went where is for people: it is left out where the whole could not be read again. */
export function formatNote(note: WorkloadNote): string {
  const short = { ...note, message: clip(note.message, messageMost) }
  const text = JSON.stringify(short)
  return text.length <= lengthMost ? text : JSON.stringify({ ...short, from: {}, to: {} })
}

/** Can what is written be read again? */
export const isReadable = (note: WorkloadNote) => formatNote(note).length <= lengthMost

/**
 * The hold behind an annotation that is gone or cannot be read, on a workload that is stopped and has our label. A
 * release writes a note: after one, an annotation that is gone was released, and the pause is its owner's. A note of a
 * hold that has stayed says so.
 */
export function lostHold(annotation: string | undefined, note: WorkloadNote | undefined): Hold | undefined {
  const isOver = note && !note.isStanding && !underWay.has(note.reason)
  if (parseHold(annotation) || (annotation === undefined && isOver)) return undefined
  return { by: inPlaceHolder, generation: Number.parseInt(note?.operation ?? "", 10) || 0 }
}

const underWay = new Set([
  "Updating",
  "Pulling",
  "ImageUnavailable",
  "BudgetSpent",
  "Forbidden",
  "Refused",
  "Partitioned",
  "NodeNotReady",
  "PodNotReady",
  "UpdateFailed",
  "Fencing",
  "InvalidAnnotation",
])

export function parseNote(text: unknown): WorkloadNote | undefined {
  const { operation, reason, message, touched, from, to, fence, failed, back, isTakenBack, stamp, isStanding } =
    objectIn(text)
  if (typeof operation !== "string" || typeof reason !== "string" || typeof message !== "string") return undefined
  const { containers, labels, annotations, restarts } = (touched ?? {}) as Record<string, unknown>
  return {
    operation,
    reason,
    message,
    touched: {
      containers: words(containers),
      labels: words(labels).filter(isCarried),
      annotations: words(annotations).filter(isCarried),
      ...(restarts !== undefined && { restarts: words(restarts) }),
    },
    from: texts(from),
    to: texts(to),
    ...(typeof fence === "number" && { fence }),
    ...(typeof failed === "string" && { failed }),
    ...(typeof back === "string" && { back }),
    ...(isTakenBack === true && { isTakenBack }),
    ...(typeof stamp === "string" && { stamp }),
    ...(isStanding === true && { isStanding }),
  }
}

/** `waiting`: why the kubelet did not start it, if it did not. `image`: what it was started from, if not from the image before. */
export type ContainerBefore = {
  readonly id: string
  readonly restarts: number
  readonly waiting?: string
  readonly image?: string
}

/** The last change of a pod. Written with the change itself. */
export type PodMark = {
  readonly operation: string
  /** Images by container, before and after. */
  readonly from: Readonly<Record<string, string>>
  readonly to: Readonly<Record<string, string>>
  /** The containers as they were then. */
  readonly was: Readonly<Record<string, ContainerBefore>>
  /** Containers with the same image that the node's agent restarts. */
  readonly restarts?: readonly string[]
  readonly at: Instant
  /** The pod went back, because of this. */
  readonly failed?: string
  /** Written with the label that makes the pod one of the new revision. */
  readonly proven?: true
}

export const formatMark = (mark: PodMark): string => JSON.stringify({ ...mark, at: formatInstant(mark.at) })

export function parseMark(text: unknown): PodMark | undefined {
  const { operation, from, to, was, restarts, at: written, failed, proven } = objectIn(text)
  const at = parseInstant(written)
  if (typeof operation !== "string" || at === undefined) return undefined
  return {
    operation,
    from: texts(from),
    to: texts(to),
    was: containers(was),
    ...(restarts !== undefined && { restarts: words(restarts) }),
    at,
    ...(typeof failed === "string" && { failed }),
    ...(proven === true && { proven }),
  }
}

function containers(value: unknown): PodMark["was"] {
  const found: Record<string, ContainerBefore> = Object.create(null)
  for (const [name, each] of Object.entries(recordOf(value))) {
    const { id, restarts, waiting, image } = recordOf(each)
    if (typeof id !== "string" || typeof restarts !== "number") continue
    const known = { ...(typeof waiting === "string" && { waiting }), ...(typeof image === "string" && { image }) }
    found[name] = { id, restarts, ...known }
  }
  return found
}

function objectIn(text: unknown): Record<string, unknown> {
  if (typeof text !== "string" || text.length > lengthMost) return {}
  try {
    return recordOf(JSON.parse(text))
  } catch {
    return {}
  }
}

const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const words = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(word => typeof word === "string") : []

/** Users choose the names, so the result has no prototype. */
const texts = (value: unknown): Readonly<Record<string, string>> =>
  Object.assign(
    Object.create(null),
    Object.fromEntries(Object.entries(recordOf(value)).filter(([, text]) => typeof text === "string")),
  )

import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import type { Obj } from "../object.ts"
import type { ServedKind } from "./kind.ts"
import type { DeleteOptions } from "./storage.ts"

/**
 * What becomes of an object whose deletion is requested. `next` is stored before the removal (with grace of 0), or
 * instead of it (while finalizers or a grace period hold the object).
 */
export type Deletion = { is: "removed" | "marked"; next?: Obj } | { is: "pending" }

/** Decides a deletion as the server's generic storage does. Preconditions have been checked. */
export function planDeletion(kind: ServedKind, object: Obj, options: DeleteOptions, now: Instant): Deletion {
  const { metadata } = object
  const asked =
    options.gracePeriodSeconds !== undefined && options.gracePeriodSeconds < 0 ? 1 : options.gracePeriodSeconds
  const grace = gracefully(kind, object, asked, now)
  if (grace === "pending") return { is: "pending" }

  const finalizers = finalizersFor(kind, object, options)
  const held = finalizers.length > 0
  if (grace) {
    const next = withMetadata(object, { ...grace.metadata, finalizers: held ? finalizers : undefined })
    return { is: held || grace.seconds > 0 ? "marked" : "removed", next }
  }
  if (!held) return { is: "removed" }
  const at = parseInstant(metadata.deletionTimestamp)
  const deletion = {
    finalizers,
    deletionTimestamp: at === undefined || at > now ? formatInstant(now) : metadata.deletionTimestamp,
    deletionGracePeriodSeconds: 0,
    ...(at === undefined && nextGeneration(object)),
  }
  return { is: "marked", next: withMetadata(object, deletion) }
}

type Grace = { metadata: Partial<Obj["metadata"]>; seconds: number }

/** For kinds that end with a grace period (pods): how the object waits for it; undefined: not gracefully. */
function gracefully(
  kind: ServedKind,
  object: Obj,
  asked: number | undefined,
  now: Instant,
): Grace | "pending" | undefined {
  const { graceSeconds } = kind.strategy
  if (!graceSeconds) return undefined
  const { deletionTimestamp, deletionGracePeriodSeconds: current } = object.metadata
  if (deletionTimestamp === undefined) {
    const seconds = graceSeconds(object, asked)
    if (seconds === undefined) return undefined
    return { metadata: { ...endingAt(now + seconds * 1000, seconds), ...nextGeneration(object) }, seconds }
  }
  if (!current) return undefined // its grace period is over
  if (asked === undefined || asked >= current) return "pending" // a grace period is only ever shortened
  const at = (parseInstant(deletionTimestamp) ?? now) + (asked - current) * 1000
  const seconds = at < now && asked !== 0 ? 1 : asked
  return { metadata: endingAt(Math.max(at, now), seconds), seconds }
}

const endingAt = (at: Instant, seconds: number) => ({
  deletionTimestamp: formatInstant(at),
  deletionGracePeriodSeconds: seconds,
})

/** A deletion changes what controllers should do, so generation moves, where there is one. */
const nextGeneration = ({ metadata: { generation } }: Obj) => (generation ? { generation: generation + 1 } : {})

/** `orphan` and `foregroundDeletion` are pending work of the garbage collector; other finalizers stay. */
function finalizersFor(kind: ServedKind, { metadata }: Obj, { propagationPolicy }: DeleteOptions): readonly string[] {
  const present = metadata.finalizers ?? []
  if (kind.plural === "events") return present // its kind has no dependents
  const policy =
    propagationPolicy ??
    (present.includes("orphan")
      ? "Orphan"
      : present.includes("foregroundDeletion")
        ? "Foreground"
        : defaultPolicy(kind))
  const others = present.filter(each => each !== "orphan" && each !== "foregroundDeletion")
  if (policy === "Orphan") return [...others, "orphan"]
  if (policy === "Foreground") return [...others, "foregroundDeletion"]
  return others
}

/** Two old kinds orphan their pods unless the request has a policy. */
const defaultPolicy = ({ group, plural }: ServedKind) =>
  (group === "batch" && plural === "jobs") || (group === "" && plural === "replicationcontrollers")
    ? "Orphan"
    : "Background"

export const withMetadata = (object: Obj, changes: Partial<Record<keyof Obj["metadata"], unknown>>): Obj =>
  ({ ...object, metadata: withoutUndefined({ ...object.metadata, ...changes }) }) as Obj

export function withoutUndefined<T extends object>(object: T): T {
  for (const key of Object.keys(object)) if (object[key as keyof T] === undefined) delete object[key as keyof T]
  return object
}

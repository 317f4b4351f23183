import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Proof } from "../canary/proof.ts"
import { changedInSameWrite, isHolding, isTold } from "./contests.ts"
import type { Member } from "./member.ts"
import type { Standing } from "./standing.ts"

/** What is in the way of a stamp, since when, and when the next try is due. */
export type Obstacle = {
  readonly reason: FailureReason | undefined
  readonly message: string | undefined
  readonly since: Instant
  readonly retryAt: Instant
  /** Time changes nothing: the object has failed. */
  readonly isFinal?: true
}

/** A rule about an object itself, whatever its rollout does. */
export type ObjectCheck = {
  readonly of: "Object"
  readonly name: string
  applies(standing: Standing, member: Member): boolean
  /** The object needs a stamp, and this delays it. Without an obstacle the object needs none. */
  obstacle?(standing: Standing, member: Member, startedAt: Instant): Obstacle | undefined
}

/**
 * The first part of the list in controllers/serviceimage/checks.ts, in order. A fleet judges every object by it with
 * each event: only objects that none of these stops are in the queue of their tier.
 */
export const objectChecks = [
  { of: "Object", name: "unmanaged", applies: ({ state }) => state === "Unmanaged" },
  { of: "Object", name: "upToDate", applies: ({ state }) => state === "Done" },
  { of: "Object", name: "settling", applies: ({ state }) => state === "Settling" },
  { of: "Object", name: "waiting", applies: ({ state }) => state === "Waiting" },
  {
    of: "Object",
    name: "unwritable",
    applies: (_, { problem }) => problem !== undefined,
    obstacle: (_, { problem }, since) => ({
      reason: "InvalidTarget",
      message: problem,
      since,
      retryAt: Number.POSITIVE_INFINITY,
    }),
  },
  {
    of: "Object",
    name: "refused",
    applies: ({ hold }) => hold !== undefined,
    obstacle: ({ hold }) => hold,
  },
  {
    of: "Object",
    name: "takenBack",
    applies: ({ isTakenBack }) => isTakenBack,
    obstacle: (_, { inPlace, decision }) => ({
      reason: "UpdateFailed",
      message: inPlace!.takenBack!.message,
      since: decision!.at,
      retryAt: Number.POSITIVE_INFINITY,
      isFinal: true,
    }),
  },
  {
    // Another stamp would be rejected as well: its Canary waits for another template, or for a person.
    of: "Object",
    name: "rejected",
    applies: ({ isRejected }) => isRejected,
    obstacle: ({ proof }, { decision }) => ({
      reason: "CanaryFailed",
      message: proof!.message,
      since: decision!.at,
      retryAt: Number.POSITIVE_INFINITY,
      isFinal: true,
    }),
  },
  {
    // A change of the object is looked at again: its owner lets its controller go on.
    of: "Object",
    name: "kept",
    applies: ({ isKept }) => isKept,
    obstacle: ({ proof }, __, since) => ({
      reason: "NotInPlace",
      message: proof ? provenElsewhere(proof) : stoppedByOwner,
      since,
      retryAt: Number.POSITIVE_INFINITY,
    }),
  },
  {
    of: "Object",
    name: "contested",
    applies: ({ isContested }) => isContested,
    obstacle({ contest }, { contestedBy }) {
      if (!contest || !isHolding(contest)) return undefined
      const message = contest.isInSameWrite
        ? changedInSameWrite
        : `${contestedBy ?? "another writer"} puts another image back`
      return { ...contest, reason: isTold(contest) ? "Contested" : undefined, message }
    },
  },
] as const satisfies readonly ObjectCheck[]

export const stoppedByOwner =
  "its owner has stopped its controller (paused, a partition or OnDelete), so nothing may hold it, and InPlaceOnly replaces no pod"

export const provenElsewhere = ({ name }: Proof) =>
  `Canary ${name} proves each change of it with other pods, and InPlaceOnly replaces no pod`

/** The first check that applies to an object. */
export function checkOf(standing: Standing, member: Member): ObjectCheck | undefined {
  for (const check of objectChecks) if (check.applies(standing, member)) return check
  return undefined
}

/** Whether the object's own check keeps it from being stamped now. A refused object is tried again when that is due. */
export const isStopped = ({ check, isHeld }: Pick<Standing, "check" | "isHeld">) =>
  check !== undefined && (check.obstacle === undefined || isHeld)

import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Proof } from "../canary/proof.ts"
import type { Hold } from "../holds.ts"
import type { Trace } from "../pods/trace.ts"
import type { ObjectCheck } from "./checks.ts"
import type { Contest } from "./contests.ts"
import type { Member } from "./member.ts"
import type { Tier } from "./tier.ts"

export type State = "Unmanaged" | "Blank" | "Stale" | "Waiting" | "Settling" | "Done"

/** How an object stands in the operation. It is filled in anew whenever it is judged. */
export type Standing = {
  state: State
  isCounted: boolean
  /** Created after the operation started. */
  isNew: boolean
  cohort: number
  /** The image it must have. */
  wanted: string
  /** It has that image and is up to date, with no container in a crash loop. */
  isWell: boolean
  /** Since when it is well; undefined while it is not, or where it was well before we first saw it. */
  wellAt: Instant | undefined
  /** Only our own first look dates `wellAt`. */
  isWellGuessed: boolean
  /** It has been well for long enough that losing it would be a regression. */
  isSteady: boolean
  /** Since when it is no longer well, after it was steady. */
  lapsedAt: Instant | undefined
  /** Since when it is no longer well, after it was settling. */
  brokeAt: Instant | undefined
  /** This operation stamped it. */
  isOurs: boolean
  /** It was steady and is not well, for longer than a moment. */
  isRegressed: boolean
  /** When time alone makes a well object steady. */
  settlesAt: Instant | undefined
  /** When time alone changes any of this. */
  changesAt: Instant | undefined
  /** When it came from another ServiceImage, or by a label, if the others were there already: its time starts then. */
  cameAt: Instant | undefined
  /** When it fails if nothing changes: a waiting object, or one whose stamp is refused. */
  deadline: Instant | undefined
  isFailed: boolean
  /** It failed before its deadline: waiting longer would not have helped. */
  isEarly: boolean
  /** The target is wrong for it: no place for the image, or no health that can be determined. */
  isInvalid: boolean
  /** The class of failure it is counted under, from the first sign or from its deadline. */
  trouble: FailureReason | undefined
  /** Not to be tried now. */
  isHeld: boolean
  isContested: boolean
  /** Its update in place failed, and was taken back with the image. */
  isTakenBack: boolean
  /** The Canary that proves its changes rejected the image, and took it back. */
  isRejected: boolean
  /**
   * Its pods must not be replaced, and a stamp would replace them: its owner has stopped its controller, so nothing could
   * hold it, or a Canary has it.
   */
  isKept: boolean
  /** How the Canary that proves its changes stands. */
  proof: Proof | undefined
  /** What refused the last write to it or to its namespace, while it must still be stamped. */
  hold: Readonly<Hold<FailureReason>> | undefined
  /** What is known about the other writer, while it is contested. */
  contest: Contest | undefined
  /** The first check about the object itself that applies. */
  check: ObjectCheck | undefined
  /** The message about the trouble, from the server or from another cause. */
  words: string | undefined
  lost: number
}

/**
 * One object of a fleet. A changed spec judges every object again, so each keeps its standing and its places in the
 * heaps: allocating those for ten thousand objects was most of the time to the first stamp.
 */
export class Entry {
  readonly key: string
  /** In the queue of its ServiceImage. */
  readonly place: number
  member: Member
  trace: Trace | undefined
  /** Of a workload with a Canary. */
  proof: Proof | undefined
  /** The tier it is counted in. */
  tier: Tier | undefined
  readonly standing: Standing = { ...unjudged }
  queueAt = -1
  turnAt = -1
  deadlineAt = -1

  constructor(key: string, place: number, member: Member) {
    this.key = key
    this.place = place
    this.member = member
  }
}

const unjudged: Standing = {
  state: "Done",
  isCounted: false,
  isNew: false,
  cohort: 0,
  wanted: "",
  isWell: false,
  wellAt: undefined,
  isWellGuessed: false,
  isSteady: false,
  lapsedAt: undefined,
  brokeAt: undefined,
  isOurs: false,
  isRegressed: false,
  settlesAt: undefined,
  changesAt: undefined,
  cameAt: undefined,
  deadline: undefined,
  isFailed: false,
  isEarly: false,
  isInvalid: false,
  trouble: undefined,
  isHeld: false,
  isContested: false,
  isTakenBack: false,
  isRejected: false,
  isKept: false,
  proof: undefined,
  hold: undefined,
  contest: undefined,
  check: undefined,
  words: undefined,
  lost: 0,
}

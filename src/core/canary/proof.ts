import type { Canary, EndedRun, Reason } from "#api/v1alpha1/canary/index.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { sameImage } from "../image/reference.ts"
import { endingOf } from "./decision.ts"
import { plain } from "./plain.ts"

/** What the other parts of aim know of a Canary: whether it proves a change of its target, and how the last one ended. */
export type Proof = {
  /** The Canary. */
  readonly name: string
  /**
   * UnderWay: a run goes on, or goes back. Waiting: a run waits at a gate, or a person has stopped it. Failed: the last run
   * failed, and its template waits for a change. Stalled: it does not go on without a person, for another reason.
   */
  readonly state: "AtRest" | "UnderWay" | "Waiting" | "Failed" | "Stalled"
  /** Of the revision that is being proven, or that failed. */
  readonly images: readonly string[]
  /** Of the revision that runs meanwhile, while the new one is being proven. */
  readonly source: readonly string[]
  /** In a sentence. */
  readonly message: string
  /** When the last run ended, or last got further; 0 where there was none. */
  readonly at: Instant
}

const messageMost = 200

/** How long a run waits for these is its namespace's affair. Other reasons end by deadlines of the Canary. */
const waits: ReadonlySet<Reason> = new Set(["AwaitingApproval", "GateWaiting", "Paused", "Suspended"])

export function proofOf({ metadata, status }: Canary): Proof {
  const { name } = metadata
  const ready = status?.conditions?.find(({ type }) => type === "Ready")
  const stalled = status?.conditions?.find(({ type, status: is }) => type === "Stalled" && is === "True")
  const said = (reason: string, message: string, run = "") =>
    plain(`Canary ${name}${run}: ${reason}${message ? `, ${message}` : ""}`, messageMost)
  const none = { name, images: [], source: [] } as const
  const run = status?.run
  if (metadata.deletionTimestamp)
    return { ...none, state: "UnderWay", message: said("Terminating", "it is being deleted"), at: 0 }
  if (run) {
    const ending = endingOf(run)
    const message = said(run.reason, run.message, `, run ${run.id} at ${run.weight} %`)
    const isWaiting = !ending && waits.has(run.reason)
    const state = ending === "RolledBack" ? "Failed" : stalled ? "Stalled" : isWaiting ? "Waiting" : "UnderWay"
    const at = parseInstant(run.progressAt) ?? 0
    return { name, state, images: run.target.images, source: ending ? [] : run.source.images, message, at }
  }
  const last = status?.history?.[0]
  const at = parseInstant(last?.endedAt) ?? 0
  if (stalled && status?.phase === "Failed" && last)
    return { name, state: "Failed", images: last.target.images, source: [], message: said(...wordsOf(last)), at }
  if (stalled) return { ...none, state: "Stalled", message: said(stalled.reason, stalled.message), at }
  return { ...none, state: "AtRest", message: said(ready?.reason ?? "Observing", ready?.message ?? ""), at }
}

const wordsOf = ({ reason, message = "", id }: EndedRun): [string, string, string] => [reason, message, `, run ${id}`]

const has = (images: readonly string[], image: string) => images.some(each => sameImage(each, image))

/** Did the Canary try this image, and reject it? */
export const hasRejected = (proof: Proof | undefined, image: string): boolean =>
  proof?.state === "Failed" && has(proof.images, image)

/** A run has not ended, or a deletion has not: the workload's counts may be about another image. */
export const isOpen = ({ state, images }: Proof): boolean =>
  state === "UnderWay" || state === "Waiting" || (state === "Stalled" && images.length > 0)

/** The image runs already, and the run is about something else. */
export const provesOther = (proof: Proof, image: string): boolean =>
  isOpen(proof) && has(proof.images, image) && has(proof.source, image)

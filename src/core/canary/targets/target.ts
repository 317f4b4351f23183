import type { Run } from "#api/v1alpha1/canary/index.ts"
import type { Decision } from "../decision.ts"
import type { Act, SetSeen, Sight } from "../sight.ts"

export type Step = { readonly act: Act; readonly message: string } | { readonly wait: string } | "done"

export type Impossible = {
  readonly impossible: string
  readonly reason: "Restarted" | "TargetMissing" | "Unhealthy"
}

/**
 * How the pods of a new revision come and go where the target is no Deployment. A Deployment's new revision has a
 * Deployment of its own, which the files beside this folder describe.
 */
export type Target = {
  /** A step towards so many pods of the new revision. */
  resized(sight: Sight, run: Run, size: number): Step
  /** Before requests are given to what has become ready. */
  settled?(sight: Sight, run: Run): Step
  /** No run is under way: what is done about a revision that has nothing to be compared with. */
  unproven?(sight: Sight): (Partial<Decision> & Pick<Decision, "reason" | "message">) | undefined
  /** Before requests go back: a step towards pods of the source that can answer them. */
  grown?(sight: Sight, run: Run): Step
  /** Requests have gone back: a step towards no pod of the new revision. */
  emptied(sight: Sight, run: Run): Step
  /** All requests go to the new revision: a step towards a workload that has nothing else. */
  handedOver(sight: Sight, run: Run): Step | Impossible
  /** The Canary goes: a step towards a workload that its own controller has again, and that it leaves as it is. */
  released(sight: Sight, source: SetSeen | undefined): Act | undefined
}

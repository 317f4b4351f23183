import { sidesOf } from "../decision.ts"
import { nextTurn } from "../turn.ts"
import type { Target } from "./target.ts"

/**
 * A Service that is only routed to. A revision is what the Service selects: `NAME-primary` keeps what was promoted last,
 * and `NAME-canary` has what the Service says now. No pod is made, moved or held.
 */
export const serviceTarget: Target = {
  resized: () => "done",
  emptied: () => "done",
  /** From the moment when `NAME-primary` selects the new pods, what it selected before is not kept anywhere. */
  handedOver(sight, run) {
    const turn = nextTurn(sidesOf(sight), run.target.hash, 1)
    if (turn === "done") return "done"
    if ("wait" in turn) return { wait: "the pods that the Service selects are not ready" }
    const message = "the Services select the revision that answers from now on"
    if (turn.do === "route") return { act: { ...turn }, message }
    return { act: { do: "services", source: run.target.hash, target: run.target.hash }, message }
  },
  released: () => undefined,
}

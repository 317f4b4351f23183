import type { Split } from "#core/canary/router.ts"
import type { Instant } from "#lib/instant.ts"
import { type Outcome, saysNotGranted } from "#runtime/client/outcome.ts"
import type { Resource } from "#runtime/resource.ts"

export type Done = {
  readonly lookAgainAt?: Instant | undefined
  /** The route that the server has confirmed. */
  readonly split?: Split | undefined
  readonly refusal?:
    | { readonly reason: "BudgetSpent" | "Forbidden" | "Refused" | "WriteFailed"; readonly message: string }
    | undefined
  /** The Canary itself was written: its status is reported by the next look, if it is still there. */
  readonly isWritten?: boolean | undefined
}

export type Write = { readonly resource: Resource; readonly send: Promise<unknown> }

export const soonMs = 1000
const refusedMs = 15_000

/** What follows from a write that did not come about; undefined for one that did. */
export function settled(outcome: Outcome<unknown>, now: Instant): Done | undefined {
  if (outcome.is === "Written") return undefined
  if (outcome.is !== "Refused") return { lookAgainAt: now + soonMs }
  const { said, message } = outcome.error
  const reason = saysNotGranted(message) ? "Forbidden" : "Refused"
  return { lookAgainAt: now + refusedMs, refusal: { reason, message: said } }
}

import { type Instant, parseInstant } from "#lib/instant.ts"
import type { Condition } from "./conditions.ts"
import type { KubeObject } from "./resource.ts"

/** The state of an object, from its conditions alone. */
export type Standing = {
  state: "NotSeenYet" | "Stalled" | "Ready" | "NotReady"
  reason: string
  message: string
  since?: Instant | undefined
}

/** A condition counts only for the last generation. */
export function standingOf({ metadata, status }: KubeObject & { status?: unknown }): Standing {
  const { generation = 0 } = metadata
  const { conditions = [] } = (status ?? {}) as { conditions?: readonly Condition[] }
  const current = conditions.filter(({ observedGeneration = 0 }) => observedGeneration >= generation)
  const ready = current.find(({ type }) => type === "Ready")
  const stalled = current.find(({ type, status: is }) => type === "Stalled" && is === "True")
  if (!ready) return { state: "NotSeenYet", reason: "", message: "no controller has observed it yet" }
  const { reason, message, lastTransitionTime } = stalled ?? ready
  const state = stalled ? "Stalled" : ready.status === "True" ? "Ready" : "NotReady"
  return { state, reason, message, since: parseInstant(lastTransitionTime) }
}

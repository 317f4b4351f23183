import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"

/** Where the last image decision stands on every object we change. It is written in the same request as the change. */
export const decisionAnnotation = "autoimagemanager.io/last-decision"

export type Decision = {
  from: string
  to: string
  reason: string
  operation: string
  /** The object that decided, e.g. `serviceimage/dicom-prod`. */
  by: string
  at: Instant
}

export const formatDecision = (decision: Decision) => JSON.stringify({ ...decision, at: formatInstant(decision.at) })

/** Undefined unless it is whole: the annotation belongs to the object's owner, who may have put anything there. */
export function parseDecision(text: unknown): Decision | undefined {
  if (typeof text !== "string" || text.length > 4096) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== "object" || value === null) return undefined
  const { from, to, reason, operation, by, at: written } = value as Record<string, unknown>
  const at = parseInstant(written)
  if (at === undefined) return undefined
  for (const word of [from, to, reason, operation, by]) if (typeof word !== "string") return undefined
  return { from, to, reason, operation, by, at } as Decision
}

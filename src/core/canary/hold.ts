/** The part of aim that holds a workload for a Canary, in its label and annotation. */
export const canaryHolder = "canary"

/**
 * The text that the policy writes with the user's own change, as `parseHold` reads it:
 * `{"by":"canary","name":"web","generation":3}`. Name and generation are texts, or CEL expressions that give them.
 */
export const canaryHoldOf = (name: string, generation: string) =>
  [`{"by":"${canaryHolder}","name":"`, name, `","generation":`, generation, "}"] as const

/**
 * The text of a hold that the controller writes itself: it stands between runs, where no policy holds. Of a StatefulSet or
 * DaemonSet it has the strategy that is given back.
 */
export const standingHoldOf = (name: string, generation: number, original?: unknown): string => {
  const before = original === undefined ? "" : `,"original":${JSON.stringify(original)}`
  return canaryHoldOf(name, `${generation},"isStanding":true${before}`).join("")
}

import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { isOfDeployments } from "./services.ts"

/**
 * Both revisions of a StatefulSet or a DaemonSet are pods of one workload, and a Service that is the target has one name
 * too. So `{{ target }}` alone names both of them, and an answer would be about both.
 */
export const hasOneName = (canary: Pick<Canary, "spec">): boolean => !isOfDeployments(canary)

/** What a query says, in the order in which it is said: functions, texts, and where a selector begins and ends. */
const part = /\{\{-?\s*(?<name>.*?)\s*-?\}\}(?<suffix>-(?:canary|primary)(?![-0-9A-Za-z]))?|(?<open>\{)|(?<close>\})/gs

/**
 * Whether a query asks for both revisions at once where they have one name: a selector names the workload, and neither
 * the revision nor a Service of one side. Outside of selectors the query counts as a whole.
 */
export function isMixture(query: string): boolean {
  const outside = { isNamed: false, isExact: false }
  const selectors = [outside]
  // A regular expression in a selector may have braces of its own.
  let depth = 0
  for (const { groups } of query.matchAll(part)) {
    const { name, suffix, open, close } = groups!
    if (open && depth === 0) selectors.push({ isNamed: false, isExact: false })
    if (open) depth++
    if (close) depth = Math.max(0, depth - 1)
    const within = depth === 0 ? outside : selectors.at(-1)!
    if (name === "revision" || suffix !== undefined) within.isExact = true
    else if (name === "target" || name === "source") within.isNamed = true
  }
  return selectors.some(({ isNamed, isExact }) => isNamed && !isExact)
}

export const mixture =
  "{{ target }} is the name of both revisions here: write {{ revision }} beside it, as the label controller-revision-hash of the pods has it, or ask by {{ service }}-canary"

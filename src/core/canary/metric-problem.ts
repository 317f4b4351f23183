import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { hasOneName, isMixture, mixture } from "./mixture.ts"
import { builtInQuery, isBuiltIn } from "./queries.ts"
import { queryProblem } from "./query-check.ts"
import type { Problem } from "./sight.ts"

/**
 * The first metric of the spec that cannot be asked for, or whose answer would be about both revisions at once. A
 * MetricTemplate is another object: the same is said of it when it is asked.
 */
export function metricProblem(canary: Canary): Problem | undefined {
  const { analysis, skipAnalysis } = canary.spec
  for (const [index, { name, query, templateRef, templateVariables = {} }] of analysis.metrics.entries()) {
    if (templateRef) continue
    const at = `analysis.metrics[${index}]`
    const invalid = (message: string): Problem => ({ reason: "InvalidQuery", message: `${at}.query: ${message}` })
    // A run that skips the analysis asks for nothing, and may be how a person gets past a query that is wrong.
    const wrong = query && !skipAnalysis ? queryProblem(query, templateVariables) : undefined
    if (wrong !== undefined) return invalid(wrong)
    if (!hasOneName(canary)) continue
    const builtIn = !query && isBuiltIn(name) ? builtInQuery(name, canary.spec) : ""
    if (typeof builtIn !== "string") return { reason: "NotSupported", message: `${at}.name: ${builtIn.message}` }
    if (query && isMixture(query)) return invalid(mixture)
  }
  return undefined
}

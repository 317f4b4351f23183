import type { Canary, Run } from "#api/v1alpha1/canary/index.ts"
import { providerOf } from "./provider.ts"
import type { ServiceSeen } from "./sight.ts"

/** The spec without fields that are accepted and have no effect with its provider: nothing else has to ask. */
export function effective(canary: Canary): Canary {
  const { analysis } = canary.spec
  // Without a mesh or a gateway no request is copied.
  if (!analysis.mirror || providerOf(canary) !== "kubernetes") return canary
  return { ...canary, spec: { ...canary.spec, analysis: { ...analysis, mirror: false } } }
}

type Sides = { readonly source?: ServiceSeen | undefined; readonly target?: ServiceSeen | undefined }

/**
 * The Canary as its route reads it. From the promotion on, all requests count and not only those that match; so they do
 * while a Service selects the revision of the other side, on the way to the promotion or back from it.
 */
export function asRouted(canary: Canary, { source, target }: Sides, run: Run | undefined): Canary {
  const phase = canary.status?.phase
  const isTurned = run !== undefined && (source?.hash === run.target.hash || target?.hash === run.source.hash)
  const isForAll = phase === "Promoting" || phase === "Finalising" || (isTurned && run.target.hash !== "")
  if (!isForAll || canary.spec.analysis.match.length === 0) return canary
  return { ...canary, spec: { ...canary.spec, analysis: { ...canary.spec.analysis, match: [] } } }
}

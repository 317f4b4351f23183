import type { Canary, Run } from "#api/v1alpha1/canary/index.ts"
import { providerOf } from "./provider.ts"
import { planned } from "./rollout-plan.ts"
import type { ComponentSeen, ServiceSeen } from "./sight.ts"

/** The spec as it is carried out: with the steps of its plan, and without fields that are accepted and have no effect with its provider: nothing else has to ask. */
export function effective(written: Canary): Canary {
  const canary = planned(written)
  const { analysis } = canary.spec
  // Without a mesh or a gateway no request is copied.
  if (!analysis.mirror || providerOf(canary) !== "kubernetes") return canary
  return { ...canary, spec: { ...canary.spec, analysis: { ...analysis, mirror: false } } }
}

type Sides = { readonly source?: ServiceSeen | undefined; readonly target?: ServiceSeen | undefined }

/**
 * The Canary as its route reads it. From the promotion on, all requests count and not only those that match; so they do
 * while a Service selects the revision of the other side, on the way to the promotion or back from it, and where
 * the workload of a component that answered the others is gone.
 */
export function asRouted(
  canary: Canary,
  { source, target }: Sides,
  run: Run | undefined,
  component?: ComponentSeen | undefined,
): Canary {
  const phase = canary.status?.phase
  const isTurned = run !== undefined && (source?.hash === run.target.hash || target?.hash === run.source.hash)
  const isLost = run !== undefined && component !== undefined && !component.source
  const isForAll = phase === "Promoting" || phase === "Finalising" || (isTurned && run.target.hash !== "") || isLost
  if (!isForAll || canary.spec.analysis.match.length === 0) return canary
  return { ...canary, spec: { ...canary.spec, analysis: { ...canary.spec.analysis, match: [] } } }
}

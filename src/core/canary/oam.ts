import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { ScalerSeen } from "./scaler.ts"
import type { Problem } from "./sight.ts"

/** The label by which the OAM runtime tells to which component a workload belongs. */
export const componentLabel = "app.oam.dev/component"

type Texts = Readonly<Record<string, string>>

/** The pods of a revision: the labels of its template, and those that its workload selects by. */
export type Labelled = { readonly labels: Texts; readonly matchLabels: Texts }

/**
 * What Services select the pods of both revisions by, beside the hash that tells them apart: their component, or what the
 * new workload selects by, as far as the pods before have it too. It stays the same from revision to revision.
 */
export function selectorOf(target: Labelled, source: Labelled = target): Texts {
  const component = target.labels[componentLabel]
  if (component !== undefined && source.labels[componentLabel] === component) return { [componentLabel]: component }
  return Object.fromEntries(Object.entries(target.matchLabels).filter(([key, value]) => source.labels[key] === value))
}

export const noCommonLabel = (target: string, source: string): Problem => ({
  reason: "InvalidSpec",
  message: `targetRef: the pods of ${target} and of ${source} have no label in common, so no Service selects both: give the pods of the component the label ${componentLabel}`,
})

export const noComponent = (target: string): Problem => ({
  reason: "InvalidSpec",
  message: `targetRef: ${target} has no label ${componentLabel}, so the revision before cannot be found: add the label, or write sourceRef`,
})

export const noSource = (source: string): Problem => ({
  reason: "WorkloadMissing",
  message: `sourceRef: ${source} does not exist or has no pods: write the workload that answers now, or leave sourceRef out`,
})

/** Names of revisions end in their number: `web-v9` comes before `web-v10`. The label is the runtime's. */
export const componentRevisionLabel = "app.oam.dev/revision"

type Aged = { readonly revision: string; readonly name: string }

/** The newest first. */
export function byAge(a: Aged, b: Aged): number {
  const [left, right] = [numberOf(a), numberOf(b)]
  if (left !== right && left >= 0 && right >= 0) return right - left
  return a.name < b.name ? 1 : -1
}

const numberOf = ({ revision }: Aged): number => Number(/-v(\d{1,9})$/.exec(revision)?.[1] ?? -1)

/**
 * An autoscaler is moved to the next workload. The author's right to patch ScaledObjects was checked only where the Canary
 * names one.
 */
export function unnamedScaler({ spec }: Canary, scalers: readonly ScalerSeen[]): Problem | undefined {
  if (spec.autoscalerRef?.kind === "ScaledObject") return undefined
  const found = scalers.find(({ kind, isOfTarget }) => kind === "ScaledObject" && isOfTarget)
  if (!found) return undefined
  const remedy = `write autoscalerRef: {apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: ${found.name}}`
  return {
    reason: "InvalidSpec",
    message: `autoscalerRef: ScaledObject ${found.name} scales the component and has to follow it: ${remedy}`,
  }
}

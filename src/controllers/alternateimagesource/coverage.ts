import type { AlternateImageSourceSpec, Replacement, Target } from "#api/v1alpha1/alternateimagesource/index.ts"
import { replacementOf } from "#core/equivalent.ts"
import { selects } from "#lib/label-selector.ts"
import type { Container, Owner } from "./facts.ts"

/** A workload as targets name it. */
export type Named = {
  readonly type: { readonly group: string; readonly kind: string }
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly owner: Owner | undefined
}

/** The set of repositories that a spec has for a container: the first that names both its image and its workload. */
export function coverOf(
  { imageSourceReplacements }: AlternateImageSourceSpec,
  workload: Named,
  container: Container,
): Replacement | undefined {
  return imageSourceReplacements.find(
    replacement =>
      replacementOf(container.image, [replacement]) !== undefined &&
      (!replacement.targets || replacement.targets.some(target => isMeant(target, workload, container))),
  )
}

/** Targets that name a workload which is not there. */
export function missingTargets(
  { imageSourceReplacements }: AlternateImageSourceSpec,
  workloads: Iterable<Named>,
): string[] {
  const all = [...workloads]
  const named = imageSourceReplacements.flatMap(({ targets = [] }) =>
    targets.filter(target => target.name !== undefined),
  )
  const missing = named.filter(target => !all.some(workload => isWorkload(target, workload)))
  return [...new Set(missing.map(({ type, name }) => `${kindOf(type.kind)}/${name}`))]
}

const isMeant = (target: Target, workload: Named, { name }: Container) =>
  (target.container === undefined || target.container === name) && isWorkload(target, workload)

function isWorkload({ type, name, labelSelector }: Target, workload: Named): boolean {
  const is = ({ group, kind }: { group: string; kind: string }) =>
    kindOf(type.kind) === kind && (groupOf(type.group) === "" || groupOf(type.group) === group)
  if (is(workload.type)) return labelSelector ? selects(labelSelector, workload.labels) : workload.name === name
  // A custom kind is named for what it owns.
  return name !== undefined && workload.owner !== undefined && is(workload.owner) && workload.owner.name === name
}

/** `Deployments` is how some write it. */
const kindOf = (kind: string) => kind.toLowerCase().replace(/s$/, "")
/** Older tools wrote `apps/v1` there. */
const groupOf = (group: string) => group.split("/")[0]!.toLowerCase()

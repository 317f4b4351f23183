import type { AlternateImageSourceSpec, Replacement, Target } from "#api/v1alpha1/alternateimagesource/index.ts"
import { replacementOf } from "#core/image/equivalent.ts"
import { selects } from "#lib/label-selector.ts"
import type { Container, Owner } from "./facts.ts"

/** A workload as targets name it. */
export type Named = {
  readonly type: { readonly group: string; readonly kind: string }
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly owner: Owner | undefined
}

/** The set of repositories that a spec has for a container: the first that includes both its image and its workload. */
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

const isMeant = (target: Target, workload: Named, { name }: Container) =>
  (target.container === undefined || target.container === name) && isWorkload(target, workload)

function isWorkload(target: Target, workload: Named): boolean {
  if (target.labelSelector) return isSelected(target, workload)
  return target.name !== undefined && placesOf(workload).includes(placeOf(target))
}

/** Whether a workload is of the target's kind and has the labels that the target selects. */
export function isSelected({ type, labelSelector }: Target, { type: { group, kind }, labels }: Named): boolean {
  const isOfKind = kindOf(type.kind) === kindOf(kind) && (groupOf(type.group) === "" || groupOf(type.group) === group)
  return isOfKind && labelSelector !== undefined && selects(labelSelector, labels)
}

/** How a target that gives a name refers to its workload. */
export const placeOf = ({ type, name }: Pick<Target, "type" | "name">) =>
  `${groupOf(type.group)}/${kindOf(type.kind)} ${name}`

/**
 * Every way in which a target may refer to a workload: by its own name and by its owner's, each with and without the
 * group.
 */
export function placesOf({ type, name, owner }: Named): string[] {
  const of = ({ group, kind }: Named["type"], name: string) => [
    `/${kindOf(kind)} ${name}`,
    ...(group ? [`${group}/${kindOf(kind)} ${name}`] : []),
  ]
  // A target may name a custom kind for the workloads that it owns.
  const isOwned = owner !== undefined && kindOf(owner.kind) !== kindOf(type.kind)
  return [...of(type, name), ...(isOwned ? of(owner, owner.name) : [])]
}

/** Some users write `Deployments`. */
export const kindOf = (kind: string) => kind.toLowerCase().replace(/s$/, "")
/** Older tools wrote `apps/v1` there. */
const groupOf = (group: string) => group.split("/")[0]!.toLowerCase()

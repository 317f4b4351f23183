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

const isMeant = (target: Target, workload: Named, { name }: Container) =>
  (target.container === undefined || target.container === name) && isWorkload(target, workload)

function isWorkload(target: Target, workload: Named): boolean {
  if (target.labelSelector) return isSelected(target, workload)
  return target.name !== undefined && placesOf(workload).includes(placeOf(target))
}

/** Whether the labels that a target asks for are those of a workload of its kind. */
export function isSelected({ type, labelSelector }: Target, { type: { group, kind }, labels }: Named): boolean {
  const isOfKind = kindOf(type.kind) === kindOf(kind) && (groupOf(type.group) === "" || groupOf(type.group) === group)
  return isOfKind && labelSelector !== undefined && selects(labelSelector, labels)
}

/** What a target that gives a name calls its workload. */
export const placeOf = ({ type, name }: Pick<Target, "type" | "name">) =>
  `${groupOf(type.group)}/${kindOf(type.kind)} ${name}`

/** Everything that a target may call a workload by: its own name and its owner's, each with and without the group. */
export function placesOf({ type, name, owner }: Named): string[] {
  const of = ({ group, kind }: Named["type"], name: string) => [
    `/${kindOf(kind)} ${name}`,
    ...(group ? [`${group}/${kindOf(kind)} ${name}`] : []),
  ]
  // A custom kind is named for what it owns.
  const isOwned = owner !== undefined && kindOf(owner.kind) !== kindOf(type.kind)
  return [...of(type, name), ...(isOwned ? of(owner, owner.name) : [])]
}

/** `Deployments` is how some write it. */
export const kindOf = (kind: string) => kind.toLowerCase().replace(/s$/, "")
/** Older tools wrote `apps/v1` there. */
const groupOf = (group: string) => group.split("/")[0]!.toLowerCase()

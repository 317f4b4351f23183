import type { Target } from "#api/v1alpha1/serviceimage/index.ts"
import { selects } from "#lib/label-selector.ts"
import type { Member } from "./member.ts"

/** A ServiceImage that may have objects of a kind. */
export type Claimant = {
  readonly name: string
  readonly createdAt: string
  readonly target: Pick<Target, "selector" | "namespaceSelector">
}

/** The labels of a namespace; undefined if there is no such namespace. */
export type LabelsOfNamespace = (name: string) => Readonly<Record<string, string>> | undefined

/** The oldest first. */
export const byPrecedence = (a: Claimant, b: Claimant) => (a.createdAt + a.name < b.createdAt + b.name ? -1 : 1)

/** What excludes an object from the selection: a field of the target, or that it belongs to the run of a Canary. */
export function leftOutBy(
  { selector, namespaceSelector }: Claimant["target"],
  { labels, namespace, isOfRun }: Pick<Member, "labels" | "namespace" | "isOfRun">,
  labelsOf: LabelsOfNamespace,
): "selector" | "namespaceSelector" | "run" | undefined {
  if (isOfRun) return "run"
  if (selector && !selects(selector, labels)) return "selector"
  if (!namespaceSelector || namespace === "") return undefined
  const around = labelsOf(namespace)
  return around !== undefined && selects(namespaceSelector, around) ? undefined : "namespaceSelector"
}

/**
 * The ServiceImage that owns an object. It never alternates: the ServiceImage that stamped the object keeps it as long
 * as it selects it; otherwise the first in the order of precedence owns it.
 */
export function ownerOf<T extends Claimant>(
  claimants: readonly T[],
  member: Pick<Member, "labels" | "namespace" | "decision" | "isOfRun">,
  labelsOf: LabelsOfNamespace,
): T | undefined {
  let first: T | undefined
  for (const claimant of claimants) {
    if (leftOutBy(claimant.target, member, labelsOf)) continue
    if (member.decision?.by === `serviceimage/${claimant.name}`) return claimant
    first ??= claimant
  }
  return first
}

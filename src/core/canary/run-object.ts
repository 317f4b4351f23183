import { namesOf } from "#api/names.ts"
import { fieldOf, type TargetObject, textOf } from "../workloads/object-facts.ts"

/**
 * The Deployment of a run, `<target>-<revision>`, belongs to that run: no other part of aim counts, stamps or holds it,
 * and its pods count as the target's. Its owner reference says so, which only the Canary's controller writes.
 */

const { group, kind } = namesOf("Canary")

/** The Canary that made it. */
export function canaryOf({ metadata }: TargetObject): string | undefined {
  const owners = fieldOf(metadata, "ownerReferences")
  const owner = Array.isArray(owners) ? owners.find(each => fieldOf(each, "controller") === true) : undefined
  const isCanary = fieldOf(owner, "kind") === kind && textOf(fieldOf(owner, "apiVersion")).startsWith(`${group}/`)
  return isCanary ? textOf(fieldOf(owner, "name")) : undefined
}

const revisionLength = 10

/** How the Deployment of a run is called. */
export const trialNameOf = (workload: string, checksum: string): string =>
  `${workload}-${checksum.slice(0, revisionLength)}`

/** The workload whose change a Deployment proves; undefined for all others. */
export function targetOfRun(object: TargetObject): string | undefined {
  const name = textOf(fieldOf(object.metadata, "name"))
  const [, target] = runName.exec(name) ?? []
  return target !== undefined && canaryOf(object) !== undefined ? target : undefined
}

const runName = new RegExp(`^(.+)-[0-9a-f]{${revisionLength}}$`)

/** On the Deployment of a run: its run is over, and its pods go. A label, since a ReplicaSet would inherit an annotation. */
export const endedLabel = `${group}/canary-run-ended`

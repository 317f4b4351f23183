import type { Json } from "#cluster-sim/index.ts"
import type { Run } from "#test/support/record.ts"

// Workloads that are updated in place, read without the code that updates them.

const prefix = "autoimagemanager.io"

const annotationOf = ({ metadata }: Json, name: string): string | undefined =>
  metadata.annotations?.[`${prefix}/${name}`]

const parsed = (text: string | undefined): Json | undefined => {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

export const isHeldInPlace = (workload: Json) => parsed(annotationOf(workload, "held"))?.by === "in-place"

/** What is recorded of the update, on a workload or on a pod. */
export const noteOf = (object: Json) => parsed(annotationOf(object, "in-place"))

export const graceMsOf = (workload: Json) => Number(annotationOf(workload, "in-place-grace-seconds") ?? 0) * 1000

export const isUnverified = (workload: Json) => annotationOf(workload, "in-place-unverified") === "true"

/** The uid of what a pod belongs to in the end. */
export function rootOf(run: Run, object: Json, revision: number): string {
  const owner = object.metadata.ownerReferences?.find((each: Json) => each.controller)
  if (!owner) return object.metadata.uid
  const above = run.commits.findLast(each => each.revision < revision && each.object.metadata.uid === owner.uid)
  return above ? rootOf(run, above.object, revision) : owner.uid
}

/** How many pods of a workload may be down: the smaller of its own number and that of its annotation. */
export function allowanceOf(workload: Json): number {
  const replicas = replicasOf(workload)
  const asked = annotationOf(workload, "in-place-max-unavailable")
  const own = ownAllowance(workload, replicas)
  // What was changed before goes back one by one, also where no pod may be down.
  const least = isHeldInPlace(workload) ? 0 : 1
  if (asked === undefined) return Math.max(own, least)
  const most = share(asked, replicas)
  return Math.max(own === 0 ? most : Math.min(own, most), least)
}

const replicasOf = ({ kind, spec, status }: Json): number =>
  kind === "DaemonSet" ? (status?.desiredNumberScheduled ?? 0) : (spec.replicas ?? 1)

function ownAllowance(workload: Json, replicas: number): number {
  const { kind, spec } = workload
  if (kind !== "Deployment") return setAllowance(workload, replicas)
  const { type, rollingUpdate } = spec.strategy ?? {}
  if (type === "Recreate") return replicas
  const value = String(rollingUpdate?.maxUnavailable ?? "25%")
  if (!value.endsWith("%")) return Math.min(Number(value), replicas)
  return replicas > 1 ? share(value, replicas) : Math.floor(Number.parseInt(value, 10) / 100)
}

/** A StatefulSet rounds down, to at least one pod. A DaemonSet rounds up; under OnDelete its block is in the hold. */
function setAllowance(workload: Json, replicas: number): number {
  const { rollingUpdate } = workload.spec.updateStrategy ?? {}
  const block = rollingUpdate ?? parsed(annotationOf(workload, "held"))?.original?.rollingUpdate
  const value = String(block?.maxUnavailable ?? 1)
  const count = Number.parseInt(value, 10) * (value.endsWith("%") ? replicas / 100 : 1)
  return Math.min(replicas, workload.kind === "StatefulSet" ? Math.max(1, Math.floor(count)) : Math.ceil(count))
}

/** A share above zero is at least one pod. */
function share(value: string, of: number): number {
  const number = Number.parseInt(value, 10)
  if (!value.endsWith("%")) return Math.min(number, of)
  return number === 0 ? 0 : Math.max(1, Math.floor((of * number) / 100))
}

/** How many of so many pods a PodDisruptionBudget wants to be healthy. */
export function protectedBy({ spec }: Json, pods: number): number {
  const amount = (value: unknown) =>
    typeof value === "number" ? value : Math.ceil((pods * Number.parseInt(String(value), 10)) / 100)
  return spec.minAvailable !== undefined ? amount(spec.minAvailable) : pods - amount(spec.maxUnavailable ?? 0)
}

import { holdKinds } from "#core/in-place/hold.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { standingOf } from "#explain/workloads/standing.ts"
import { shortOf } from "#operations/kinds.ts"
import { type KubeObject, type Resource, resourceOf } from "#runtime/resource.ts"
import { shown } from "../text.ts"
import type { WorkloadRow } from "../wire.ts"
import { baseOf, type KindPage } from "./kind.ts"

/** Workloads that are held, by an update in place or by a Canary: the label costs an empty watch where there is none. */
export const workloadPages: KindPage[] = Object.keys(holdKinds).map((kind): KindPage => {
  const resource = resourceOf(workloadKind(kind)!)
  return {
    resource,
    view: "workload",
    short: shortOf(resource),
    actions: [],
    labelSelector: heldMark,
    open: () => ({
      row: object => rowOf(object, resource),
      details: object => ({ workload: { operation: shown(standing(object, resource).operation, 64), pods: [] } }),
    }),
  }
})

const standing = (object: KubeObject, { kind }: Resource) => standingOf({ ...object, kind })

type Template = { spec?: { template?: { spec?: { containers?: readonly { image?: string }[] } } } }

function rowOf(object: KubeObject, resource: Resource): WorkloadRow {
  const { state, reason, message, updated = 0, total } = standing(object, resource)
  const { containers = [] } = (object as Template).spec?.template?.spec ?? {}
  return {
    ...baseOf(object, resource),
    view: "workload",
    attention: state === "Stalled" ? "Act" : state === "RolledBack" ? "Look" : "None",
    state,
    reason: shown(reason, 64),
    message: shown(message),
    progress: { done: updated, total },
    images: shown(containers.map(({ image }) => image).join(", ")),
    strategy: shown(object.metadata.annotations?.[strategyAnnotation], 32),
  }
}

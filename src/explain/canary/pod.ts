import { namesOf } from "#api/names.ts"
import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { targetOfRun } from "#core/canary/run-object.ts"
import { hashLabelOf } from "#core/canary/services.ts"
import { sentence } from "#lib/text.ts"
import { type KubeObject, keyOf, resourceOf } from "#runtime/resource.ts"
import { type Inventory, kindOf } from "../inventory.ts"

/** A pod under a Canary: of which revision it is, and what the run says of that. Nothing for any other pod. */
export function whyPodProven(inventory: Inventory, pod: KubeObject): string[] {
  const target = targetOf(inventory, pod)
  const canary = target && canaryOver(inventory, target, pod.metadata.namespace)
  if (!canary) return []
  const hash = pod.metadata.labels?.[hashLabelOf(canary)] ?? ""
  const title = `canary/${canary.metadata.name}`
  const { run, history = [], phase } = canary.status ?? {}
  const revision = `It is of revision ${hash || "unknown"} of ${target.kind} ${target.name}`
  if (run) {
    const [of, other] = hash === run.target.hash ? [run.target, run.source] : [run.source, run.target]
    const isTarget = of === run.target
    if (hash === of.hash) {
      const share = isTarget ? run.weight : 100 - run.weight
      return [
        isTarget
          ? `${revision}, which run ${run.id} of ${title} proves.`
          : `${revision}, which runs while run ${run.id} of ${title} proves ${other.images[0] ?? other.hash}.`,
        `It and the other pods of its revision have ${share} % of the requests since ${run.weightSince}${isTarget && run.mirrored ? ", and a copy of the others" : ""}.`,
        sentence(`the run is ${phase ?? "new"} (${run.reason}${run.message ? `: ${run.message}` : ""})`),
      ]
    }
    return [`${revision}. Run ${run.id} of ${title} is about the revisions ${run.source.hash} and ${run.target.hash}.`]
  }
  const last = history.find(({ target }) => target.hash === hash)
  const how = last
    ? `Run ${last.id} of ${title} had it proven until ${last.endedAt}: ${last.result} (${last.reason}).`
    : `${title} has not proven it: it ran before, or was rolled out by its own controller.`
  return [`${revision}, and ${title} has no run.`, how]
}

type Target = { readonly kind: string; readonly name: string }

/** The workload whose changes are proven, through the owners of the pod. */
function targetOf(inventory: Inventory, pod: KubeObject): Target | undefined {
  const owner = above(pod)
  if (!owner) return undefined
  if (owner.kind !== "ReplicaSet") return owner
  const { namespace } = pod.metadata
  const at = (kind: string, name: string) =>
    inventory.of({ apiVersion: "apps/v1", kind }).get(keyOf({ namespace, name }))
  const set = at("ReplicaSet", owner.name)
  const deployment = set && above(set)
  if (deployment?.kind !== "Deployment") return undefined
  const object = at("Deployment", deployment.name)
  return { kind: "Deployment", name: (object && targetOfRun(object)) ?? deployment.name }
}

function above({ metadata }: KubeObject): Target | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  return owner && { kind: owner.kind ?? "", name: owner.name ?? "" }
}

function canaryOver(inventory: Inventory, { kind, name }: Target, namespace: string | undefined): Canary | undefined {
  const all = [...inventory.of(kindOf(resourceOf(namesOf("Canary")))).values()] as unknown as Canary[]
  return all.find(
    ({ metadata, spec }) =>
      metadata.namespace === namespace && spec.targetRef.kind === kind && spec.targetRef.name === name,
  )
}

import { canaryHolder, standingHoldOf } from "#core/canary/hold.ts"
import type { Act } from "#core/canary/sight.ts"
import { holdKinds } from "#core/in-place/hold.ts"
import { parseHold } from "#core/in-place/marks.ts"
import { everyOrdinal, heldMark } from "#core/in-place/names.ts"
import type { Instant } from "#lib/instant.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import type { Json } from "../facts.ts"
import type { Seen } from "../observe.ts"
import { pods, setResources } from "../resources.ts"
import type { World } from "../world.ts"
import { type Done, settled, type Write } from "../write.ts"

const stops = {
  StatefulSet: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: everyOrdinal } } },
  DaemonSet: { updateStrategy: { type: "OnDelete" } },
}

/** The writes to a StatefulSet or DaemonSet that is the target; undefined for every other write. */
export function setWrites({ client }: World, seen: Seen, act: Act): (() => Write)[] | undefined {
  const { kind } = seen.sight.canary.spec.targetRef
  const { workload, sets } = seen.objects
  if (!workload || (kind !== "StatefulSet" && kind !== "DaemonSet")) return undefined
  const resource = setResources[kind]
  const { name, namespace } = workload.metadata
  const patch = (body: Json, object: KubeObject = workload) => {
    const conditional = { ...body, metadata: { ...body.metadata, resourceVersion: object.metadata.resourceVersion } }
    return client.patch(resource, { name, namespace }, { type: "merge", body: conditional })
  }
  const one = (body: Json) => [() => ({ resource, send: patch(body) })]
  const { spec, metadata } = workload as Json
  const hold = parseHold(metadata.annotations?.[heldMark])
  switch (act.do) {
    case "partition":
      return one({ spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: act.at } } } })
    case "hold": {
      const original = hold?.original ?? spec.updateStrategy
      const text = standingHoldOf(seen.sight.canary.metadata.name, metadata.generation ?? 0, original)
      return one({
        metadata: { annotations: { [heldMark]: text }, labels: { [heldMark]: canaryHolder } },
        spec: stops[kind],
      })
    }
    case "release": {
      // A strategy that is not the hold any more was written by its owner.
      const given = seen.sight.workload?.isPaused ? holdKinds[kind].released(hold, spec) : {}
      let released: KubeObject = workload
      const first = async () => {
        released = await patch({ metadata: { annotations: { [heldMark]: null } }, spec: given })
        return released
      }
      const last = () => patch({ metadata: { labels: { [heldMark]: null } } }, released)
      return [() => ({ resource, send: first() }), () => ({ resource, send: last() })]
    }
    case "writeBack": {
      const body = [
        { op: "replace", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
        { op: "replace", path: "/spec/template", value: sets.get(act.set)!.template.whole },
      ]
      return [() => ({ resource, send: client.patch(resource, { name, namespace }, { type: "json", body }) })]
    }
    default:
      return undefined
  }
}

const budgetMs = 5000

/** Deletes the very pod that was seen. A ready one only if every PodDisruptionBudget lets it go now. */
export async function deletePod(
  { client, podOf }: World,
  seen: Seen,
  { pod, isReady }: Extract<Act, { do: "deletePod" }>,
  now: Instant,
): Promise<Done> {
  const { namespace } = seen.sight.canary.metadata
  const uid = podOf(keyOf({ namespace, name: pod }))?.uid
  if (uid === undefined) return { lookAgainAt: now }
  if (isReady) {
    const asked = await outcomeOf(client.mayEvict(pods, { name: pod, namespace }))
    const again = settled(asked, now)
    if (again) return again
    if (asked.is === "Written" && asked.object.is === "Spent")
      return {
        lookAgainAt: now + budgetMs,
        refusal: { reason: "BudgetSpent", message: `pod ${pod}: ${asked.object.said}` },
      }
  }
  const gone = client.delete(pods, { name: pod, namespace }, { uid }).catch((error: unknown) => {
    if (!isFailure(error, "NotFound")) throw error
  })
  return settled(await outcomeOf(gone), now) ?? {}
}

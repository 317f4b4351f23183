import { heldMark, inPlaceAnnotation, inPlaceHolder } from "#core/in-place/names.ts"
import { isHeldNow } from "#core/in-place/own-hold.ts"
import type { Instant } from "#lib/instant.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { type KubeObject, nameOf } from "#runtime/resource.ts"
import type { HeldWorkload, World } from "./world.ts"

/**
 * Held workloads that left the watch, by key: they are deleted, or have lost their label. A manifest that replaces a
 * workload does that where no policy puts the marks back.
 */
export type Strays = Map<string, HeldWorkload>

export function openStrays(objects: Cache<Held<HeldWorkload>>): Strays {
  const strays: Strays = new Map()
  objects.subscribe(({ key, before, after }) => {
    if (!after && before && isHeldNow(before.object as never)) strays.set(key, before.object)
    else strays.delete(key)
  })
  return strays
}

const soonMs = 1000

/** The next look, at a workload that has its marks again, ends the update or goes on with it. */
export async function bringBack(
  { client, clock, adapter: { resource }, strays }: Pick<World, "client" | "clock" | "adapter" | "strays">,
  key: string,
): Promise<Instant | undefined> {
  const before = strays.get(key)
  if (!before) return undefined
  const { name, namespace } = nameOf(key)
  const { items } = await client.list(resource, { namespace, fieldSelector: `metadata.name=${name}` })
  const body = marksFor(before, items[0])
  const outcome = body && (await outcomeOf(client.patch(resource, { name, namespace }, { type: "merge", body })))
  if (outcome?.is === "Outdated" || outcome?.is === "Unknown") return clock.now() + soonMs
  strays.delete(key)
  return undefined
}

/** Undefined for a workload that is another one, is going, or was released: a release leaves a note of its own. */
export function marksFor(before: KubeObject, now: KubeObject | undefined): object | undefined {
  if (!now || now.metadata.uid !== before.metadata.uid || now.metadata.deletionTimestamp) return undefined
  const { annotations = {}, labels = {}, resourceVersion } = now.metadata
  const { [heldMark]: held, [inPlaceAnnotation]: note } = before.metadata.annotations ?? {}
  const isReleased = annotations[inPlaceAnnotation] !== undefined && annotations[inPlaceAnnotation] !== note
  if (labels[heldMark] !== undefined || isReleased) return undefined
  return {
    metadata: {
      resourceVersion,
      labels: { [heldMark]: inPlaceHolder },
      annotations: { [heldMark]: held, ...(note !== undefined && { [inPlaceAnnotation]: note }) },
    },
  }
}

import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { Asker } from "./ask.ts"
import type { Group } from "./group.ts"
import type { Snapshot } from "./plan.ts"
import type { Probes } from "./probes.ts"
import type { Sources } from "./sources.ts"
import type { World } from "./world.ts"

/** Everything the plan is made from, at this moment. */
export function observe(
  {
    sources,
    probes,
    holds,
  }: Pick<World, "sources"> & { probes: Pick<Probes, "get">; holds: Pick<World["holds"], "on"> },
  { key, object, now }: Pick<Look<AlternateImageSource, unknown>, "key" | "object" | "now">,
): Snapshot {
  return {
    source: object,
    seen: seenBy(sources, key, object),
    refusal: holds.on(holdName(object), ""),
    probe: (group, image) => probes.get(askerOf(sources, group), image),
    now,
  }
}

function seenBy(sources: Sources, key: string, source: AlternateImageSource): Snapshot["seen"] {
  if (!sources.isReady) return { is: "Listing", forbidden: sources.forbidden }
  return sources.isActive(key) ? { is: "Watched", ...sources.scene(source) } : { is: "TooMany" }
}

/** With the uid: another object of the same name is not on hold. */
export const holdName = ({ metadata: { namespace, name, uid } }: AlternateImageSource) => `${namespace}/${name}/${uid}`

/** Any of the failing pods will do: those of one workload pull with the same credentials. */
export function askerOf(sources: Pick<Sources, "pod">, { failing, workload }: Group): Asker {
  const pod = failing[0] && sources.pod(failing[0].key)
  return pod ?? { namespace: workload.namespace, secrets: [], account: "default" }
}

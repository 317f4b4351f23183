import type { ClusterGroupUpgradeSpec, Reason } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import { nameOf } from "#core/cluster-fleet/delivered.ts"
import { imageFields } from "#core/cluster-fleet/precache-images.ts"
import type { Manifest } from "#core/cluster-fleet/transport.ts"
import { windowProblem } from "#core/cluster-fleet/windows.ts"
import { parseImageReference } from "#core/image/reference.ts"
import type { Instant } from "#lib/instant.ts"

export type Problem = { reason: Reason; message: string }

/** What admission cannot see: the first thing in a spec that cannot be carried out, with what to write instead. */
export function problemIn(
  spec: ClusterGroupUpgradeSpec,
  clusters: readonly string[],
  now: Instant,
): Problem | undefined {
  const missing = spec.remediationStrategy.canaries.find(name => !clusters.includes(name))
  if (missing !== undefined) {
    const message = `spec.remediationStrategy.canaries: ${missing} is not among the selected clusters; select it, or take it off`
    return { reason: "CanaryNotSelected", message }
  }
  for (const list of ["preCaching", "upgrade"] as const)
    for (const [index, window] of spec.windows[list].entries()) {
      const problem = windowProblem(window, now)
      if (problem) return { reason: "InvalidWindow", message: `spec.windows.${list}[${index}]: ${problem}` }
    }
  const names = new Map<string, string>()
  for (const [at, { manifests }] of spec.upgrades.entries())
    for (const [index, manifest] of manifests.entries()) {
      const path = `spec.upgrades[${at}].manifests[${index}]`
      const name = nameOf(manifest as unknown as Manifest)
      const earlier = names.get(name)
      if (earlier !== undefined) {
        const message = `${path}: ${name} is delivered by ${earlier} too; write each object once`
        return { reason: "InvalidManifest", message }
      }
      names.set(name, path)
      for (const { path: field, image } of imageFields(manifest)) {
        const parsed = parseImageReference(image)
        if (!parsed.ok) return { reason: "InvalidImage", message: `${path}.${field.join(".")}: ${parsed.error}` }
      }
    }
  return undefined
}

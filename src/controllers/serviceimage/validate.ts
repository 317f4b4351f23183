import type { Reason, ServiceImageSpec } from "#api/v1alpha1/serviceimage/index.ts"
import { effectiveTiers } from "#core/fleet/tiers.ts"
import { parseImageReference } from "#core/image/reference.ts"
import { isHoldable } from "#core/in-place/own-hold.ts"
import { healthProblem, pathsProblem } from "#core/workloads/target-reader.ts"

/**
 * Why a spec cannot be carried out, in a sentence that names the field. The schema refuses most of these specs. But the
 * server may have stored the object before a rule existed, and some rules cannot be stated in a schema.
 */
export function findProblem(spec: ServiceImageSpec): { reason: Reason; message: string } | undefined {
  const { image, health, kind } = spec.target
  const only = isHoldable(kind) ? undefined : spec.tiers.find(tier => tier.updateStrategy === "InPlaceOnly")
  if (only) return { reason: "NotInPlace", message: notInPlace(only.upgradeTier, kind) }
  const unreadable = health === "" ? undefined : healthProblem(health)
  if (unreadable) return { reason: "InvalidHealth", message: `spec.target.health: ${unreadable}` }
  const misplaced = image.paths && pathsProblem(image.paths)
  if (misplaced) return { reason: "InvalidTarget", message: `spec.target.image.paths: ${misplaced}` }
  const tiers = effectiveTiers(spec)
  if (new Set(tiers.map(tier => tier.name)).size < tiers.length)
    return { reason: "InvalidTiers", message: "two entries of spec.tiers have the same upgradeTier" }
  if (!spec.analysisNamespace && tiers.some(({ analysis }) => analysis))
    return { reason: "InvalidTiers", message: `spec.analysisNamespace: ${noNamespace}` }
  for (const { name, image } of tiers) {
    const field = spec.tiers.some(tier => tier.upgradeTier === name && tier.image)
      ? `the image of tier "${name}"`
      : "spec.defaultImage"
    const parsed = parseImageReference(image)
    if (!parsed.ok) return { reason: "InvalidImage", message: `${field}: ${parsed.error}` }
  }
  return undefined
}

const noNamespace =
  "a tier has an analysis: write the namespace whose MetricTemplates and Secrets it names, and on whose behalf it is asked"

/** With InPlaceIfPossible such objects are updated by their own controllers. A spec that forbids that is refused. */
const notInPlace = (tier: string, kind: string) =>
  `the updateStrategy of tier "${tier}" is InPlaceOnly, and ${kind} is not updated in place: write InPlaceIfPossible or Recreate, or leave it out`

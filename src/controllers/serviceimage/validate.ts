import type { Reason, ServiceImageSpec } from "#api/v1alpha1/serviceimage/index.ts"
import { effectiveTiers } from "#core/fleet/tiers.ts"
import { parseImageReference } from "#core/image/reference.ts"
import { healthProblem, pathsProblem } from "#core/workloads/target-reader.ts"

/**
 * Why a spec cannot be carried out, in a sentence that names the field. The schema refuses most of these specs. But the
 * server may have stored the object before a rule existed, and some rules cannot be stated in a schema.
 */
export function findProblem(spec: ServiceImageSpec): { reason: Reason; message: string } | undefined {
  const unsupported = findUnsupported(spec)
  if (unsupported) return { reason: "NotSupported", message: unsupported }
  const { image, health } = spec.target
  const unreadable = health === "" ? undefined : healthProblem(health)
  if (unreadable) return { reason: "InvalidHealth", message: `spec.target.health: ${unreadable}` }
  const misplaced = image.paths && pathsProblem(image.paths)
  if (misplaced) return { reason: "InvalidTarget", message: `spec.target.image.paths: ${misplaced}` }
  const tiers = effectiveTiers(spec)
  if (new Set(tiers.map(tier => tier.name)).size < tiers.length)
    return { reason: "InvalidTiers", message: "two entries of spec.tiers have the same upgradeTier" }
  for (const { name, image } of tiers) {
    const field = spec.tiers.some(tier => tier.upgradeTier === name && tier.image)
      ? `the image of tier "${name}"`
      : "spec.defaultImage"
    const parsed = parseImageReference(image)
    if (!parsed.ok) return { reason: "InvalidImage", message: `${field}: ${parsed.error}` }
  }
  return undefined
}

/**
 * Fields that are part of the API and that this version does not act on yet. Ignoring them would be worse than
 * refusing: a spec that asks for pods to keep running must not start a rollout that replaces them.
 */
const findUnsupported = ({ tiers }: ServiceImageSpec): string | undefined =>
  tiers.some(tier => tier.updateStrategy)
    ? "this version does not act on spec.tiers[].updateStrategy yet; leave it out"
    : undefined

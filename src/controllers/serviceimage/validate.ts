import type { Reason, ServiceImageSpec } from "#api/v1alpha1/serviceimage/index.ts"
import { parseImageReference } from "#core/image-reference.ts"
import { effectiveTiers } from "#core/tiers.ts"

/**
 * What makes a spec impossible to carry out, in a sentence that names the field. The schema refuses most of it already;
 * the server may have stored the object before a rule existed, and some rules no schema can state.
 */
export function findProblem(spec: ServiceImageSpec): { reason: Reason; message: string } | undefined {
  const unsupported = findUnsupported(spec)
  if (unsupported) return { reason: "NotSupported", message: unsupported }
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
 * Fields that are part of the API and that this version does not act on yet. Ignoring them would be worse than refusing:
 * who asks for 1 % of the customers first must not get all of them.
 */
function findUnsupported({
  target,
  tiers,
  onFailure,
  resolveDigest,
  preCache,
  serialize,
}: ServiceImageSpec): string | undefined {
  const paths = target.image.paths ?? []
  const found = [
    target.apiVersion.startsWith("apps/") && "spec.target.kind (only kinds that follow the ImageSpec contract)",
    (paths.length !== 1 || paths[0] !== "spec.image") && "spec.target.image (only paths: [spec.image])",
    target.health !== "" && "spec.target.health",
    tiers.some(tier => tier.steps?.length) && "spec.tiers[].steps",
    tiers.some(tier => tier.failureBudget !== undefined) && "spec.tiers[].failureBudget",
    tiers.some(tier => tier.requireApproval) && "spec.tiers[].requireApproval",
    tiers.some(tier => tier.updateStrategy) && "spec.tiers[].updateStrategy",
    onFailure !== "Halt" && "spec.onFailure: Rollback",
    resolveDigest !== "Never" && "spec.resolveDigest: AtStart",
    preCache !== "Never" && "spec.preCache: BeforeTier",
    serialize === "Enforce" && "spec.serialize: Enforce",
  ].filter(each => each !== false && each !== undefined)
  return found.length > 0 ? `this version does not act on ${found.join(", ")} yet; leave it out` : undefined
}

import { type Reason, retryAnnotation, type ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { parseImageReference, pinned } from "#core/image-reference.ts"
import { type Pins, recordedOperation } from "#core/operation.ts"
import { effectiveTiers } from "#core/tiers.ts"
import type { Instant } from "#lib/instant.ts"
import type { Failure, RegistryClient } from "#registry/index.ts"

/** Digests of the images that an operation is to begin with, or what keeps it from beginning. */
export type Pinning = { pins: Pins; problem?: { reason: Reason; message: string; retryAt: Instant } }

const retryMs = 30_000
const none: Pinning = { pins: new Map() }

/**
 * With `resolveDigest: AtStart`, what the tags mean at this moment. Asked once, before the operation is recorded: from
 * then on every tier gets the same bits, whatever is pushed under the tag. What was found is kept while others fail.
 */
export async function pin(
  serviceImage: ServiceImage,
  registry: Pick<RegistryClient, "resolve"> | undefined,
  before: Pinning | undefined,
  now: Instant,
): Promise<Pinning> {
  if (serviceImage.spec.resolveDigest !== "AtStart" || !begins(serviceImage)) return none
  if (before?.problem && before.problem.retryAt > now) return before
  const pins = new Map(before?.pins)
  let problem: Pinning["problem"]
  for (const image of new Set(effectiveTiers(serviceImage.spec).map(tier => tier.image))) {
    const parsed = parseImageReference(image)
    if (pins.has(image) || !parsed.ok || parsed.reference.digest) continue
    const found = registry ? await registry.resolve(parsed.reference) : noRegistry
    if (found.ok) pins.set(image, pinned(image, found.digest))
    else {
      const message = `resolveDigest is AtStart, and ${image} has no digest: ${found.message}`
      problem ??= { reason: "ImageNotResolved", message, retryAt: now + Math.max(retryMs, found.retryAfterMs ?? 0) }
    }
  }
  return { pins, ...(problem && { problem }) }
}

const noRegistry: Failure = { ok: false, class: "Unreachable", message: "this controller does not ask registries" }

function begins(serviceImage: ServiceImage): boolean {
  const recorded = recordedOperation(serviceImage)
  return (
    !recorded ||
    (recorded.phase === "RolledBack" && serviceImage.metadata.annotations?.[retryAnnotation] === recorded.id)
  )
}

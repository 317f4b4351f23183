import { type Reason, retryAnnotation, type ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { recordedOperation } from "#core/fleet/operation.ts"
import { effectiveTiers } from "#core/fleet/tiers.ts"
import { parseImageReference, pinned } from "#core/image/reference.ts"
import type { Instant } from "#lib/instant.ts"
import type { Failure, RegistryClient, Resolution } from "#registry/index.ts"
import type { Clock } from "#runtime/clock.ts"

/** Digests of the images that an operation starts with, or the problem that keeps it from starting. */
export type Pinning = {
  readonly pins: Map<string, string>
  readonly failed: Map<string, { message: string; retryAt: Instant }>
  /** Images that a registry is being asked about. */
  readonly asking: Set<string>
  problem?: { reason: Reason; message: string; retryAt: Instant } | undefined
  /** An answer is still missing. The operation cannot start, and there is nothing to report yet. */
  isOpen: boolean
}

type Means = {
  registry: Pick<RegistryClient, "resolve"> | undefined
  clock: Clock
  signal?: AbortSignal
  /** Called for every answer, when it arrives. */
  onAnswer: () => void
}

const retryMs = 30_000

const newPinning = (): Pinning => ({ pins: new Map(), failed: new Map(), asking: new Set(), isOpen: false })

/**
 * With `resolveDigest: AtStart`, the digests of the tags at this moment. Registries are asked once, before the
 * operation is recorded: from then on every tier gets the same image, whatever is pushed under the tag. Digests that
 * were found are kept while others fail.
 *
 * Registries are asked in the background, all images side by side: a registry that hangs must not occupy the workers
 * that other ServiceImages need.
 */
export function pin(serviceImage: ServiceImage, before: Pinning | undefined, means: Means): Pinning {
  if (serviceImage.spec.resolveDigest !== "AtStart" || !begins(serviceImage)) return newPinning()
  const pinning = before ?? newPinning()
  const { pins, failed, asking } = pinning
  const now = means.clock.now()
  const wanted = [...new Set(effectiveTiers(serviceImage.spec).map(tier => tier.image))].filter(hasNoDigest)
  for (const image of wanted) {
    const isLater = (failed.get(image)?.retryAt ?? now) > now
    if (!pins.has(image) && !asking.has(image) && !isLater) ask(image, serviceImage.metadata.name, pinning, means)
  }
  const failure = wanted.map(image => failed.get(image)).find(found => found !== undefined)
  pinning.problem = failure && { reason: "ImageNotResolved", ...failure }
  pinning.isOpen = !failure && wanted.some(image => asking.has(image))
  return pinning
}

function ask(image: string, name: string, { pins, failed, asking }: Pinning, means: Means): void {
  const { registry, clock, signal, onAnswer } = means
  const parsed = parseImageReference(image)
  if (!parsed.ok) return // the spec is refused for it
  const fail = ({ message, retryAfterMs = 0 }: Failure) =>
    failed.set(image, {
      message: `resolveDigest is AtStart, and ${image} has no digest: ${message}`,
      retryAt: clock.now() + Math.max(retryMs, retryAfterMs),
    })
  if (!registry) {
    fail(noRegistry)
    return
  }
  const answered = (found: Resolution) => {
    failed.delete(image)
    if (found.ok) pins.set(image, pinned(image, found.digest))
    else fail(found)
  }
  asking.add(image)
  // A failure stays reported while the registry is asked again.
  const last = failed.get(image)
  if (last) failed.set(image, { ...last, retryAt: clock.now() + retryMs })
  registry
    .resolve(parsed.reference, { tenant: `serviceimage/${name}`, ...(signal && { signal }) })
    .then(answered, () => {}) // the process ends
    .finally(() => {
      asking.delete(image)
      onAnswer()
    })
}

const noRegistry: Failure = { ok: false, class: "Unreachable", message: "this controller does not ask registries" }

function hasNoDigest(image: string): boolean {
  const parsed = parseImageReference(image)
  return parsed.ok && parsed.reference.digest === undefined
}

function begins(serviceImage: ServiceImage): boolean {
  const recorded = recordedOperation(serviceImage)
  return (
    !recorded ||
    (recorded.phase === "RolledBack" && serviceImage.metadata.annotations?.[retryAnnotation] === recorded.id)
  )
}

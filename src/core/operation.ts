import {
  type HistoryEntry,
  maxHistory,
  maxHistoryImageCharacters,
  type Operation,
  type ServiceImage,
} from "#api/v1alpha1/serviceimage/index.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { sameImage } from "./image-reference.ts"
import { effectiveTiers } from "./tiers.ts"

/**
 * The operation an object's spec asks for: the recorded one as long as the images of all tiers are those it was started
 * for, else a new one. So pausing, pacing or relabelling starts nothing, and a new image starts everything again.
 */
export function currentOperation({ metadata, spec, status }: ServiceImage, now: Instant): Operation {
  const images = Object.fromEntries(effectiveTiers(spec).map(({ name, image }) => [name, image]))
  const recorded = status?.operation
  if (recorded && haveSameImages(recorded.images, images)) return recorded
  const nothing = { total: 0, upToDate: 0, failed: 0 }
  return { id: `g${metadata.generation ?? 0}`, startedAt: formatInstant(now), images, phase: "InProgress", ...nothing }
}

function haveSameImages(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every(name => name in b && sameImage(a[name]!, b[name]!))
}

/** The history once `ended` is over, the newest first. The oldest go without their images when these get long. */
export function recordOperation(history: readonly HistoryEntry[], ended: HistoryEntry): HistoryEntry[] {
  let characters = 0
  return [ended, ...history].slice(0, maxHistory).map(entry => {
    for (const [tier, image] of Object.entries(entry.images)) characters += tier.length + image.length
    return characters <= maxHistoryImageCharacters ? entry : { ...entry, images: {} }
  })
}

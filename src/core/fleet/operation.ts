import {
  type HistoryEntry,
  maxHistory,
  maxHistoryImageCharacters,
  type Operation,
  retryAnnotation,
  rollbackAnnotation,
  type ServiceImage,
} from "#api/v1alpha1/serviceimage/index.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { ownValue } from "#lib/own.ts"
import { isPinOf, sameImage } from "../image/reference.ts"
import { lastChangeOf } from "../workloads/field-owner.ts"
import type { FleetHistory, FleetRules } from "./judge-object.ts"
import { effectiveTiers } from "./tiers.ts"

/** Digests found for the images of a spec: `repo:tag` → `repo:tag@sha256:…`. */
export type Pins = ReadonlyMap<string, string>

/**
 * The operation an object's spec asks for: the recorded one as long as the images of all tiers are those it was started
 * for, else a new one. So pausing, pacing or relabelling starts nothing, and a new image starts everything again.
 */
export function currentOperation(serviceImage: ServiceImage, now: Instant, pins: Pins = new Map()): Operation {
  const { metadata, spec, status } = serviceImage
  const recorded = recordedOperation(serviceImage)
  const { [rollbackAnnotation]: rollback, [retryAnnotation]: retry } = metadata.annotations ?? {}
  const isRetried = recorded?.phase === "RolledBack" && retry === recorded.id
  if (recorded && !isRetried) {
    const isTakenBack = rollback === recorded.id && recorded.phase !== "RolledBack"
    return isTakenBack
      ? { ...recorded, phase: "RollingBack", cause: recorded.cause ?? "requested by aim rollback" }
      : recorded
  }
  const images = Object.fromEntries(effectiveTiers(spec).map(({ name, image }) => [name, pins.get(image) ?? image]))
  const id = isRetried ? nextTry(recorded.id) : `g${metadata.generation ?? 0}`
  const nothing = { total: 0, upToDate: 0, failed: 0 }
  // A generation that comes back to an image it had before must not take up the approvals of that time.
  const isUsed = [status?.operation, ...(status?.history ?? [])].some(entry => entry?.id === id)
  return { id: isUsed ? nextTry(id) : id, startedAt: formatInstant(now), images, phase: "InProgress", ...nothing }
}

/** The operation of the status, if it is what the spec still asks for. */
export function recordedOperation({ spec, status }: ServiceImage): Operation | undefined {
  const recorded = status?.operation
  const wanted = Object.fromEntries(effectiveTiers(spec).map(({ name, image }) => [name, image]))
  return recorded && haveSameImages(recorded.images, wanted) ? recorded : undefined
}

function haveSameImages(recorded: Record<string, string>, wanted: Record<string, string>): boolean {
  const names = Object.keys(recorded)
  const isSame = (a: string, b: string) => sameImage(a, b) || isPinOf(a, b)
  return (
    names.length === Object.keys(wanted).length &&
    names.every(name => Object.hasOwn(wanted, name) && isSame(recorded[name]!, wanted[name]!))
  )
}

/** `g5` → `g5_2` → `g5_3`. */
function nextTry(id: string): string {
  const [base = id, attempt = "1"] = id.split("_")
  return `${base}_${Number.parseInt(attempt, 10) + 1}`
}

/** Is it under way, so that a change of images would interrupt it? An unobserved generation counts as under way. */
export function isInProgress({ metadata, status }: Pick<ServiceImage, "metadata" | "status">): boolean {
  if ((status?.observedGeneration ?? 0) < (metadata.generation ?? 0)) return true
  return status?.operation?.phase === "InProgress" || status?.operation?.phase === "RollingBack"
}

/** What the status says of the running operation. An earlier process may have written it. */
export function historyOf(
  { metadata, status }: ServiceImage,
  { operation, tiers }: Pick<FleetRules, "operation" | "tiers">,
): FleetHistory {
  if (status?.operation?.id !== operation) return {}
  const completedAt = new Map<string, Instant>()
  for (const { upgradeTier, newDeploymentImage, conditions } of status.tierStatus ?? []) {
    const rule = tiers.find(({ name }) => name === upgradeTier)
    const complete = conditions.find(({ type }) => type === "Complete")
    const at = complete?.status === "True" ? parseInstant(complete.lastTransitionTime) : undefined
    if (rule && at !== undefined && sameImage(newDeploymentImage, rule.image)) completedAt.set(upgradeTier, at)
  }
  return { completedAt, ...(status.operation.failed === 0 && { cleanAt: lastChangeOf(metadata, "status") }) }
}

/** The image that last proved itself in a tier, before the present operation. */
export function lastGoodImage(history: readonly HistoryEntry[], tier: string): string | undefined {
  const proven = history.find(({ phase, images }) => phase === "Complete" && ownValue(images, tier))
  return ownValue(proven?.images, tier)
}

/** The history after `ended`, the newest first. The oldest entries lose their images when these get long. */
export function recordOperation(history: readonly HistoryEntry[], ended: HistoryEntry): HistoryEntry[] {
  let characters = 0
  return [ended, ...history].slice(0, maxHistory).map(entry => {
    for (const [tier, image] of Object.entries(entry.images)) characters += tier.length + image.length
    return characters <= maxHistoryImageCharacters ? entry : { ...entry, images: {} }
  })
}

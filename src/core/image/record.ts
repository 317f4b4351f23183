import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"

/** The annotation with the last image decision, on every object we change. The change and it are one request. */
export const decisionAnnotation = "autoimagemanager.io/last-decision"

export type ImageRecord = {
  from: string
  /** The image of each path, where they did not all have `from`: taking the decision back restores each of them. */
  was?: Readonly<Record<string, string>>
  to: string
  reason: string
  operation: string
  /** The object that decided, e.g. `serviceimage/dicom-prod`. */
  by: string
  /** Its uid. Missing where an earlier version decided. */
  uid?: string
  at: Instant
  /** The tier that it was stamped in, where tiers wait for their images. */
  tier?: string
  /** It had been available before this decision. Kept for kinds whose status does not remember it. */
  wasDeployed?: true
  /** The revision of its template before, where these have names: pods that were made from it carry that name. */
  revision?: string
}

export const formatDecision = (decision: ImageRecord) => JSON.stringify({ ...decision, at: formatInstant(decision.at) })

/** Undefined unless it is complete: the annotation belongs to the object's owner and may hold any text. */
export function parseDecision(text: unknown): ImageRecord | undefined {
  if (typeof text !== "string" || text.length > decisionLengthMax) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== "object" || value === null) return undefined
  const {
    from,
    to,
    reason,
    operation,
    by,
    uid,
    at: written,
    was,
    tier,
    wasDeployed,
    revision,
  } = value as Record<string, unknown>
  const at = parseInstant(written)
  if (at === undefined) return undefined
  for (const word of [from, to, reason, operation, by]) if (typeof word !== "string") return undefined
  if (uid !== undefined && typeof uid !== "string") return undefined
  if (was !== undefined && !isImagesByPath(was)) return undefined
  return {
    from,
    ...(was && { was: imagesByName(was) }),
    to,
    reason,
    operation,
    by,
    ...(uid !== undefined && { uid }),
    at,
    ...(typeof tier === "string" && { tier }),
    ...(wasDeployed === true && { wasDeployed }),
    ...(typeof revision === "string" && { revision }),
  } as ImageRecord
}

/** The decision of an AlternateImageSource to switch the repository. Others write the same annotation. */
export function parseFailover(text: unknown): ImageRecord | undefined {
  const decision = parseDecision(text)
  return decision?.by.startsWith("alternateimagesource/") ? decision : undefined
}

/** Users choose the names, so the result has no prototype: a name must not find what JavaScript objects inherit. */
export const imagesByName = (images: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.assign(Object.create(null), images)

/** What the image goes back to when a decision is taken back: one for all paths, or each its own. */
export const imagesBefore = ({ from, was }: ImageRecord) => was ?? from

/** Room for sixteen paths of 256 characters with the longest images. */
const decisionLengthMax = 16_384
const pathsMost = 16

function isImagesByPath(value: unknown): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false
  const images = Object.values(value)
  return images.length <= pathsMost && images.every(image => typeof image === "string")
}

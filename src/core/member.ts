import { type Instant, parseInstant } from "#lib/instant.ts"
import { type Decision, decisionAnnotation, parseDecision } from "./decision.ts"

/** One object of the fleet, reduced to what a rollout decides by. */
export type Member = {
  readonly resourceVersion: string
  readonly uid: string
  readonly namespace: string // "" if cluster-scoped
  readonly labels: Readonly<Record<string, string>>
  readonly createdAt: Instant
  readonly isDeleting: boolean
  /** As it stands in the spec; "" if none was ever given. */
  readonly image: string
  /** `manuallySpecifiedImage`: its owner keeps the image, hands off. */
  readonly isUnmanaged: boolean
  /** `failureHaltsUpdate`: if it fails, nobody after it is touched. */
  readonly haltsOnFailure: boolean
  /** Every pod runs the spec, said about this very generation. */
  readonly isUpToDate: boolean
  /** Was available at least once. */
  readonly isDeployed: boolean
  readonly decision: Decision | undefined
}

type Json = Record<string, unknown>

/** Reads an object that follows the ImageSpec contract. What its owner wrote is hostile: every field is checked. */
export function readMember(object: { metadata: object }): Member {
  const metadata = object.metadata as Json
  const { spec, status } = object as { spec?: Json; status?: Json }
  const annotations = (metadata.annotations ?? {}) as Json
  const generation = wholeNumber(metadata.generation) ?? 0
  return {
    resourceVersion: text(metadata.resourceVersion),
    uid: text(metadata.uid),
    namespace: text(metadata.namespace),
    labels: (metadata.labels ?? {}) as Record<string, string>,
    createdAt: parseInstant(metadata.creationTimestamp) ?? 0,
    isDeleting: metadata.deletionTimestamp !== undefined,
    image: text(spec?.image),
    isUnmanaged: spec?.manuallySpecifiedImage === true,
    haltsOnFailure: spec?.failureHaltsUpdate === true,
    isUpToDate: isTrueNow(status, "UpToDate", generation),
    isDeployed: condition(status, "Deployed")?.status === "True",
    decision: parseDecision(annotations[decisionAnnotation]),
  }
}

/**
 * A condition counts only when both the status and the condition itself speak of the present generation. Believing an
 * older "healthy" is how later waves overtake earlier ones (argo-cd#29410).
 */
function isTrueNow(status: Json | undefined, type: string, generation: number): boolean {
  if ((wholeNumber(status?.observedGeneration) ?? -1) < generation) return false
  const found = condition(status, type)
  return found?.status === "True" && (wholeNumber(found.observedGeneration) ?? generation) >= generation
}

function condition(status: Json | undefined, type: string): Json | undefined {
  const conditions = status?.conditions
  return Array.isArray(conditions) ? conditions.find(each => each?.type === type) : undefined
}

const text = (value: unknown) => (typeof value === "string" ? value : "")
const wholeNumber = (value: unknown) => (Number.isInteger(value) ? (value as number) : undefined)

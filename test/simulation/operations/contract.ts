import type { Json } from "#cluster-sim/index.ts"
import { sameImage } from "../invariants/images.ts"
import { isTrue, ownerOf as ownerOfSelecting, selects, timeOf } from "../invariants/reading.ts"

// What a spec says and what an object reports, read from the pages of the kind with no code of the product.

export const secondMs = 1000

export type Tier = {
  name: string
  image: string
  priority: number
  deadlineMs: number
  settleMs: number
  maxConcurrent: number | string | undefined
  requireApproval: boolean
  /** The last one takes in all. */
  steps: { percent: number; soakMs: number }[]
}

export const isOfInterest = ({ kind }: Json) => ["ServiceImage", "Dicom", "Deployment"].includes(kind)
export const idOf = ({ kind, metadata }: Json) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`

export const imageOf = ({ spec }: Json): string => spec.template?.spec?.containers?.[0]?.image ?? spec.image ?? ""

export function isUpToDate({ kind, metadata, spec, status = {} }: Json): boolean {
  if (!((status.observedGeneration ?? 0) >= metadata.generation)) return false
  if (kind === "Deployment")
    return ["replicas", "updatedReplicas", "availableReplicas"].every(
      name => (status[name] ?? 0) === (spec.replicas ?? 1),
    )
  const condition = status.conditions?.find((each: Json) => each.type === "UpToDate")
  return condition?.status === "True" && (condition.observedGeneration ?? metadata.generation) >= metadata.generation
}

export const isDeployed = (object: Json): boolean =>
  object.kind === "Deployment"
    ? (object.status?.availableReplicas ?? 0) > 0 || isUpToDate(object)
    : isTrue(object.status, "Deployed")

export const isCountedIn = ({ status }: Json, object: Json) =>
  timeOf(object.metadata.creationTimestamp) <= timeOf(status?.operation?.startedAt) || isDeployed(object)

export function tiersOf({ spec }: Json): Tier[] {
  const tiers: Json[] = spec.tiers ?? []
  const list = tiers.map(tier => {
    const steps = (tier.steps ?? []).map((step: Json) => ({
      percent: step.percent,
      soakMs: (step.soakSeconds ?? 0) * secondMs,
    }))
    return {
      name: tier.upgradeTier ?? "",
      image: tier.image || spec.defaultImage,
      priority: tier.priority ?? 0,
      deadlineMs: (tier.progressDeadlineSeconds ?? 600) * secondMs,
      settleMs: (tier.settleSeconds ?? 10) * secondMs,
      maxConcurrent: tier.maxConcurrent,
      requireApproval: tier.requireApproval === true,
      steps: steps.at(-1)?.percent === 100 ? steps : [...steps, { percent: 100, soakMs: 0 }],
    }
  })
  if (!spec.defaultImage || list.some(({ name }) => name === "")) return list
  const last = {
    name: "",
    image: spec.defaultImage,
    priority: Math.min(0, ...list.map(({ priority }) => priority - 1)),
    deadlineMs: 600 * secondMs,
    settleMs: 10 * secondMs,
    maxConcurrent: undefined,
    requireApproval: false,
    steps: [{ percent: 100, soakMs: 0 }],
  }
  return [...list, last]
}

/** The tier that its label names, else the tier "". */
export function tierOf(serviceImage: Json, { metadata }: Json): Tier | undefined {
  const label = metadata.labels?.["upgrade-tier"] ?? ""
  const tiers = tiersOf(serviceImage)
  return tiers.find(({ name }) => name === label) ?? tiers.find(({ name }) => name === "")
}

export const tierStatusOf = ({ status }: Json, { name }: Tier): Json | undefined =>
  status?.tierStatus?.find((each: Json) => each.upgradeTier === name)

export const isSaidComplete = (serviceImage: Json, tier: Tier) => {
  const said = tierStatusOf(serviceImage, tier)
  return isTrue(said, "Complete") && sameImage(said!.newDeploymentImage, tier.image)
}
export const isReopened = (said: Json | undefined) =>
  said?.conditions?.some((each: Json) => each.reason === "TierReopened") === true
/** Approvals and steps are behind it: it was complete with this image, and some object has another one again. */
export const wasComplete = (serviceImage: Json, tier: Tier) =>
  isSaidComplete(serviceImage, tier) || isReopened(tierStatusOf(serviceImage, tier))

export const ownerOf = (all: readonly Json[], object: Json): Json | undefined =>
  ownerOfSelecting(
    all.filter(each => selects(each, object)),
    object,
  )

/** A number; or a share rounded down, at least one. */
export const countOf = (value: number | string, total: number): number =>
  typeof value === "number" ? value : Math.max(1, Math.floor((Number.parseInt(value, 10) * total) / 100))

/** FNV-1a with the finaliser of MurmurHash3, of the ServiceImage's name and the object's uid: decision 9. */
export function placeOf({ metadata }: Json, object: Json): number {
  let hash = 0x811c9dc5n
  for (const byte of Buffer.from(`serviceimage/${metadata.name}/${object.metadata.uid}`))
    hash = ((hash ^ BigInt(byte)) * 0x01000193n) & 0xffffffffn
  hash = ((hash ^ (hash >> 16n)) * 0x85ebca6bn) & 0xffffffffn
  hash = ((hash ^ (hash >> 13n)) * 0xc2b2ae35n) & 0xffffffffn
  return Number(hash ^ (hash >> 16n))
}

import type { Json } from "#cluster-sim/index.ts"
import type { Instant } from "#lib/instant.ts"
import { sameImage } from "./images.ts"
import { between, idOf, imageIn, isManaged, keyOf, type Reading, type Stamp, tierOf, timeOf } from "./reading.ts"

// S17 for ServiceImages, read from what was committed and from the calls that the runtimes answered.

/** How old a picture may be where nothing delays it. */
const usualLagMs = 10_000

/**
 * The first object of a tier is stamped only after the runtime of each node that its pods run on has shown the image,
 * in this operation. Where the spec says Proceed, the time for that may be over instead.
 */
export function unprovenTiers(reading: Reading): string[] {
  const { stamps, run } = reading
  if ((run.calls ?? []).length === 0) return []
  return firstOfTiers(stamps).flatMap(stamp => {
    const { source, sent, commit } = stamp
    const { spec, status } = source!.serviceImage
    const endsAt = timeOf(status.priorityStartedAt) + (spec.preCacheTimeoutSeconds ?? 1800) * 1000
    if (spec.preCacheMissing === "Proceed" && sent.at >= endsAt) return []
    const image = imageIn(source!.serviceImage, sent.body!)
    return [...nodesOf(reading, stamp)].flatMap(([node, uids]) =>
      uids.some(uid => isShown(reading, stamp, { uid, image }))
        ? []
        : [`${keyOf(commit.object)} at ${commit.revision}: ${image} was not shown on ${node}`],
    )
  })
}

/** Those that nothing of their tier was stamped before, in the same operation. A tier that is reopened had its turn. */
function firstOfTiers(stamps: readonly Stamp[]): Stamp[] {
  const begun = new Set<string>()
  return stamps.filter(({ source, decision, before }) => {
    const tier = source && tierOf(source.serviceImage, before)
    if (!tier || decision.reason !== "Stamped") return false
    const id = JSON.stringify([decision.uid, decision.operation, tier.upgradeTier])
    const isFirst = !begun.has(id)
    begun.add(id)
    const { spec, status } = source.serviceImage
    const told = status.tierStatus.find((each: Json) => each.upgradeTier === tier.upgradeTier)
    const isReopened = told?.conditions.some((each: Json) => each.reason === "TierReopened")
    return isFirst && spec.preCache === "BeforeTier" && !isReopened
  })
}

/**
 * Where the pods of the tier's objects run, with the uids that each node had. What came or went within the time may not
 * have been known.
 */
function nodesOf(reading: Reading, stamp: Stamp): Map<string, string[]> {
  const { lives, run } = reading
  const { serviceImage, commit } = stamp.source!
  const { upgradeTier } = tierOf(serviceImage, stamp.before)!
  const decidedAt = run.sent.find(({ revision }) => revision === commit.revision)?.at ?? commit.at
  const from: Instant = Math.min(decidedAt, stamp.sent.at) - run.lagMs - usualLagMs
  const statesOf = (id: string) => between(lives.get(id) ?? [], from, stamp.sent.after + 1)
  const isOfTier = (state: Json | undefined) =>
    state !== undefined && isManaged(serviceImage, state) && tierOf(serviceImage, state)?.upgradeTier === upgradeTier
  const nodes = new Map<string, string[]>()
  for (const id of lives.keys()) {
    if (!id.startsWith("v1 Pod ")) continue
    const states = statesOf(id)
    const pod = states.at(-1)
    if (!pod || !states.every(isRunning)) continue
    const root = rootOf(lives, pod)
    if (!root || !statesOf(root).every(isOfTier)) continue
    const known = statesOf(`v1 Node /${pod.spec.nodeName}`)
    if (known.every(node => node !== undefined))
      nodes.set(
        pod.spec.nodeName,
        known.map(node => node!.metadata.uid),
      )
  }
  return nodes
}

const isRunning = (pod: Json | undefined) =>
  pod?.spec.nodeName !== undefined &&
  pod.metadata.deletionTimestamp === undefined &&
  !["Succeeded", "Failed"].includes(pod.status?.phase)

/** The id of what a pod belongs to in the end, along controller references. */
function rootOf(lives: Reading["lives"], object: Json): string | undefined {
  const owner = object.metadata.ownerReferences?.find((each: Json) => each.controller)
  if (!owner) return idOf(object)
  const { apiVersion, kind, name, uid } = owner
  const id = idOf({ apiVersion, kind, metadata: { name, namespace: object.metadata.namespace } })
  const above = lives.get(id)?.findLast(state => state.object?.metadata.uid === uid)?.object
  return above && rootOf(lives, above)
}

/** The node's runtime was asked for this very image since the operation began, and had it. */
function isShown({ run }: Reading, { source, sent }: Stamp, { uid, image }: { uid: string; image: string }): boolean {
  const startedAt = timeOf(source!.serviceImage.status.operation.startedAt)
  return run.calls!.some(
    ({ method, nodeUid, subject, imageId, at, endedAfter = Infinity }) =>
      method === "imageStatus" &&
      nodeUid === uid &&
      imageId !== undefined &&
      sameImage(subject, image) &&
      at >= startedAt &&
      endedAfter <= sent.after,
  )
}

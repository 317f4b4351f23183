import type { NodeImage, NodeImageStatus } from "#api/v1alpha1/nodeimage/index.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Plan, Snapshot } from "./plan.ts"
import { statusOf } from "./report.ts"
import type { World } from "./world.ts"

export type Done = {
  /** The status that is due. */
  readonly status?: NodeImageStatus
  readonly lookAgainAt?: Instant | undefined
}

const followMs = 5000

/** Starts and ends pulls, which go on in the background; an ended one wakes the node's key. */
export async function apply(
  { book, flights, key, about, metrics }: World,
  { wanted, now }: Snapshot,
  { states, starts, cancels }: Plan,
  { object }: Look<NodeImage, undefined>,
): Promise<Done> {
  for (const id of cancels) flights.cancel(id)
  book.set(states)
  for (const each of starts) flights.begin(each, nodeUidOf(object))
  metrics.looked(states, flights.all.size)
  const told = { publicKey: key.publicKey, ...(about !== undefined && { runtime: about }) }
  const status = statusOf(object, { wanted, states }, told, id => flights.fetched(id), now)
  const dueAt = book.dueAt(object.status, status, now)
  const followAt = flights.all.size > 0 ? now + followMs : undefined
  if (dueAt === undefined || dueAt > now) return { lookAgainAt: earliest(dueAt, followAt) }
  return { status, lookAgainAt: followAt }
}

/** The node that the NodeImage was made for. */
const nodeUidOf = ({ metadata }: Pick<KubeObject, "metadata">) =>
  metadata.ownerReferences?.find(({ kind }) => kind === "Node")?.uid ?? ""

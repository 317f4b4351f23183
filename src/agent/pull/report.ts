import type { NodeImage, NodeImageStatus, Reason, TagStatus } from "#api/v1alpha1/nodeimage/index.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { counted } from "#lib/text.ts"
import { conditionWriter } from "#runtime/conditions.ts"
import { isEnded, type TagState, type Wanted } from "./state.ts"
import { type Fetched, percentOf } from "./transfers.ts"

/** The status is written no more often. */
const reportMs = 5000

type Told = { wanted: readonly Wanted[]; states: ReadonlyMap<string, TagState> }
type About = Pick<NodeImageStatus, "publicKey" | "runtime">

/** The whole status, from how it stands with each image. */
export function statusOf(
  { metadata, status }: NodeImage,
  { wanted, states }: Told,
  about: About,
  fetchedOf: (id: string) => Fetched | undefined,
  now: Instant,
): NodeImageStatus {
  const count = (phase: TagState["phase"]) => wanted.filter(({ id }) => states.get(id)!.phase === phase).length
  const [desired, succeeded, failed] = [wanted.length, count("Succeeded"), count("Failed")]
  const write = conditionWriter<NodeImageStatus["conditions"][number]>(metadata.generation ?? 0, now)
  const standing = `${succeeded} of ${counted(desired, "image")} are there`
  const reason: Reason = failed > 0 ? "PullFailed" : succeeded < desired ? "Pulling" : "Present"
  const imageStatuses: NodeImageStatus["imageStatuses"] = {}
  for (const { id, name } of wanted) {
    const { retryAt: _, ...state } = states.get(id)!
    const tag: TagStatus = state.phase === "Pulling" ? { ...state, ...progressOf(fetchedOf(id)) } : state
    imageStatuses[name] = { tags: [...(imageStatuses[name]?.tags ?? []), tag] }
  }
  return {
    ...about,
    observedGeneration: metadata.generation ?? 0,
    conditions: [
      write(status?.conditions, "Ready", reason === "Present", reason, standing),
      failed > 0
        ? write(status?.conditions, "Stalled", true, "PullFailed", `${counted(failed, "image")} could not be pulled`)
        : write(status?.conditions, "Stalled", false, "NothingToDo", ""),
    ],
    desired,
    succeeded,
    failed,
    pulling: count("Pulling"),
    waiting: count("Waiting"),
    ...firstSyncOf(status, { desired, succeeded, failed, standing }, now),
    imageStatuses,
  }
}

function progressOf(fetched: Fetched | undefined): Pick<TagStatus, "progress" | "transfer"> {
  if (!fetched) return {}
  const progress = percentOf(fetched)
  return { ...(progress !== undefined && { progress }), transfer: fetched }
}

/** Written once: a node that joins is ready for its pods from then on. */
function firstSyncOf(
  before: NodeImageStatus | undefined,
  { desired, succeeded, failed, standing }: { desired: number; succeeded: number; failed: number; standing: string },
  now: Instant,
): Pick<NodeImageStatus, "firstSyncStatus"> {
  if (before?.firstSyncStatus) return { firstSyncStatus: before.firstSyncStatus }
  if (desired === 0 || succeeded + failed < desired) return {}
  return {
    firstSyncStatus: { syncAt: formatInstant(now), status: failed > 0 ? "Failed" : "Succeeded", message: standing },
  }
}

/**
 * When a changed status is due. The end of a pull is news; its beginning can wait until it is clear that it lasts, so
 * that a short pull costs one write.
 */
export function dueAt(
  before: NodeImageStatus | undefined,
  after: NodeImageStatus,
  { reportedAt, changedAt }: { reportedAt: Instant; changedAt: Instant },
): Instant {
  const known = new Set(endsIn(before?.imageStatuses))
  const isNews = before?.publicKey !== after.publicKey || endsIn(after.imageStatuses).some(end => !known.has(end))
  return Math.max(reportedAt + reportMs, isNews ? changedAt : changedAt + reportMs)
}

/** Ended pulls. An image that is not asked for any more is no news. */
const endsIn = (statuses: NodeImageStatus["imageStatuses"] = {}) =>
  Object.entries(statuses).flatMap(([name, { tags }]) =>
    tags.filter(isEnded).map(({ tag, version, phase }) => `${name}:${tag} ${version} ${phase}`),
  )

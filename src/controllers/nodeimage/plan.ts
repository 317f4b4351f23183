import type { PullJob } from "#core/pulls/board.ts"
import { type Entry, isFinished, type NodeFacts, type NodeImageFacts } from "#core/pulls/node-facts.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import type { Ended } from "./ended.ts"

/** Everything a decision about one node is made from. */
export type Snapshot = {
  readonly node: string
  readonly facts: NodeFacts
  readonly nodeImage: NodeImageFacts | undefined
  /** Every job is known, so that an owner which is not known is gone. */
  readonly isListed: boolean
  /** Jobs that were decided to begin on this node. */
  readonly starting: readonly PullJob[]
  /** Entries of no job with a time to live whose pull has ended. */
  readonly ended: readonly Ended[]
  readonly isWanted: (uid: string, entry: Pick<Entry, "name" | "tag">) => boolean
  readonly now: Instant
}

export type Plan = {
  readonly do: "nothing" | "create" | "delete" | "edit"
  /** Jobs whose entry is added, or whose credentials are sealed anew. */
  readonly jobs: readonly Pick<PullJob, "uid" | "key">[]
  /** Entries whose time to live is over. */
  readonly expired?: readonly Ended[]
  readonly lookAgainAt?: Instant | undefined
}

const goesAt = ({ seenAt, ttlSeconds }: Ended) => seenAt + ttlSeconds * 1000

const nothing: Plan = { do: "nothing", jobs: [] }

/**
 * Decides what is to be written for one node: at most one write, with all that has changed. Entries that are over and
 * that nothing wants any more go with the next write; they alone are not worth one.
 */
export function plan({ facts, nodeImage, isListed, starting, ended, isWanted, now }: Snapshot): Plan {
  if (facts.isWindows) return nothing
  if (!nodeImage) return { do: "create", jobs: [] }
  // The node was replaced under its name: nothing that was said of the old one holds.
  if (nodeImage.nodeUid !== facts.uid) return { do: "delete", jobs: [] }
  if (!isListed) return nothing
  const { entries, publicKey } = nodeImage
  const stale = entries
    .filter(entry => !isFinished(entry))
    .flatMap(({ sealed }) => sealed.filter(({ key }) => key !== publicKey && publicKey !== ""))
    .map(({ job }) => ({ uid: job, key: "" }))
  const isUnwanted = entries.some(entry => !isFinished(entry) && entry.owners.some(uid => !isWanted(uid, entry)))
  const isSealed = entries.some(entry => isFinished(entry) && entry.sealed.length > 0)
  const jobs = [...starting, ...stale.filter(({ uid }) => !starting.some(job => job.uid === uid))]
  const expired = ended.filter(entry => goesAt(entry) <= now)
  const lookAgainAt = earliest(...ended.map(goesAt).filter(at => at > now))
  const isEdit = jobs.length > 0 || isUnwanted || isSealed || expired.length > 0
  return isEdit ? { do: "edit", jobs, expired, lookAgainAt } : { ...nothing, lookAgainAt }
}

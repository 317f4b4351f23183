import type { Instant } from "#lib/instant.ts"

/**
 * Why a request got no answer of a version. `NoRoute`: the gateway serves no rule for it. `NoBackend`: the rule names
 * no Service that is there. `NoCluster`: the gateway does not know that Service yet, or not any more. `NoEndpoint`: no
 * ready pod stands behind the Service. `Refused`: the pod is gone, and what divides requests has not noticed yet. `Cut`:
 * the pod ended while it worked on the request. `TimedOut`: by the route.
 */
export type Why = "NoRoute" | "NoBackend" | "NoCluster" | "NoEndpoint" | "Refused" | "Cut" | "TimedOut"

/** One request that failed, and not because a version answered so. */
export type Failure = {
  readonly at: Instant
  readonly clients: string
  readonly why: Why
  readonly pod?: string
  readonly revision?: string
}

export type Count = {
  /** Answers that reached a client. */
  requests: number
  /** Those of them with which the version itself says that it failed (500). */
  errors: number
  /** Copies, whose answers reach no client. */
  mirrored: number
}

export type TrafficRecord = {
  readonly requests: number
  readonly errors: number
  /** Requests that no version answered: in a good rollout there are none. The first thousand of them. */
  readonly failures: readonly Failure[]
  readonly failed: number
  /** By the revision's hash label, or the image of a pod without one. */
  readonly byRevision: Readonly<Record<string, Count>>
  /** By the pod's UID. */
  readonly byPod: Readonly<Record<string, Count>>
  /** Percent of the answered requests that this revision answered. */
  share(revision: string): number
}

export type Ledger = {
  answered(pod: { uid: string; revision: string }, kind: keyof Count): void
  failed(failure: Failure): void
  read(): TrafficRecord
}

const keptFailures = 1000

export function createLedger(): Ledger {
  const byRevision = new Map<string, Count>()
  const byPod = new Map<string, Count>()
  const failures: Failure[] = []
  let failed = 0
  let requests = 0
  let errors = 0
  const countOf = (counts: Map<string, Count>, key: string): Count => {
    const count = counts.get(key) ?? { requests: 0, errors: 0, mirrored: 0 }
    counts.set(key, count)
    return count
  }
  return {
    answered({ uid, revision }, kind) {
      countOf(byRevision, revision)[kind]++
      countOf(byPod, uid)[kind]++
      if (kind === "requests") requests++
      if (kind === "errors") errors++
    },
    failed(failure) {
      failed++
      if (failures.length < keptFailures) failures.push(failure)
    },
    read() {
      const copied = (counts: Map<string, Count>) =>
        Object.fromEntries([...counts].map(([key, count]) => [key, { ...count }]))
      const revisions = copied(byRevision)
      return {
        ...{ requests, errors, failed, failures: [...failures] },
        byRevision: revisions,
        byPod: copied(byPod),
        share: revision => (requests === 0 ? 0 : (100 * (revisions[revision]?.requests ?? 0)) / requests),
      }
    },
  }
}

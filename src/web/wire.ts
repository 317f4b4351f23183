/**
 * What the dashboard's server and its page say to each other: types only, and all that the page imports of the server.
 * Every text in it is bounded and passed `printable`; the page shows it as text. Times are milliseconds since 1970 by
 * the cluster's clock, which in a demo runs faster than the wall clock: see `Tick`.
 *
 *   POST api/session   SessionRequest → Session       no session header yet
 *   GET  api/stream    → Frame, one JSON text a line  one for each browser
 *   POST api/watch     WatchRequest → {}              what the stream shows from now on, whole, for all tabs together
 *   POST api/why       WhyRequest → Why
 *   POST api/preview   ActionRequest → Preview        decides and dry-runs; writes nothing
 *   POST api/act       ActRequest → Acted
 *
 * Addresses are relative to the page's base. Each answer other than 2xx has an `ErrorAnswer` as its body.
 */

import type { ActionName, ActionState, ObjectId, Why } from "./wire-actions.ts"

export type * from "./wire-actions.ts"

/** The header of every request but the first. Its value is `Session.session`. */
export type SessionHeader = "x-aim-session"

/**
 * `key`: from the fragment of the address, `#key=…`, good once and for 60 s. `token`: a bearer token that the user
 * typed; accepted over TLS alone. Neither: a proxy in front sends the token.
 */
export type SessionRequest = { key?: string; token?: string }

export type Session = {
  /** Kept in the origin's storage and sent as a header. It ends with the process. */
  session: string
  /** `aim` or `kubectl aim`, for the commands that are shown. */
  program: string
  version: string
  /** The API server, as the kubeconfig names it, and the user, as far as known. */
  cluster: string
  user: string
  /** False: nothing can be changed, whatever the user's rights are; the sentence says how to change that. */
  operates: boolean
  whyNot: string
  kinds: KindInfo[]
}

/** What is shown of a kind. The page picks a folder of `kinds/` by `view`. */
export type View = "rollout" | "source" | "canary" | "workload" | "pull" | "recreate" | "plain"

export type KindInfo = {
  /** The plural, which also stands in addresses: `serviceimages`. */
  id: string
  kind: string
  /** What a command calls it: `si`. */
  short: string
  isNamespaced: boolean
  view: View
  actions: ActionName[]
}

/** All lists, or one object with all its details. */
export type Page = { page: "overview" } | ({ page: "details" } & ObjectId)

/** Replaces what this stream showed until now. A page that goes away and comes back within 60 s is cheap. */
export type WatchRequest = { stream: string; pages: Page[] }

/** The clock of the cluster: at `time` it ran `speed` times as fast as the wall clock. */
export type Tick = { time: number; speed: number }

/**
 * `hello` comes first and `tick` at least every five seconds. `whole` brings everything of a feed, `change` what is
 * different since the last frame of that feed. `gone`: the feed ended, because no page of the stream wants it any more.
 */
export type Frame =
  | ({ type: "hello"; stream: string } & Tick)
  | ({ type: "tick" } & Tick)
  | ({ type: "whole" } & Whole)
  | ({ type: "change" } & Change)
  | { type: "gone"; feed: string }
  /** The session is over, with the sentence for the user; no further frame follows. */
  | { type: "end"; message: string }

/** `list/serviceimages`, or `details/canaries/shop/web`, with an empty namespace `details/serviceimages//web`. Lists have rows, details have a document and maybe cells. */
export type Whole = {
  feed: string
  head: FeedHead
  rows?: Row[]
  details?: Details
  cells?: Cells
}

/** Only what is different. Rows replace those of the same id; each part of the details that is present replaces that part. */
export type Change = {
  feed: string
  head?: FeedHead
  rows?: Row[]
  removed?: string[]
  details?: Partial<Details>
  cells?: CellChange
}

/** What a feed shows, and how well. */
export type FeedHead = {
  /** False until the first list was read. */
  isReady: boolean
  /** What the viewer sees: all namespaces, some, or none. The sentence is for the user; empty where nothing is left out. */
  scope: "All" | "Some" | "None"
  namespaces: string[]
  scopeMessage: string
  /** Something is wrong: the picture stays as it was. */
  problem?: Problem
  /** Of details: the object was deleted; what follows is its last state. */
  isDeleted?: boolean
}

export type Problem = {
  /** `NotInstalled`: the cluster does not serve the kind, and `command` installs it. `NotFound`: `meant` may be what was meant. */
  reason: "NotInstalled" | "Forbidden" | "Unreachable" | "NotFound" | "Unreadable" | "Other"
  message: string
  command?: string
  meant?: string
}

/** How much an object needs a person, the most first: `Act`: halted, stalled or awaiting approval. `Look`: degraded or rolled back. */
export type Attention = "Act" | "Look" | "None"

export type RowBase = ObjectId & {
  /** `namespace/name`, or the name alone. With the kind it is unique. */
  id: string
  attention: Attention
  /** A word: of the kind's own vocabulary where it has one, else of `Standing`. */
  state: string
  reason: string
  message: string
  createdAt?: number
  since?: number
  /** The object cannot be read: this says why, and other fields are empty. */
  unreadable?: string
}

export type Row = RolloutRow | SourceRow | CanaryRow | WorkloadRow | PullRow | RecreateRow | PlainRow

/** Done of all, with the rate of the last minutes where it is more than a guess, and the CLI's words for both. */
export type Progress = { done: number; total: number; rate?: Rate }
export type Rate = { perMinute: number; words: string; msLeft?: number; leftWords?: string }

export type RolloutState =
  | "NotSeenYet"
  | "Waiting"
  | "InProgress"
  | "Paused"
  | "Halted"
  | "Stalled"
  | "Degraded"
  | "Complete"
  | "RollingBack"
  | "RolledBack"

export type RolloutRow = RowBase & {
  view: "rollout"
  state: RolloutState
  /** The kind of its objects. */
  target: string
  image: string
  progress: Progress
  tiers: number
  currentPriority: number
  awaitsApproval: boolean
  operation: string
  startedAt?: number
  endedAt?: number
}

export type StandingState = "NotSeenYet" | "Stalled" | "Ready" | "NotReady"

/** An AlternateImageSource. */
export type SourceRow = RowBase & {
  view: "source"
  state: StandingState
  containers: number
  /** Containers that run from elsewhere, and that cannot be pulled from where their workload says. */
  switched: number
  incidents: number
  lastSwitchAt?: number
}

export type CanaryRow = RowBase & {
  view: "canary"
  state: StandingState
  phase: string
  target: string
  /** Percent of the requests that the new revision gets. */
  weight: number
  failedChecks: number
  threshold: number
  images: { from: string; to: string }
  awaitsApproval: boolean
}

/** A Deployment, StatefulSet or DaemonSet that says how it is updated in place, or is held. */
export type WorkloadRow = RowBase & {
  view: "workload"
  state: "NotSeenYet" | "InProgress" | "Waiting" | "Paused" | "Stalled" | "RolledBack" | "Complete"
  progress: Progress
  images: string
  strategy: string
}

/** ImagePullJob, ImageListPullJob and NodeImage. */
export type PullRow = RowBase & {
  view: "pull"
  state: StandingState
  progress: Progress
  failed: number
  image: string
  fetched: string
}

/** ContainerRecreateRequest. */
export type RecreateRow = RowBase & {
  view: "recreate"
  state: StandingState
  pod: string
  node: string
  containers: string[]
}

/** Any other kind, by its conditions; `cells` are the columns of `aim get`. */
export type PlainRow = RowBase & {
  view: "plain"
  state: StandingState
  cells: { head: string; text: string }[]
}

/** The row again, what it may do, and what its kind has to show. Parts are replaced whole. */
export type Details = {
  row: Row
  actions: ActionState[]
  conditions: ConditionShown[]
  /** `aim why` of the object itself, or nothing yet. */
  why?: Why
  rollout?: RolloutDetails
  source?: SourceDetails
  canary?: CanaryDetails
  workload?: WorkloadDetails
  pull?: PullDetails
  recreate?: RecreateDetails
  history?: HistoryEntry[]
}

export type ConditionShown = { type: string; status: string; reason: string; message: string; since?: number }

export type RolloutDetails = {
  /** In the order of the rollout: the highest priority first. Tiers of one priority run together. */
  lanes: Lane[]
  /** Objects that belong to no tier; pods on nodes that no longer answer. */
  unmatched: number
  lostPods: number
  isPaused: boolean
  operation?: { id: string; phase: string; startedAt?: number; endedAt?: number; cause?: string }
  /** Why nothing is known about single objects, where that is so: the map is absent then. */
  mapMissing?: string
}

export type LaneState = "Complete" | "InProgress" | "Waiting" | "Halted"

export type Lane = {
  /** "" is the default tier; `title` is what to show. */
  tier: string
  title: string
  priority: number
  image: string
  /** How `set-image` names it: `TIER=`, or "" where it follows the default image. */
  setting?: string
  /** What new objects get; during a rollback, what the others return to. */
  proven: string
  state: LaneState
  total: number
  updated: number
  upToDate: number
  unmanaged: number
  ignoredFailures: number
  isCurrent: boolean
  steps: StepShown[]
  soaksUntil?: number
  approval: "NotNeeded" | "Needed" | "Awaited" | "Approved"
  analysis?: { verdict: string; message: string; failedChecks: number }
  rate?: Rate
  failures: FailureShown[]
  /** What it waits for or why it stopped, in the planner's words. */
  reason: string
  message: string
}

/** The share of the tier that the step takes in, and how many objects that are, where they are known. */
export type StepShown = {
  percent: number
  soakSeconds: number
  state: "Done" | "Current" | "Later"
  cohort?: { total: number; done: number; failed: number }
}

export type FailureShown = {
  reason: string
  /** What the reason means, from the vocabulary of the kind. */
  meaning: string
  scope: "All" | "Partial"
  count: number
  /** The words of the server or of the pod about the first example. */
  message: string
  /** As namespace/name; each has a `why`. */
  examples: string[]
}

/** The states of a cell, by number. `Gone` keeps the place of an object that was deleted; it is not drawn. */
export type CellState =
  | "Gone"
  | "UpToDate"
  | "Settling"
  | "Updating"
  | "Waiting"
  | "Blank"
  | "Failing"
  | "Failed"
  | "Regressed"
  | "Unmanaged"
  | "Unmatched"

/**
 * One cell for each object. Column by column, as thousands come at once: object i is
 * `namespaces[namespace[i]]/names[i]`, of `tiers[tier[i]]`, in `states[state[i]]`. The place of an object stays while
 * the feed lives. `counts` are by `states`.
 */
export type Cells = {
  kind: string
  states: CellState[]
  tiers: string[]
  namespaces: string[]
  names: string[]
  namespace: number[]
  tier: number[]
  state: number[]
  counts: number[]
}

/** `added` continues the columns. `moved`: places that have another state now, each as the distance from the one before. */
export type CellChange = {
  tiers?: string[]
  namespaces?: string[]
  added?: Pick<Cells, "names" | "namespace" | "tier" | "state">
  moved?: { state: number; places: number[] }[]
  /** An object went to another tier: place and tier. */
  retiered?: [number, number][]
  counts: number[]
}

/** Incidents of an AlternateImageSource. */
export type SourceDetails = {
  repositories: { equivalent: string[] }[]
  /** Containers that do not run as their workload says, and those that cannot be pulled. */
  containers: {
    workload: string
    container: string
    /** Where its image comes from now. */
    from: string
    incident?: {
      since?: number
      reason: string
      image: string
      failing: string
      working: string
      bad: string[]
      attempts: number
      tryAgainAt?: number
      healthySince?: number
    }
  }[]
  switches: {
    at?: number
    workload: string
    container: string
    from: string
    to: string
    reason: string
    pods?: number
  }[]
}

export type CanaryDetails = {
  phase: string
  run?: {
    id: string
    startedAt?: number
    source: { hash: string; image: string; pods: number }
    target: { hash: string; image: string; pods: number }
    full: number
    weight: number
    weightSince?: number
    next?: number
    isMirrored: boolean
    iterations: number
    failedChecks: number
    threshold: number
    metrics: { name: string; verdict: string; value: string; message: string; count: number; at?: number }[]
    gates: { type: string; name: string; state: string; message: string; approvedBy: string; since?: number }[]
  }
  /** Weight and metrics as seen while the feed lives, the oldest first, at most 600; `metric` is "" for the weight. */
  curves: { metric: string; at: number[]; value: number[] }[]
}

export type WorkloadDetails = {
  operation: string
  pods: {
    name: string
    node: string
    isReady: boolean
    state: string
    why: string
    images: string[]
    changedAt?: number
  }[]
}

export type PullDetails = {
  nodes: { name: string; state: string; message: string }[]
  images: { image: string; state: string; message: string }[]
}

export type RecreateDetails = { containers: { name: string; phase: string; message: string }[] }

/** An operation of a ServiceImage, or a run of a Canary: the newest first. */
export type HistoryEntry = {
  id: string
  outcome: string
  startedAt?: number
  endedAt?: number
  isRunning: boolean
  total: number
  upToDate: number
  failed: number
  cause: string
  /** By tier, or by container. */
  images: { of: string; image: string }[]
  /** Against the entry before it in time. */
  differences: { of: string; from: string; to: string; parts: ("Repository" | "Tag" | "Digest")[] }[]
  /** The command that sets these images again, where there is one. */
  command?: string
}

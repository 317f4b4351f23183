import type { Canary, Webhook } from "#api/v1alpha1/canary/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { ConfigsNamed } from "./config-refs.ts"
import type { ScalerKind, ScalerSeen } from "./scaler.ts"
import type { Check } from "./tally.ts"

/** What is seen of a Canary and of everything around it. A decision is made from this and from nothing else. */

/** The user's workload. */
export type WorkloadSeen = {
  readonly name: string
  readonly uid: string
  /** How many pods it wants. */
  readonly size: number
  readonly generation: number
  /** Its controller has seen this generation. */
  readonly isObserved: boolean
  readonly isPaused: boolean
  /** Our marks are on it. Standing: it stays paused between runs, because no policy holds it. */
  readonly hold?: { readonly isStanding: boolean } | undefined
  /** Another part of aim has it, or is asked to: in a sentence with the remedy. */
  readonly otherHolder?: string | undefined
  /** Of its template. */
  readonly checksum: string
  readonly configs?: ConfigsNamed | undefined
  readonly images: readonly string[]
  /** The revision that its controller has counted last. */
  readonly revision: number
  readonly updated: number
}

/** A ReplicaSet. */
export type SetSeen = {
  readonly name: string
  readonly owner: "user" | "trial" | "other"
  /** The label that its pods have. */
  readonly hash: string
  readonly checksum: string
  readonly configs?: ConfigsNamed | undefined
  readonly images: readonly string[]
  /** How many pods it wants. */
  readonly size: number
  /** How many of them are ready. */
  readonly ready: number
  readonly revision: number
  /** The workload that has it, where each revision has one of its own. */
  readonly workload?: string | undefined
}

/** The workload of one revision of a component. */
export type RevisionSeen = {
  readonly name: string
  readonly hash: string
  /** How many pods it is given, and how many of them are ready. */
  readonly size: number
  readonly ready: number
  /** An autoscaler scales it, and to no fewer pods than these. */
  readonly scaler?: { readonly least: number } | undefined
  /** Its pods do not come: no node or no quota has room for them, or they are ill. */
  readonly isTroubled: boolean
}

/** A component of OAM, whose revisions each have a workload. */
export type ComponentSeen = {
  /** The one that answers; absent where it is gone, or where the target is the only one. */
  readonly source?: RevisionSeen | undefined
  /** The new one: that of the run, or that which the Canary names. */
  readonly target?: RevisionSeen | undefined
  /** Nothing of the component has answered yet. */
  readonly isFirst: boolean
}

/** A pod of a StatefulSet or DaemonSet. */
export type SetPod = {
  readonly name: string
  /** The revision that it is of. */
  readonly hash: string
  /** Of a StatefulSet. */
  readonly ordinal: number
  readonly isReady: boolean
  readonly isGoing: boolean
}

/** A StatefulSet or DaemonSet, whose pods are of several revisions. */
export type SetOfPods = {
  readonly pods: readonly SetPod[]
  /** How many may be down at once by its own strategy; at least one. */
  readonly maxUnavailable: number
  /** Of a StatefulSet: pods from this place on are of the template. The first ordinal is `start`. */
  readonly partition: number
  readonly start: number
  /** Its controller counts every pod as one of the template. */
  readonly isSettled: boolean
}

/** A number of pods, or a share of those that are expected: `2`, `"50%"`. */
export type Amount = number | string

export type Count = { readonly there: number; readonly ready: number }

/** A PodDisruptionBudget over pods of the Canary. Pods that are on their way out do not count. */
export type BudgetSeen = {
  readonly name: string
  readonly minAvailable?: Amount | undefined
  readonly maxUnavailable?: Amount | undefined
  /** How many pods its controller expects. */
  readonly expected: number
  /** Everything that it selects, of whatever workload. */
  readonly all: Count
  /** Of those the pods of the Canary's own revisions. */
  readonly own: Readonly<Record<string, Count>>
}

/** The Deployment of the run. */
export type TrialSeen = {
  readonly name: string
  /** It was made for this Canary. */
  readonly isOurs: boolean
  readonly isGoing: boolean
  readonly size: number
  readonly checksum: string
  readonly isPaused: boolean
  readonly isPauseSeen: boolean
  /** It says that its run is over. */
  readonly isEnded?: boolean | undefined
}

/** A Service of one side: which pods it selects, and how many ready endpoints it has of each revision. */
export type ServiceSeen = { readonly hash: string; readonly ready: Readonly<Record<string, number>> }

export type RouteSeen = {
  /** Undefined where our backends do not stand in it, or where it is not there. */
  readonly split?: { readonly weight: number; readonly isMirrored: boolean } | undefined
  readonly isAccepted: boolean
  readonly why: string
  /** Requests pass to our backends, or back, in stages. */
  readonly isUnderWay?: boolean | undefined
}

/** What is wrong with pods of the new revision. Fatal: it does not pass by itself. */
export type TroubleSeen = {
  readonly reason: "CrashLoop" | "ImageUnavailable" | "Unhealthy" | "Unschedulable" | "QuotaExceeded"
  readonly message: string
  readonly isFatal: boolean
  /** When it becomes fatal if it stays. */
  readonly fatalAt?: Instant | undefined
}

/** What keeps the Canary from being carried out at all. */
export type Problem = { readonly reason: ProblemReason; readonly message: string }
export type ProblemReason =
  | "NotSupported"
  | "FeatureMissing"
  | "InvalidSpec"
  | "InvalidQuery"
  | "WeightNotPossible"
  | "WorkloadMissing"
  | "RouteMissing"
  | "Conflict"
  | "NameTaken"

/**
 * A ConfigMap or Secret. Ignored: its owner wants it to be left out. Unread: not known yet; Unreadable: the server refuses
 * or does not answer.
 */
export type ConfigRead = { readonly checksum: string } | "Missing" | "Ignored" | "NotGranted" | "Unread" | "Unreadable"

/** What is seen of ConfigMaps and Secrets, by `configmap/NAME` and `secret/NAME`. */
export type ConfigsSeen = {
  readonly read: (key: string) => ConfigRead
  /** A policy lets new pods read snapshots; undefined: not known yet. */
  readonly takesSnapshots?: boolean | undefined
  /** Taken: another object has the name. */
  readonly snapshot: (key: string, checksum: string) => "There" | "None" | "Taken" | "Unread"
  /** Those of this Canary, whether a pod names them, and the object that they go with. */
  readonly snapshots: readonly { readonly name: string; readonly isRead: boolean; readonly owner: string }[]
  /** The checksum that the workload's template has with another mark. */
  readonly checksumWith: (mark: string) => string
}

export type HookAnswer = {
  readonly yes: boolean
  readonly why: string
  readonly at: Instant
  /** The call was never made, which says nothing about the new revision. */
  readonly isUncalled?: true
}

/** A call that a decision lacks. */
export type HookAsk = { readonly hook: Webhook; readonly round: number; readonly phase: string }

/** What a decision lacks: the checks of a round, and answers of hooks. */
export type Asks = {
  readonly round?: { readonly number: number; readonly atThisWeightMs: number } | undefined
  readonly hooks: readonly HookAsk[]
}

export type Sight = {
  readonly canary: Canary
  readonly now: Instant
  readonly problem?: Problem | undefined
  readonly hasFinalizer: boolean
  readonly workload?: WorkloadSeen | undefined
  /** The ReplicaSets of the workload and of the run. */
  readonly sets: readonly SetSeen[]
  readonly trial?: TrialSeen | undefined
  /** Where both revisions share the pods of one workload. */
  readonly set?: SetOfPods | undefined
  /** Where each revision has a workload of its own. */
  readonly component?: ComponentSeen | undefined
  readonly trouble?: TroubleSeen | undefined
  /** Absent for a target without a template. */
  readonly configs?: ConfigsSeen | undefined
  /** What scales the workload, or did when it was held. */
  readonly scalers?: readonly ScalerSeen[] | undefined
  /** PodDisruptionBudgets over its pods. They are counted only where pods are about to go. */
  readonly budgets?: (() => readonly BudgetSeen[]) | undefined
  /** The autoscaler that the spec names is not there: in a sentence. */
  readonly scalerMissing?: string | undefined
  readonly services: {
    readonly source?: ServiceSeen | undefined
    readonly target?: ServiceSeen | undefined
    /** All three are there, and are as they are to be when they select these. */
    readonly areMade: (hashes: { readonly source: string; readonly target?: string | undefined }) => boolean
  }
  readonly route: RouteSeen
  /** The route is the selector of a Service: both sides of one hash are the same. */
  readonly routesBySelector: boolean
  /** A policy holds the workload in its owner's own write; undefined: it was not tried yet. */
  readonly policyHolds?: boolean | undefined
  /** Services and route are as they are left when the Canary goes. */
  readonly isLeft: boolean
  /** The route is as it is left, and what serves it has not taken it over yet. */
  readonly isRouteGoing?: boolean | undefined
  readonly checks?: readonly Check[] | undefined
  readonly answers: ReadonlyMap<string, HookAnswer>
}

export const answerKey = ({ hook, round }: Pick<HookAsk, "hook" | "round">): string =>
  JSON.stringify([hook.type || "rollout", hook.name, hook.url, round])

/** The next single write. Each is conditional on what was seen. */
export type Act =
  | { readonly do: "addFinalizer" | "removeFinalizer" }
  /** Makes or mends the Services, with the pods that they select now, or those given. */
  | { readonly do: "services"; readonly source: string; readonly target?: string | undefined }
  /** The Service of one side, which gets no requests, selects another revision. */
  | { readonly do: "turn"; readonly side: "source" | "target"; readonly hash: string }
  | { readonly do: "route"; readonly weight: number; readonly isMirrored: boolean }
  | { readonly do: "createTrial"; readonly size: number }
  | { readonly do: "scaleTrial"; readonly size: number }
  | { readonly do: "deleteTrial" | "pauseTrial" | "endTrial" }
  | { readonly do: "moveSet" | "deleteTwin" | "emptySet"; readonly set: string }
  /** Asks whether a policy would hold the workload. */
  | { readonly do: "tryPolicy" }
  /** Pauses the workload, with our marks. */
  | { readonly do: "hold" }
  /** Takes our marks and our pause from the workload. */
  | { readonly do: "release" }
  /** The template of this ReplicaSet or ControllerRevision becomes that of the workload, which stays held. */
  | { readonly do: "writeBack"; readonly set: string }
  /** An autoscaler no longer scales down, or is as before. */
  | {
      readonly do: "scaler"
      readonly kind: ScalerKind
      readonly name: string
      readonly isHeld: boolean
      /** It scales this workload from now on. */
      readonly to?: string | undefined
    }
  /** The workload of a revision of a component gets so many pods. */
  | { readonly do: "resize"; readonly workload: string; readonly size: number }
  /** Of a StatefulSet. */
  | { readonly do: "partition"; readonly at: number }
  /** A ready one goes if every PodDisruptionBudget lets it. */
  | { readonly do: "deletePod"; readonly pod: string; readonly isReady: boolean }
  /** The template gets the digest of its configuration, or none. */
  | { readonly do: "mark"; readonly mark: string }
  /** A copy of a ConfigMap as it is now. */
  | { readonly do: "snapshot"; readonly config: string; readonly checksum: string }
  | { readonly do: "dropSnapshot"; readonly name: string }
  /** The snapshot goes with this ReplicaSet or ControllerRevision. */
  | { readonly do: "giveSnapshot"; readonly name: string; readonly set: string }
  /** Services and route are left in order. */
  | { readonly do: "leave" }

/**
 * The reasons of a ClusterGroupUpgrade. The same word is used in conditions, events, metric labels, log lines and CLI; the
 * documentation explains it with the sentence. Words of the original are kept, with their spelling put right.
 */
export const reasons = {
  // Which clusters.
  ClusterSelectionCompleted: "The clusters of the run are known.",
  ClusterNotFound: "A cluster is named that the hub does not know; the message names it.",
  NoClusters: "The selectors and the Placement give no cluster.",
  TooManyClusters: "More than 5,000 clusters are selected.",
  PlacementNotFound: "The Placement of placementRef does not exist, or has decided nothing yet.",

  // Whether the spec can be carried out.
  ValidationCompleted: "The spec can be carried out.",
  CanaryNotSelected: "A canary is not among the selected clusters.",
  InvalidWindow: "A window has an unknown time zone or schedule, or never opens.",
  InvalidManifest: "A manifest does not fit its kind, or one object is delivered twice.",
  InvalidImage: "An image of a manifest is no valid reference.",
  ImageNotResolved: "resolveDigest is AtStart, and the registry did not give a digest for an image.",
  UnresolvableDependency: "blockingCRs lead back to this run; the message has the way.",

  // Pre-caching.
  PrecacheSpecIsWellFormed: "What is pre-cached is known.",
  PrecacheSpecIncomplete: "The PreCachingConfig is missing, or there is no image to pre-cache.",
  InvalidPreCachingConfig: "A pattern or a size of the PreCachingConfig or of its ConfigMap cannot be read.",
  NotRequested: "The spec does not ask for it.",
  PrecachingCompleted: "Every cluster has the images.",
  PartiallyDone: "Pre-caching has ended, and some clusters do not have all images; the message says how many.",
  Failed: "It has ended, and did not succeed.",

  // The run.
  NotStarted: "The run has not started.",
  NotEnabled: "enable is false: clusters are planned and pre-cached, and not upgraded.",
  InProgress: "Clusters are being upgraded.",
  PreCaching: "Clusters are waited for until their images are there.",
  RollingBack: "Clusters that the run changed go back, the last batch first.",
  RolledBack: "Clusters that the run changed are back on what they had.",
  Completed: "Every cluster of the run is complete.",
  TimedOut: "The time of the run, or of a canary, was over before clusters were complete.",
  CompletedWithFailures: "The run has ended within its failure budget, and some clusters are not complete.",

  // It waits, and continues by itself.
  MissingBlockingCR: "A run of blockingCRs does not exist.",
  IncompleteBlockingCR: "A run of blockingCRs has not succeeded yet.",
  FailedBlockingCR: "A run of blockingCRs has failed.",
  OutsideWindow: "No window is open; the message says when the next one opens.",
  DoesNotFit: "What is left of the window is shorter than an upgrade with its rollback is expected to take.",
  ClusterBusy: "Another run works on the clusters that come next.",
  WaitingForFence: "A new leader is making sure that no write of its predecessor can still arrive.",

  // It waits for a person.
  Paused: "spec.paused is true; nothing new begins until it is false.",
  AwaitingApproval: "The next batch needs approval; run `aim approve`.",

  // It has stopped.
  CanaryFailed: "A canary failed.",
  FailureBudgetSpent: "More clusters failed or timed out than failureBudget allows.",
  BatchTimedOut: "The time of a batch was over, and batchTimeoutAction is Abort.",
  NoEligibleClusters: "No cluster is left to upgrade: blockingCRs leave none.",

  NotHalted: "The run has not been stopped.",
  NotPaused: "spec.paused is false.",
  NotStalled: "Nothing needs a person.",
  Observing: "Seen for the first time; not judged yet.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

const invalid = [
  "CanaryNotSelected",
  "InvalidWindow",
  "InvalidManifest",
  "InvalidImage",
  "ImageNotResolved",
  "UnresolvableDependency",
] as const satisfies readonly Reason[]
const unselected = [
  "ClusterNotFound",
  "NoClusters",
  "TooManyClusters",
  "PlacementNotFound",
] as const satisfies readonly Reason[]
const badSpec = ["PrecacheSpecIncomplete", "InvalidPreCachingConfig"] as const satisfies readonly Reason[]
const stopped = [
  "CanaryFailed",
  "FailureBudgetSpent",
  "BatchTimedOut",
  "TimedOut",
  "NoEligibleClusters",
  "Failed",
] as const satisfies readonly Reason[]
const waiting = [
  "NotEnabled",
  "MissingBlockingCR",
  "IncompleteBlockingCR",
  "FailedBlockingCR",
  "OutsideWindow",
  "DoesNotFit",
  "ClusterBusy",
  "WaitingForFence",
  "Paused",
  "AwaitingApproval",
  "PreCaching",
] as const satisfies readonly Reason[]
const ended = ["Completed", "CompletedWithFailures", "RolledBack"] as const satisfies readonly Reason[]
const going = ["NotStarted", "InProgress", "RollingBack", ...waiting] as const satisfies readonly Reason[]
const refused = [...unselected, ...invalid, ...badSpec] as const satisfies readonly Reason[]

/** The conditions of a ClusterGroupUpgrade, what each means when True, and the reasons it may give. */
export const conditions = {
  ClustersSelected: {
    means: "The clusters of the run are known.",
    reasons: ["ClusterSelectionCompleted", ...unselected, "Observing"],
  },
  Validated: { means: "The spec can be carried out.", reasons: ["ValidationCompleted", ...invalid, "Observing"] },
  PrecacheSpecValid: {
    means: "What is pre-cached is known.",
    reasons: ["PrecacheSpecIsWellFormed", "NotRequested", ...badSpec, "Observing"],
  },
  PrecachingSucceeded: {
    means: "Pre-caching has ended, and at least one cluster has the images.",
    reasons: [
      "PrecachingCompleted",
      "PartiallyDone",
      "InProgress",
      "Failed",
      "NotRequested",
      "NotStarted",
      "Observing",
    ],
  },
  Progressing: {
    means: "The run works on clusters, or waits and goes on by itself.",
    reasons: [...going, ...ended, ...stopped, ...refused, "Observing"],
  },
  Succeeded: {
    means: "The run has ended, and every cluster is complete.",
    reasons: ["Completed", "CompletedWithFailures", "RolledBack", ...stopped, ...going, ...refused, "Observing"],
  },
  Ready: {
    means: "The run has ended, and every cluster is complete.",
    reasons: [...ended, ...stopped, ...going, ...refused, "Observing"],
  },
  Stalled: { means: "A person is needed.", reasons: ["NotStalled", ...stopped, ...refused, "FailedBlockingCR"] },
  Halted: { means: "The run was stopped by failures.", reasons: ["NotHalted", ...stopped] },
  Paused: { means: "Nothing new begins.", reasons: ["Paused", "NotPaused"] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

/** Where an operation is. */
export const phases = {
  Pending: "It is planned, and nothing was upgraded yet.",
  InProgress: "Clusters are being upgraded.",
  RollingBack: "What it changed goes back.",
  Complete: "Every cluster is complete.",
  Partial: "It has ended, and some clusters are not complete.",
  Failed: "It was stopped.",
  RolledBack: "What it changed is back.",
  Superseded: "Other upgrades were written before it ended.",
} as const satisfies Record<string, string>

export type Phase = keyof typeof phases

/**
 * The reasons of a ServiceImage for everything it does, waits for or refuses. The same word is used in conditions,
 * events, metric labels, log lines, CLI and dashboard; the documentation explains it with the sentence.
 */
export const reasons = {
  // The rollout goes well.
  AllUpToDate: "Every counted object runs its image.",
  NoObjects: "No object matches the target, so there is nothing to do.",
  RollingOut: "Objects are being stamped, or have been and are not up to date yet.",
  RollingBack:
    "The objects that the rollout changed return to their former image: by onFailure: Rollback, or by `aim rollback`.",
  RolledBack: "The objects that the rollout changed are back on their former image; the spec still names the new one.",
  NotStalled: "Nothing needs a person.",
  Observing: "Seen for the first time; not judged yet.",

  // It waits, and continues by itself.
  WaitingForPriority: "Tiers of a higher priority come first.",
  WaitingForConcurrency: "As many objects as maxConcurrent allows are being updated.",
  WaitingForPace: "Stamping more now would disturb more pods per second than pace allows.",
  WaitingForHealth: "Stamped objects are not up to date yet, and their deadline has not passed.",
  Settling: "Stamped objects are up to date, but not yet for settleSeconds.",
  Soaking: "A step is up to date and its soakSeconds are running.",
  Analysing: "A step is up to date, and its analysis has not found it good yet.",
  BadMetric:
    "A metric of the step is outside of its thresholdRange; the message says which, its value and the limit. As often as threshold says, it halts the rollout.",
  HookSaidNo: "A hook of the analysis did not answer with 2xx. It counts as a bad metric does.",
  NoData:
    "The query of a metric finds nothing, and the step waits for it. After progressDeadlineSeconds without data the rollout halts until there is some.",
  MetricError: "A metric could not be asked for, and the step waits until it can; the message says why.",
  PreCaching: "The tier waits until its image is on the nodes on which pods of its objects run.",
  TierReopened: "A finished tier has an object with another image again; lower priorities wait until it is updated.",
  WaitingForFence: "A new leader is making sure that no write of its predecessor can still arrive.",

  // It waits for a person.
  Paused: "spec.paused is true; nothing is stamped until it is false.",
  AwaitingApproval: "The tier has requireApproval and this operation is not approved yet; run `aim approve`.",
  SerializedChange:
    "Target or images changed while an operation was in progress; serialize says whether that is allowed.",

  // It has stopped.
  FailureHaltsUpdate: "An object that says failureHaltsUpdate has not become up to date within its deadline.",
  FailureBudgetSpent: "More objects of a tier failed than its failureBudget allows.",
  AllFailed: "Every counted object of a step failed, so the image itself is the likely cause.",
  WrongTarget:
    "spec.target fits none of a tier's objects: they lack the container or field it names, or its health yields no boolean.",
  PreCacheIncomplete:
    "The image of a tier did not reach every node within preCacheTimeoutSeconds. With preCacheMissing: Wait the rollout halts until it is there; with Proceed the event names what the tier starts without.",

  // The spec cannot be carried out.
  InvalidImage: "An image is not a valid reference, or a tier has none.",
  InvalidTiers: "Two tiers have the same name, or one has an analysis and spec.analysisNamespace is missing.",
  InvalidHealth: "spec.target.health is not a CEL expression that yields true or false.",
  InvalidTarget: "The target's objects do not have the image field or container that spec.target.image names.",
  ImageNotResolved: "resolveDigest is AtStart, and the registry did not give a digest for an image.",
  ClaimedByAnother: "Another ServiceImage already manages some of the same objects; the older one keeps them.",
  KindNotFound: "The cluster does not serve the target's kind in this version; the rollout starts when it does.",
  ListFailed: "The target's objects could not be listed, so nothing is concluded about them.",

  // It is complete, and objects lost their health.
  Degraded: "The rollout is complete, and objects that were up to date are no longer healthy.",

  // Why one object has its image, or does not have it yet.
  Stamped: "The object got its image from this rollout.",
  StampedNew: "The object was created during the rollout and got its tier's newDeploymentImage.",
  UpToDate: "The object has its image and every pod runs it.",
  Unmanaged: "The object says manuallySpecifiedImage, so its image is left alone.",
  NotSelected: "No ServiceImage selects the object, so its image is left alone.",
  BeingDeleted: "The object is being deleted and is neither stamped nor waited for.",
  Unmatched: "The object belongs to no tier, and there is no defaultImage for it.",
  Contested: "Another writer keeps restoring a different image; the message names its field manager.",
  Regressed: "The object has the right image, was up to date, and is no longer healthy.",
  IgnoredFailure: "The object failed, and without failureHaltsUpdate that does not stop the rollout.",

  // Why one object fails.
  ImagePullFailed: "A pod cannot pull the image.",
  CrashLoop: "A container with the image exited with an error twice since the stamp, or is in CrashLoopBackOff.",
  Unhealthy: "Pods run the image and do not become ready.",
  Unschedulable: "No node takes a pod of the object.",
  AdmissionDenied: "The API server or an admission policy refused the new image.",
  QuotaExceeded: "A resource quota does not leave room for the new pods.",
  Forbidden: "aim has no grant to change objects of this namespace; run `aim grant NAMESPACE`.",
  WriteFailed:
    "A write to the object fails or gets no answer: an admission webhook or the connection to the server is down. It is retried at growing intervals.",

  // What keeps an update in place; the same words as on the workload itself.
  ImageUnavailable: "A node cannot pull the image, so its pods are not touched; the message names nodes and causes.",
  BudgetSpent: "maxUnavailable or a PodDisruptionBudget allows no further pod to restart.",
  Partitioned: "in-place-partition keeps the rest of the pods on their old image.",
  NodeNotReady: "A node is not ready, and the update in place of its pods waits for it.",
  PodNotReady:
    "Every image is updated, and the workload's own controller waits for a pod to be ready or gone; the message names it.",
  Refused:
    "The server, an admission policy or a webhook refuses a write that the update in place needs; the message names what and why. It is retried at growing intervals.",
  UpdateFailed:
    "A pod failed with the new image; it went back, or stays, as in-place-on-failure says. It counts as failed at once.",
  NotInPlace:
    "A running pod cannot get this change, and updateStrategy InPlaceOnly keeps aim from replacing it: `aim release` does. Or the owner of the workload has stopped its controller, so nothing may hold it, or a Canary proves its changes with other pods: it is not stamped before that is over. As a reason of Invalid: the target's kind cannot be updated in place.",
  NoBudget: "No pod of the workload may be down, and there is no substitute for one in place.",
  InvalidAnnotation: "An annotation about updates in place cannot be read; the message says what to write.",
  FellBackToRollingUpdate:
    "A rolling update was under way; with InPlaceOnly the workload stays held until `aim release`.",
  CanaryFailed:
    "The Canary of the workload rejected the image, or needs a person before it goes on; the message has its words. A rejected image counts as failed at once.",
  Timeout:
    "The object did not become up to date within progressDeadlineSeconds, and none of the causes above was found.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** Why an object fails: the classes a tier's `failures` are counted by. */
export type FailureReason = Extract<
  Reason,
  | "ImagePullFailed"
  | "CrashLoop"
  | "Unhealthy"
  | "Unschedulable"
  | "AdmissionDenied"
  | "QuotaExceeded"
  | "Forbidden"
  | "Contested"
  | "InvalidTarget"
  | "WriteFailed"
  | "ImageUnavailable"
  | "BudgetSpent"
  | "Partitioned"
  | "NodeNotReady"
  | "PodNotReady"
  | "Refused"
  | "UpdateFailed"
  | "NotInPlace"
  | "NoBudget"
  | "InvalidAnnotation"
  | "FellBackToRollingUpdate"
  | "CanaryFailed"
  | "Timeout"
>

const done: Reason[] = ["AllUpToDate", "NoObjects", "RolledBack"]
const going: Reason[] = [
  "RollingOut",
  "RollingBack",
  "WaitingForConcurrency",
  "WaitingForPace",
  "WaitingForHealth",
  "Settling",
  "Soaking",
  "Analysing",
  "MetricError",
  "PreCaching",
  "TierReopened",
  "WaitingForFence",
  "AwaitingApproval",
  "SerializedChange",
  "ListFailed",
  "Forbidden",
  "Contested",
  "WriteFailed",
  "ImageUnavailable",
  "BudgetSpent",
  "Partitioned",
  "NodeNotReady",
  "PodNotReady",
  "Refused",
  "UpdateFailed",
  "NoBudget",
  "InvalidAnnotation",
  "FellBackToRollingUpdate",
  "CanaryFailed",
]
const halted: Reason[] = [
  "FailureHaltsUpdate",
  "FailureBudgetSpent",
  "AllFailed",
  "WrongTarget",
  "PreCacheIncomplete",
  "BadMetric",
  "HookSaidNo",
  "NoData",
]
const invalid: Reason[] = [
  "InvalidImage",
  "InvalidTiers",
  "InvalidHealth",
  "InvalidTarget",
  "NotInPlace",
  "ImageNotResolved",
]
const notStarted: Reason[] = ["Observing", "WaitingForPriority", "Paused", "ClaimedByAnother", "KindNotFound"]

/** The conditions of a ServiceImage, what each means when True, and the reasons it may give. */
export const conditions = {
  Complete: {
    means:
      "Everything that existed when the operation started runs its image. Objects created later do not count until they were deployed once.",
    reasons: [...done, ...going, ...notStarted, ...halted, ...invalid],
  },
  InProgress: {
    means: "The rollout, or this tier of it, has started and is not complete.",
    reasons: [...going, ...done, ...notStarted, ...halted, ...invalid],
  },
  Ready: {
    means: "Complete, and nothing has regressed since. The name that generic tools look for.",
    reasons: ["Degraded", ...done, ...going, ...notStarted, ...halted, ...invalid],
  },
  Stalled: {
    means: "The rollout does not continue without a person: halted, invalid or in conflict.",
    reasons: ["NotStalled", "Observing", ...halted, "MetricError", "RolledBack", ...invalid, "ClaimedByAnother"],
  },
  Halted: {
    means: "A failure, or a person, stopped the rollout before its next step.",
    reasons: [...halted, "RollingBack", "RolledBack"],
  },
  Paused: { means: "spec.paused holds the rollout.", reasons: ["Paused"] },
  Invalid: {
    means: "Part of the spec cannot be carried out, so none of it is; the last good rollout stays as it is.",
    reasons: invalid,
  },
  Conflict: { means: "Another ServiceImage manages some of the same objects.", reasons: ["ClaimedByAnother"] },
  TargetKindMissing: { means: "The cluster does not serve the target's kind.", reasons: ["KindNotFound"] },
} as const satisfies Record<string, { means: string; reasons: Reason[] }>

export type ConditionType = keyof typeof conditions

/** What a failed tier's failures have in common. */
export type FailureScope = "All" | "Partial"

/** The state of an operation. */
export const phases = {
  InProgress: "The operation is being carried out.",
  Halted: "It has stopped at a failure.",
  RollingBack: "It is being rolled back.",
  Complete: "Every counted object runs its image.",
  RolledBack: "It was rolled back.",
  Superseded: "The spec changed before it was complete.",
} as const
export type Phase = keyof typeof phases

/** The state of a rollout, in one word, the most urgent first; docs/cli.md explains each. */
export type State =
  | "RolledBack"
  | "RollingBack"
  | "Halted"
  | "Stalled"
  | "Degraded"
  | "Complete"
  | "Paused"
  | "InProgress"
  | "Waiting"

/** Where a Canary is: Flagger's words, letter by letter, because scripts and dashboards compare them. */
export const phases = {
  Initializing: "Services and route are being made, or existing ones adopted.",
  Initialized: "Services and route are there, and no run has been made yet.",
  Waiting: "A new revision is there, and a hook or an approval has not let the run start.",
  Progressing: "The new revision is being judged.",
  WaitingPromotion: "The new revision proved good, and a hook or an approval has not let it be promoted.",
  Promoting: "The new revision grows to full size and takes the requests.",
  Finalising: "The new revision is handed to the workload, and the old one's pods go.",
  Succeeded: "The new revision was promoted.",
  Failed: "The new revision was not promoted; requests go to the one that ran before.",
  Terminating: "The Canary is being deleted, and Services and route are left in order first.",
} as const satisfies Record<string, string>

export type Phase = keyof typeof phases

/**
 * The reasons of a Canary for everything it does, waits for or refuses. The same word is used in conditions, events,
 * metric labels, log lines, CLI and dashboard; the documentation explains it with the sentence.
 */
export const reasons = {
  // The reason of Promoted is the phase, as in Flagger.
  ...phases,
  Observing: "Seen for the first time; not judged yet.",
  NotStalled: "Nothing needs a person.",

  // A run goes on.
  Adopting: "The running workload gets its Services and route; no pod is touched.",
  Started: "The template or a tracked configuration changed, and a run started.",
  Scaling: "The new revision gets the pods that the next weight needs.",
  Routing: "The route has a new weight, and the gateway has not accepted it yet.",
  Settling: "The weight has not lasted for initialDelay, or for one interval, yet.",
  Measuring: "The new revision is judged at its present weight.",
  Advanced: "The checks passed, and the weight rose or an iteration ended.",
  HandingOver: "The tested pods become the workload's own.",
  Draining: "The old revision has no requests, and its pods stay for scaleDownDelaySeconds or until connections end.",
  RollingBack: "The run failed or was stopped; requests go back to a revision that is ready.",
  Restarted: "The template changed during the run. The run ended, and another one started.",
  Queued: "The template changed while another revision was being promoted; its run follows.",

  // It waits, and continues by itself.
  WaitingForReady: "Pods of one of the revisions are not ready yet.",
  SourceNotReady: "The running revision is not ready, so nothing is concluded about the new one.",
  NoData: "A query found nothing. The weight is held, as noData says.",
  MetricError:
    "A metric service did not answer, or not with one number, or a hook could not be called. The weight is held; after errorLimit an alert is sent.",
  NotAccepted: "The gateway has not accepted the route as it is now.",
  Unschedulable: "No node takes a pod of the new revision.",
  QuotaExceeded: "A resource quota leaves no room for the pods; the message names it.",
  BudgetSpent: "A PodDisruptionBudget allows no further pod to go.",
  PullingImage: "An image cannot be pulled yet, and an AlternateImageSource has its turn.",
  WriteFailed: "A write fails or gets no answer. It is retried at growing intervals.",
  Dormant: "The workload has no pods, so there is nothing to give requests to.",

  // It waits for a person.
  Suspended: "spec.suspend is true; nothing goes on until it is false.",
  Paused: "`aim pause` holds the run until `aim resume`.",
  GateWaiting: "A confirm hook does not say yes.",
  AwaitingApproval: "requireApproval holds the run; run `aim approve canary/NAME`.",
  Approved: "A person approved; the message has the user and the run.",
  ApprovalStale: "An approval is for another run or another template, and does not count.",
  Rejected: "No run starts with a template that a run has rejected: the revision that runs keeps all requests.",
  Frozen: "The run failed, and onFailure: Freeze leaves weight and pods as they are.",

  // A run ended without promotion.
  AnalysisFailed: "As many checks failed as threshold allows.",
  MetricFailed: "A metric is out of its range; the check failed.",
  HookRefused: "A pre-rollout or rollout hook did not say yes; the check failed.",
  RollbackHook: "A rollback hook said yes.",
  RolledBackByUser: "`aim rollback` ended the run, or went back after promotion.",
  GateExpired: "A gate had no yes at its deadline, and onDeadline is Fail.",
  DeadlineExceeded: "The run made no progress for progressDeadlineSeconds.",
  CrashLoop: "A container of the new revision exits again and again.",
  ImageUnavailable: "An image of the new revision cannot be pulled, not from another source either.",
  Unhealthy: "Pods of the new revision run and do not become ready.",
  Reverted: "The template went back to the revision that runs, so there is nothing to prove.",
  TargetMissing: "The new revision's workload was deleted; requests go to the running one.",
  SourceMissing: "The running revision's pods are gone. The new one is the only one left, and nothing is scaled down.",
  Released: "`aim release`, or a resumed rollout, ended the hold of the workload.",
  Deleted: "The Canary was deleted during the run.",

  // A run ended with promotion.
  Promoted: "The new revision has all requests, and its pods are the workload's.",
  AnalysisSkipped: "skipAnalysis: the new revision was promoted when it was ready.",

  // The spec cannot be carried out.
  NotSupported:
    "The provider, the target or a metric service has no implementation here; the message says which have one.",
  FeatureMissing: "The gateway does not support a filter that the spec needs; the message names it.",
  InvalidSpec: "A field cannot be carried out; the message names it and what to write.",
  InvalidQuery: "A query does not parse, or names a variable that is not given.",
  TemplateMissing: "A MetricTemplate that the spec names does not exist, or its namespace does not share it.",
  SecretMissing: "A Secret that the spec names does not exist, or lacks a key.",
  AddressForbidden: "An address is neither public nor of this namespace, and no administrator has allowed it.",
  WorkloadMissing: "The workload that targetRef names does not exist.",
  RouteMissing: "The cluster does not serve the router's kind, or an object that the spec names is missing.",
  Conflict: "Another Canary, an update in place or another writer has the same workload or route.",
  NameTaken: "An object that the run needs exists already and belongs to something else.",
  WeightNotPossible: "So few pods cannot express a weight; the message has the nearest.",
  Forbidden: "aim has no grant for an object of this namespace; run `aim grant NAMESPACE`.",
  Refused: "The API server or an admission policy refused a write.",
  ConfigNotTracked: "A Secret of the template is not tracked: `aim grant NAMESPACE --secrets NAME` allows it.",
  ConfigUnreadable: "A ConfigMap or Secret could not be read; it counts as unchanged.",
  AlertFailed: "An alert could not be sent. It delays nothing.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

const going = [
  "Adopting", "Started", "Scaling", "Routing", "Settling", "Measuring", "Advanced", "HandingOver", "Draining",
  "RollingBack", "Restarted", "Queued",
] as const // biome-ignore format: a list of words

const waiting = [
  "WaitingForReady", "SourceNotReady", "NoData", "MetricError", "NotAccepted", "Unschedulable", "QuotaExceeded",
  "BudgetSpent", "PullingImage", "WriteFailed", "Dormant", "Suspended", "Paused",
  "GateWaiting", "AwaitingApproval", "MetricFailed", "HookRefused",
] as const // biome-ignore format: a list of words

/** How a run ends without promotion. */
const failed = [
  "AnalysisFailed", "RollbackHook", "RolledBackByUser", "GateExpired", "DeadlineExceeded", "CrashLoop",
  "ImageUnavailable", "Unhealthy", "TargetMissing", "Frozen", "Rejected",
] as const // biome-ignore format: a list of words

/** A person must act. */
const stuck = [
  "SourceMissing", "NotSupported", "FeatureMissing", "InvalidSpec", "InvalidQuery", "TemplateMissing",
  "SecretMissing", "AddressForbidden", "WorkloadMissing", "RouteMissing", "Conflict",
  "NameTaken", "WeightNotPossible", "Forbidden", "Refused",
] as const // biome-ignore format: a list of words

/** The conditions of a Canary, what each means when True, and the reasons it may give. */
export const conditions = {
  Promoted: {
    means: "The last run promoted its revision, or none has been made. Unknown during a run. The reason is the phase.",
    reasons: Object.keys(phases) as Phase[],
  },
  Ready: {
    means: "No run is under way, and the workload runs what its template says.",
    reasons: [
      "Observing", "Initializing", "Initialized", "Succeeded", "Promoted", "AnalysisSkipped", "Reverted", "Released",
      "Terminating", ...going, ...waiting, ...failed, ...stuck,
    ], // biome-ignore format: a list of words
  },
  Stalled: {
    means: "It does not go on without a person.",
    reasons: ["NotStalled", "Observing", ...failed, ...stuck],
  },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

/** What a measurement says of the new revision: the words of `core/canary/verdict.ts`. */
export const verdicts = {
  Good: "The value is in its range.",
  Bad: "The value is out of its range.",
  NoData: "The query found nothing.",
  Error: "The metric service did not answer, or not with one number.",
} as const satisfies Record<string, string>
export type MetricVerdict = keyof typeof verdicts

/** Whether a run may pass a gate. */
export const gateStates = {
  Waiting: "No yes has come.",
  Passed: "A hook said yes, a person approved, or the deadline let the run go on.",
  Refused: "A hook said no.",
  Expired: "The deadline passed without a yes.",
} as const satisfies Record<string, string>
export type GateState = keyof typeof gateStates

/** How a rollout of an OAM component stands: the words of OAM's RolloutPlan. */
export const rollingStates = {
  initializing: "Services and route are being made, or the target is the first revision of its component.",
  verifyingSpec: "A hook or an approval has not let the rollout start.",
  rollingInBatches: "The new revision is judged batch by batch, or takes the requests.",
  finalising: "The new revision has all requests, and the pods of the one before go.",
  rolloutSucceed: "The new revision was promoted.",
  rolloutFailing: "The rollout failed, and requests and pods go back to the revision before.",
  rolloutFailed: "The rollout failed, and the revision before has all requests.",
  rolloutAbandoning: "The target changed or was taken back, and requests and pods go back to the revision before.",
  rolloutDeleting: "The Canary is being deleted.",
} as const satisfies Record<string, string>
export type RollingState = keyof typeof rollingStates

/** How a run ended. */
export const results = {
  Promoted: "The new revision has all requests.",
  RolledBack: "Requests went back to the running revision.",
  Frozen: "The run failed, and weight and pods stayed.",
  Superseded: "The template changed before the run ended.",
  Cancelled: "The template went back, the hold ended, or the Canary was deleted.",
} as const satisfies Record<string, string>
export type RunResult = keyof typeof results

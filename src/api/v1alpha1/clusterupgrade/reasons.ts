/** Where one cluster of a run is. */
export const states = {
  NotStarted: "Its batch has not begun, or it could not be reached since.",
  InProgress: "It got objects of the run, and they are not all ready.",
  Completed: "One observation showed every object of the run as it was written, and ready.",
  Failed: "An object of the run cannot go on, or the cluster does not take it.",
  TimedOut: "The time of its batch was over before it was complete.",
  RolledBack: "What the run changed on it is back.",
} as const satisfies Record<string, string>

export type ClusterState = keyof typeof states

/** Where pre-caching is on one cluster: the states of the original. */
export const precacheStates = {
  NotStarted: "What an earlier attempt left is being removed.",
  PreparingToStart: "The namespace of an earlier attempt is waited for until it is gone.",
  Starting: "Namespace, ConfigMap and job are being created.",
  Active: "The job is at work.",
  Succeeded: "Every node has every image.",
  PrecacheTimeout: "The time was over; what is on the nodes stays, and the next window goes on.",
  UnrecoverableError: "The job has failed, and a person is needed.",
} as const satisfies Record<string, string>

export type PrecacheState = keyof typeof precacheStates

/** Why a cluster is where it is. */
export const reasons = {
  Waiting: "Its batch has not begun.",
  Upgrading: "Its objects are not all ready yet.",
  Soaking: "Its objects are ready, and soakSeconds are running.",
  UpToDate: "It has everything that the run delivers.",
  Unreachable: "It was not reached; the message says since when. It fails only when the time of its batch is over.",
  ClusterBusy: "Another run holds the cluster.",
  Stalled: "An object of the run says that it cannot go on; the message quotes it.",
  Contested: "Another writer on the cluster changes what the run delivers.",
  Refused: "The cluster does not take an object.",
  AdmissionDenied: "An admission policy of the cluster refuses an object.",
  Forbidden: "The hub's credential has not the right on the cluster.",
  BadCredential: "The credential of the cluster may not be used; the message says why.",
  UnknownCluster: "The hub does not know the cluster any more.",
  Undeliverable: "The objects do not fit into one delivery.",
  TimedOut: "The time of its batch was over.",
  RollingBack: "What the run changed on it goes back.",
  RolledBack: "What the run changed on it is back.",
  NotRolledBack: "What the run delivered stays, because it is not known what was there before.",
  Removed: "The cluster is no longer selected; what was begun on it ends.",
  Observing: "Seen for the first time; not judged yet.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** The conditions of a ClusterUpgrade, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: { means: "The cluster has everything that the run delivers.", reasons: Object.keys(reasons) as Reason[] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

/** Why pre-caching on a cluster does not succeed, and what to do. The first ones are those of a node's pulls. */
export const precacheCauses = {
  AtRiskOfGC: "The images are there, and the kubelet would remove some: free space on the nodes.",
  AgentMissing: "No agent of aim is on the nodes: install it there with `aim manifests agent`.",
  AdmissionDenied: "An admission policy of the cluster refuses the job: allow it in the namespace aim-pre-cache.",
  NamespaceStuck: "The namespace of an earlier attempt did not go in two minutes; the job runs under another name.",
  ImagesLost: "Images were removed from nodes after they were there; they are pulled again.",
} as const satisfies Record<string, string>

export type PrecacheCause = keyof typeof precacheCauses

import { pullFailureReasons } from "../pull-fields.ts"

/**
 * The reasons of an ImagePullJob for everything it does, waits for or refuses. The same word is used in conditions,
 * events, metric labels, log lines and CLI; the documentation explains it with the sentence.
 */
export const reasons = {
  // The state as a whole.
  Pulling: "Nodes are pulling the image.",
  Present: "Every selected node has the image; with `completionPolicy.type: Never`, nodes that join later get it too.",
  Completed: "Every selected node has the image. The job has ended.",
  DeadlineExceeded:
    "The job took longer than `activeDeadlineSeconds`. What is on the nodes stays; a longer deadline lets it go on.",
  BackoffLimitExceeded: "Some nodes failed more often than `pullPolicy.backoffLimit`; the job has ended.",
  NothingToDo: "Nothing needs a person.",

  // Why it waits.
  Listing: "Nodes and NodeImages are being read; nothing is concluded yet.",
  Paused: "`parallelism` is 0.",
  NoNodes: "No node is selected.",
  RegistryBusy: "As many pulls as allowed are under way at this registry, over all jobs (`--pulls-per-registry`).",
  NodeNotReady: "The nodes that are left are not ready; they are given the image when they are.",

  // Why it cannot go on, or a node cannot.
  AgentMissing: "The node has had the request for a minute, and no agent has answered. Is `aim agent` running there?",
  NodeUnknown: "A node that the spec names does not exist.",
  SecretMissing: "A Secret of `pullSecrets` does not exist in the namespace.",
  SecretInvalid:
    "A Secret of `pullSecrets` is not of type kubernetes.io/dockerconfigjson or dockercfg, or is too large.",
  Forbidden: "aim may not read a Secret of `pullSecrets`; run `aim grant NAMESPACE --pull-secrets NAME`.",
  Refused: "The API server or an admission policy refused the change of a NodeImage. It is tried again.",
  NodeFull: "The node has as many images to pull as a NodeImage can hold.",
  InvalidImage: "The image cannot be read as a reference.",
  ...pullFailureReasons,
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** How a job ends without its image on every node. */
export const failedEnds = ["DeadlineExceeded", "BackoffLimitExceeded"] as const satisfies readonly Reason[]

/** A person must act, and the job has not ended. With `completionPolicy.type: Never` it does not end by failed nodes. */
export const stalledReasons = [
  "BackoffLimitExceeded",
  "NodeUnknown",
  "SecretMissing",
  "SecretInvalid",
  "Forbidden",
  "Refused",
  "InvalidImage",
] as const satisfies readonly Reason[]

const stuck = ["DeadlineExceeded", ...stalledReasons] as const

/** The conditions of an ImagePullJob, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: {
    means: "Every selected node has the image.",
    reasons: [
      "Completed",
      "Present",
      "Pulling",
      "Listing",
      "Paused",
      "NoNodes",
      "RegistryBusy",
      "NodeNotReady",
      ...stuck,
    ],
  },
  Stalled: { means: "A failure needs a person.", reasons: ["NothingToDo", ...stuck] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

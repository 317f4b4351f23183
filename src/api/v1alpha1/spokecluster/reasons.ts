/** The reasons of a SpokeCluster. */
export const reasons = {
  Reachable: "The cluster answered.",
  Unreachable: "The cluster did not answer; the message says since when, and why.",
  BadCredential: "Its kubeconfig, address or certificate may not be used; the message says why.",
  SecretNotFound: "The Secret with its kubeconfig does not exist in the controller's namespace.",
  Forbidden: "The hub's credential has not the right on the cluster; the message names it.",
  NotInstalled: "The kinds of Open Cluster Management are not installed on the hub.",
  InvalidWindow: "A window has an unknown time zone or schedule, or never opens.",
  Observing: "It has not been asked yet.",
  NotStalled: "Nothing needs a person.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

const stuck = [
  "BadCredential",
  "SecretNotFound",
  "Forbidden",
  "NotInstalled",
  "InvalidWindow",
] as const satisfies readonly Reason[]

/** The conditions of a SpokeCluster, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: { means: "The cluster can be worked on.", reasons: ["Reachable", "Unreachable", "Observing", ...stuck] },
  Stalled: { means: "A person is needed.", reasons: ["NotStalled", ...stuck] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

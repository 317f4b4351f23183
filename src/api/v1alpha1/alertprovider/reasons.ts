/** The reasons of an AlertProvider. The same word is used in conditions, events, log lines and CLI. */
export const reasons = {
  Usable: "Alerts can be sent to it.",
  Observing: "Seen for the first time; not judged yet.",
  NothingToDo: "Nothing needs a person.",
  AddressForbidden: "The address is not public, and no administrator has allowed it.",
  SecretMissing: "The Secret of secretRef does not exist, or has no key `address`.",
  Forbidden: "aim may not read the Secret of secretRef; run `aim grant NAMESPACE --secrets NAME`.",
  SendFailed: "The last alert was not accepted. The next one is sent all the same.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** A person must act. */
const stuck = ["AddressForbidden", "SecretMissing", "Forbidden"] as const satisfies readonly Reason[]

/** The conditions of an AlertProvider, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: { means: "Canaries can send alerts to it.", reasons: ["Usable", "Observing", "SendFailed", ...stuck] },
  Stalled: { means: "A failure needs a person.", reasons: ["NothingToDo", "Observing", ...stuck] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

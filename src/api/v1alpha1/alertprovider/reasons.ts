/** The reasons of an AlertProvider. The same word is used in conditions, events, log lines and CLI. */
export const reasons = {
  Usable: "Alerts can be sent to it.",
  NothingToDo: "Nothing needs a person.",
  NotSupported: "A field has no implementation here; the message names it.",
  InvalidAddress: "The address cannot be used as it is written; the message says what to write.",
  AddressForbidden: "The address is not public, and no administrator has allowed it.",
  SecretMissing: "The Secret of secretRef does not exist, or has no key `address`.",
  Forbidden: "aim may not read the Secret of secretRef; run `aim grant NAMESPACE --secrets NAME`.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** A person must act. */
const stuck = [
  "NotSupported",
  "InvalidAddress",
  "AddressForbidden",
  "SecretMissing",
  "Forbidden",
] as const satisfies readonly Reason[]

/** The conditions of an AlertProvider, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: { means: "Canaries can send alerts to it.", reasons: ["Usable", ...stuck] },
  Stalled: { means: "A failure needs a person.", reasons: ["NothingToDo", ...stuck] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

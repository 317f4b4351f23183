/** The reasons of a MetricTemplate. The same word is used in conditions, events, log lines and CLI. */
export const reasons = {
  Usable: "The query parses, and Canaries may use it.",
  NothingToDo: "Nothing needs a person.",
  InvalidQuery: "The query does not parse; the message has the place and what to write there.",
  NotSupported: "The type of metric service has no implementation here; the message says which have one.",
  AddressMissing: "This type of metric service needs an address.",
  InvalidAddress: "The address or a header cannot be used as it is written; the message says what to write.",
  AddressForbidden: "The address is neither public nor of this namespace, and no administrator has allowed it.",
  SecretMissing: "The Secret of secretRef does not exist, or lacks a key.",
  Forbidden: "aim may not read the Secret of secretRef; run `aim grant NAMESPACE --secrets NAME`.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** A person must act. */
const stuck = [
  "InvalidQuery",
  "NotSupported",
  "AddressMissing",
  "InvalidAddress",
  "AddressForbidden",
  "SecretMissing",
  "Forbidden",
] as const satisfies readonly Reason[]

/** The conditions of a MetricTemplate, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: { means: "Canaries can measure with it.", reasons: ["Usable", ...stuck] },
  Stalled: { means: "A failure needs a person.", reasons: ["NothingToDo", ...stuck] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

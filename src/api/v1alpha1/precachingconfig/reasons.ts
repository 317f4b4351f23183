/** The reasons of a PreCachingConfig. */
export const reasons = {
  WellFormed: "Its patterns and its size can be read.",
  InvalidPattern: "A pattern of excludePrecachePatterns is no RE2 expression; the message has the place.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** The conditions of a PreCachingConfig, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: { means: "Runs can use it.", reasons: ["WellFormed", "InvalidPattern"] },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions

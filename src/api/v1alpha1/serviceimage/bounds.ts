// How large a spec and a status may be.

/** More than any fleet we know has; the bounds of the status follow from it. */
export const maxTiers = 64
/** How many writes may be under way at once: the batch of the fencing protocol. */
export const maxInflight = 200
/** The values of one round, or what was against a step. */
export const maxAnalysisMessage = 128
/** Where requests still go to another version. */
export const maxEndpointsMessage = 160
/** What they found is kept in the status, which has to stay small. */
export const maxJudgedTiers = 16
export const maxTierMetrics = 8
export const maxTierWebhooks = 4
export const maxHistory = 10
export const maxExamplesPerTier = 10
/** How much of a quoted message is kept, and how many are kept over all tiers: one per class of failure. */
export const maxFailureMessage = 160
export const maxFailureMessages = 4
/** Over all tiers: ten examples in each of 64 tiers would fill most of the largest status. */
export const maxExamples = 20
/** Characters of tier names and images over the whole history; the oldest entries lose theirs first. */
export const maxHistoryImageCharacters = 11_264
export const maxObjects = 9_999_999

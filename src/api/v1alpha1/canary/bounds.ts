// How large a spec and a status may be.

/** Characters in the name of a metric, a hook or an alert. */
export const maxName = 128
export const maxMetrics = 32
export const maxWebhooks = 32
/** Every hook once, and each of the three approvals. */
export const maxGates = maxWebhooks + 3
export const maxHistory = 10
/** Containers of a revision whose images are recorded. */
export const maxImages = 8
/** ConfigMaps and Secrets of one template, and the characters of their names. */
export const maxTrackedConfigs = 64
export const maxConfigName = 128
/** Of these, as many are listed that are not tracked. */
export const maxUntrackedConfigs = 16

// How large a spec and a status may be.

/** More than any hub we know has. */
export const maxClusters = 5000
export const maxUpgrades = 16
export const maxManifests = 8
/** How many clusters each list of the status names: the current batch and those in trouble. */
export const maxListed = 200
/** How many writes to clusters may be under way at once: the batch of the fencing protocol. */
export const maxInflight = 200
export const maxHistory = 10
/** How much of what a cluster reports is kept of it in the run. */
export const maxCause = 160
/** Images that the status names; the frozen plan has all. */
export const maxListedImages = 20

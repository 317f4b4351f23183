/** How long to stay away from what was refused so many times: longer each time, and never for long. */
export const tryAgainMs = (attempts: number) => Math.min(15_000 * 2 ** (attempts - 1), longestMs)

/** The same for what may be over in a moment: a webhook that restarts, an answer that was lost. */
export const tryAgainSoonMs = (attempts: number) => Math.min(1000 * 2 ** (attempts - 1), longestMs)

const longestMs = 300_000

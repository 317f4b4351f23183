/** How long to stay away from what was refused so many times: longer each time, and never for long. */
export const tryAgainMs = (attempts: number) => Math.min(15_000 * 2 ** (attempts - 1), 300_000)

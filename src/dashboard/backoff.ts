/** How long to wait before attempt number `attempt` (from 1): doubling from half a second to ten, of which half is chance. */
export function reconnectAfterMs(attempt: number, chance: number): number {
  const most = Math.min(10_000, 500 * 2 ** Math.min(attempt - 1, 10))
  return most / 2 + (most / 2) * chance
}

/** After so long without a frame the picture counts as old. The server sends one at least every five seconds. */
export const silenceMs = 20_000

/** What a container made from an image does. Of what is left out: it is ready at once, runs for ever and ends politely. */
export type Behaviour = {
  /** From then on its probes succeed. */
  readyAfterMs?: number
  /** Its probes never succeed. */
  neverReady?: boolean
  /** It ends by itself. */
  exits?: { afterMs: number; exitCode: number; reason?: "OOMKilled" }
  /** How long it takes to end when asked to (SIGTERM), and with what. */
  stopsAfterMs?: number
  stopExitCode?: number
  /** Ends only when it is killed, at the end of its grace period. */
  ignoresTerm?: boolean
}

/** Whether a probe at this time after the start finds it well. */
export function isWell({ neverReady, readyAfterMs = 0 }: Behaviour, sinceStartMs: number): boolean {
  return !neverReady && sinceStartMs >= readyAfterMs
}

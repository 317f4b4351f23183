/** What a container of an image does. By default it is ready at once, runs for ever and ends on SIGTERM. */
export type Behaviour = {
  /** Its probes succeed from this time on. */
  readyAfterMs?: number
  /** Its probes never succeed. */
  neverReady?: boolean
  /** Ends by itself. */
  exits?: { afterMs: number; exitCode: number; reason?: "OOMKilled" }
  /** How long it takes to end after SIGTERM, and its exit code. */
  stopsAfterMs?: number
  stopExitCode?: number
  /** Ends only by SIGKILL, at the end of its grace period. */
  ignoresTerm?: boolean
  /** What a command that is run in it does. By default it succeeds at once. */
  exec?: { takesMs?: number; exitCode?: number; output?: string }
}

/** Whether a probe succeeds at this time after the start. */
export function isWell({ neverReady, readyAfterMs = 0 }: Behaviour, sinceStartMs: number): boolean {
  return !neverReady && sinceStartMs >= readyAfterMs
}

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
  /** How many percent of the requests it answers with 500, and how long it takes for each. */
  errorPercent?: number
  latencyMs?: number
  /** What commands do that are run in it: all the same, or each its own. By default they succeed at once. */
  exec?: CommandRun | ((command: readonly string[]) => CommandRun | undefined)
}

/** Absent: there is no such command. */
type CommandRun = { takesMs?: number; exitCode?: number; output?: string }

/** Whether a probe succeeds at this time after the start. */
export function isWell({ neverReady, readyAfterMs = 0 }: Behaviour, sinceStartMs: number): boolean {
  return !neverReady && sinceStartMs >= readyAfterMs
}

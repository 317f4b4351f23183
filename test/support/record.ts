import { type Fault, isDecision } from "#cluster-sim/faults/faults.ts"
import type { HistoryEntry, Json } from "#cluster-sim/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Request } from "#runtime/client/index.ts"
import type { RuntimeCall } from "./runtime-log.ts"

/** A committed write, and when it was. */
export type Commit = HistoryEntry & { readonly at: Instant }

/** A write that a process sent, each attempt for itself. */
export type Sent = {
  readonly process: number
  readonly method: string
  readonly path: string
  readonly body: Json | undefined
  /** When it was sent, and the revision the world had reached by then. What follows from it may come much later. */
  readonly at: Instant
  readonly after: number
  /** What it committed: nothing if it was refused, never arrived, or changed nothing. */
  revision?: number
}

/** All that happened in one world, for the invariants. */
export type Run = {
  readonly seed: number
  /** What was there before the first commit. */
  readonly initial: readonly Json[]
  readonly commits: readonly Commit[]
  /** What the ServiceImage controllers sent. */
  readonly sent: readonly Sent[]
  /** What the AlternateImageSource controllers sent, where they ran in processes of their own. */
  readonly failovers?: readonly Sent[]
  /** What controllers of pulls sent, of the manager and of agents, where they ran in processes of their own. */
  readonly pulls?: readonly Sent[]
  /** What controllers of updates in place sent, where they ran in processes of their own. */
  readonly updates?: readonly Sent[]
  /** What agents called their runtimes for, where the calls were logged. */
  readonly calls?: readonly RuntimeCall[]
  /** How old a picture of the world they may have had to decide from. */
  readonly lagMs: number
}

type Tagged = Request & { sent?: Sent }

/**
 * Notes the writes of a process. `outside` goes around every fault and sees what is sent, `inside` goes below them and
 * sees every request that arrives, even if its sender is gone.
 */
export function recordSent(
  process: number,
  sent: Sent[],
  now: () => { at: Instant; revision: number },
): { outside: Fault; inside: Fault } {
  return {
    outside: next => ({
      ...next,
      send(request) {
        if (!isDecision(request)) return next.send(request)
        const { at, revision: after } = now()
        const body = request.body === undefined ? undefined : JSON.parse(request.body)
        const entry: Sent = { process, method: request.method, path: request.path, body, at, after }
        sent.push(entry)
        return next.send({ ...request, sent: entry } as Tagged)
      },
    }),
    inside: next => ({
      ...next,
      async send(request: Tagged) {
        if (!request.sent) return next.send(request)
        const before = now().revision
        const response = await next.send(request)
        if (response.status >= 300) return response
        const chunks = await Array.fromAsync(response.body)
        const version = Number(JSON.parse(Buffer.concat(chunks).toString()).metadata?.resourceVersion)
        if (version > before) request.sent.revision = version
        return { ...response, body: again(chunks) }
      },
    }),
  }
}

async function* again(chunks: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* chunks
}

const unjudged = new Set<Run>()
let isKept = false

/** From now on every run is kept until it was judged: see judge-every-run.ts. A benchmark keeps none. */
export const keepRuns = (): void => {
  isKept = true
}

/** Returns whether the run is kept. */
export function keep(run: Run): boolean {
  if (isKept) unjudged.add(run)
  return isKept
}

export const wasJudged = (run: Run): boolean => unjudged.delete(run)
export const unjudgedRuns = (): readonly Run[] => [...unjudged]

import type { Instant } from "#lib/instant.ts"
import type { Recorded } from "#runtime/cri/index.ts"
import type { Logger } from "#runtime/log.ts"
import { type PreStopContext, runPreStop } from "./pre-stop.ts"

/** Where neither the request nor the container says anything; as the kubelet. */
const usualGraceSeconds = 30
/** The least that a container has after SIGTERM; as the kubelet. */
const leastGraceSeconds = 2
/** How long the runtime may take beyond the grace period; as the kubelet. */
const stopTimeoutMs = 120_000

export type StopOrder = {
  /** Of the runtime, without a scheme. */
  id: string
  recorded: Recorded
  /** When the stop began, by this node's clock: an agent before this one may have begun it. */
  since: Instant
  /** The request's; the pod's own without it. */
  graceSeconds: number | undefined
}

/**
 * Stops one container: preStop, SIGTERM, and SIGKILL when the grace period is over, which counts from the beginning. Of
 * a stop that an earlier process has begun, only what is left of the grace period counts.
 */
export async function stopContainer(context: PreStopContext & { log: Logger }, order: StopOrder): Promise<void> {
  const { runtime, clock, signal, log } = context
  const { id, recorded, since } = order
  const graceMs = 1000 * (order.graceSeconds ?? recorded.terminationGracePeriodSeconds ?? usualGraceSeconds)
  // A clock that was set back must not make the grace period longer.
  const left = () => Math.max(0, graceMs - Math.max(0, clock.now() - since))
  if (recorded.preStop && left() > 0)
    await runPreStop(context, { id, recorded, forMs: left() }).catch(error => {
      if (signal.aborted) throw error
      log.warn("preStop failed, stopping the container all the same", { container: id, error })
    })
  const graceSeconds = Math.max(leastGraceSeconds, Math.round(left() / 1000))
  await runtime.stopContainer(id, { graceSeconds }, { signal, timeoutMs: stopTimeoutMs })
}

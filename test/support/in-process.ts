import { onTestFinished } from "vitest"
import { rulesFor } from "#cli/manifests/rules.ts"
import { connect } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import type { Permission } from "#runtime/controller.ts"
import { systemRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { kubeconfigFor, serviceAccountAccess } from "./floor.ts"

/** A manager or an agent in the process of the test, on the worker's cluster. */

export const surroundings = { clock: systemClock, random: systemRandom, log: silentLogger }

/** Speaks to the server as a service account with these rights and no others. */
export async function transportFor(namespace: string, name: string, permissions: readonly Permission[]) {
  const access = await serviceAccountAccess(namespace, name, rulesFor(permissions))
  return (await connect({ kubeconfig: kubeconfigFor(access) })).transport
}

/** Runs until the test ends, or until the returned function is called. */
export function untilTestEnds(start: (signal: AbortSignal) => Promise<number>): () => Promise<void> {
  const stop = new AbortController()
  const ended = start(stop.signal)
  const end = async () => {
    stop.abort()
    await ended
  }
  onTestFinished(end)
  return end
}

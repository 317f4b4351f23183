import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import { type Held, holdPlain } from "#runtime/kind-controller.ts"
import type { Surroundings } from "../surroundings.ts"
import { wayOutWith } from "../way-out.ts"
import { createAlerts } from "./alerts.ts"
import { alertProviders } from "./resources.ts"
import type { Parts } from "./world.ts"

/** What a Canary is carried out with in a cluster: one way out for metrics, hooks and alerts. */
export function partsWith(surroundings: Surroundings): Parts {
  const wayOut = wayOutWith(surroundings)
  return {
    routerOf: canary => routerOf(canary, surroundings.allowProviders ?? []),
    measuring: wayOut.measuring,
    hooks: wayOut.hooks,
    alerts: wiring =>
      createAlerts(wiring, {
        ...wayOut.shared(wiring),
        providers: wiring.watch<Held<AlertProvider>>(alertProviders, { project: holdPlain }),
      }),
  }
}

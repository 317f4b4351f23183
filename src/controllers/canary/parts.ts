import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import { allowanceOf, createEgress, type Egress, readAllowances } from "#egress/index.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type Held, holdPlain } from "#runtime/kind-controller.ts"
import { createSecrets } from "../secrets.ts"
import { createSharing } from "../sharing.ts"
import type { Surroundings } from "../surroundings.ts"
import { createAlerts } from "./alerts.ts"
import { createHooks } from "./hooks.ts"
import { createMeasuring } from "./measure.ts"
import { createReachable } from "./reachable.ts"
import { alertProviders, metricTemplates } from "./resources.ts"
import type { Parts } from "./world.ts"

/** What a Canary is carried out with in a cluster: one way out for metrics, hooks and alerts. */
export function partsWith({ allowEgress = [], sharedNamespaces, metricsServer }: Surroundings): Parts {
  const allowances = readAllowances(allowEgress)
  const shared = new WeakMap<Wiring, ReturnType<typeof share>>()
  function share(wiring: Wiring) {
    const { clock } = wiring
    const reachable = createReachable(wiring)
    const rules = { allowances, serviceAt: reachable.serviceAt }
    return {
      egress: reachable.waiting(createEgress({ clock, rules })),
      secrets: createSecrets(wiring),
      sharing: createSharing(wiring, sharedNamespaces),
    }
  }
  function sharedBy(wiring: Wiring) {
    const found = shared.get(wiring) ?? share(wiring)
    shared.set(wiring, found)
    return found
  }
  return {
    routerOf,
    measuring: wiring =>
      createMeasuring(wiring, {
        ...sharedBy(wiring),
        templates: wiring.watch<Held<MetricTemplate>>(metricTemplates, { project: holdPlain }),
        metricsServer: metricsServer === undefined ? undefined : serverAt(metricsServer, wiring),
      }),
    hooks: wiring => createHooks(wiring, sharedBy(wiring)),
    alerts: wiring =>
      createAlerts(wiring, {
        ...sharedBy(wiring),
        providers: wiring.watch<Held<AlertProvider>>(alertProviders, { project: holdPlain }),
      }),
  }
}

/** An administrator named this server, so every Canary may ask it, wherever it is. */
function serverAt(url: string, { clock }: Pick<Wiring, "clock">): { url: string; egress: Egress } {
  const rules = { allowances: readAllowances([allowanceOf(new URL(url))]), serviceAt: () => undefined }
  return { url, egress: createEgress({ clock, rules }) }
}

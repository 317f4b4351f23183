import { namesOf } from "#api/names.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { allowanceOf, createEgress, type Egress, readAllowances } from "#egress/index.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { type Held, holdPlain } from "#runtime/kind-controller.ts"
import { resourceOf } from "#runtime/resource.ts"
import { createHooks, type Hooks } from "./hooks.ts"
import { createMeasuring, type Measuring } from "./measure.ts"
import { createReachable, reachablePermissions } from "./reachable.ts"
import { createSecrets, type Secrets, secretPermissions } from "./secrets.ts"
import { createSharing, type Sharing, sharingPermissions } from "./sharing.ts"
import type { Surroundings } from "./surroundings.ts"

export const metricTemplates = resourceOf(namesOf("MetricTemplate"))

/** What it takes to ask for metrics and to call hooks. */
export const judgingPermissions: readonly Permission[] = [
  { resource: metricTemplates, verbs: ["list", "watch"] },
  ...secretPermissions,
  ...sharingPermissions,
  ...reachablePermissions,
]

/** The one way out of a controller, and what is asked over it. */
export type WayOut = {
  shared(wiring: Wiring): { egress: Egress; secrets: Secrets; sharing: Sharing }
  measuring(wiring: Wiring): Measuring
  hooks(wiring: Wiring): Hooks
}

export function wayOutWith({ allowEgress = [], sharedNamespaces, metricsServer }: Surroundings): WayOut {
  const allowances = readAllowances(allowEgress)
  const known = new WeakMap<Wiring, ReturnType<WayOut["shared"]>>()
  function open(wiring: Wiring) {
    const { clock } = wiring
    const reachable = createReachable(wiring)
    const rules = { allowances, serviceAt: reachable.serviceAt }
    return {
      egress: reachable.waiting(createEgress({ clock, rules })),
      secrets: createSecrets(wiring),
      sharing: createSharing(wiring, sharedNamespaces),
    }
  }
  function shared(wiring: Wiring) {
    const found = known.get(wiring) ?? open(wiring)
    known.set(wiring, found)
    return found
  }
  return {
    shared,
    measuring: wiring =>
      createMeasuring(wiring, {
        ...shared(wiring),
        templates: wiring.watch<Held<MetricTemplate>>(metricTemplates, { project: holdPlain }),
        metricsServer: metricsServer === undefined ? undefined : serverAt(metricsServer, wiring),
      }),
    hooks: wiring => createHooks(wiring, shared(wiring)),
  }
}

/** An administrator named this server, so every object may ask it, wherever it is. */
function serverAt(url: string, { clock }: Pick<Wiring, "clock">): { url: string; egress: Egress } {
  const rules = { allowances: readAllowances([allowanceOf(new URL(url))]), serviceAt: () => undefined }
  return { url, egress: createEgress({ clock, rules }) }
}

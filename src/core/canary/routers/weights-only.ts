import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { Accepted, RouteContext, RouteObject, RouteProblem, Split } from "../router.ts"
import { strategyOf } from "../steps.ts"
import { isToDivide, refsOf } from "./gateway-division.ts"
import type { Rule } from "./http-route.ts"
import { rulesIn } from "./route-router.ts"

/** What kinds have in common that only divide requests by weights, and that nothing reports about. */

const needsRoute = "write provider: gatewayapi:v1 with service.gatewayRefs, or leave it out"

/** `what` names the object. */
export const weightsOnly =
  (what: string) =>
  ({ spec: { analysis } }: Canary): readonly RouteProblem[] => {
    const isMatched = strategyOf(analysis) === "HeaderOrCookie"
    const wanted: readonly (readonly [boolean, string, string])[] = [
      [isMatched, "match", "tells no requests apart"],
      [analysis.sessionAffinity !== undefined, "sessionAffinity", "sets no cookies"],
      [analysis.mirror, "mirror", "copies no requests"],
    ]
    return wanted.flatMap(([isWanted, field, lack]) =>
      isWanted
        ? [
            {
              reason: "NotSupported" as const,
              field: `analysis.${field}`,
              message: `${what} ${lack}: ${needsRoute}`,
            },
          ]
        : [],
    )
  }

/** Fields that only a route with matches uses. */
export const unusedByWeights = [
  "service.timeout", "service.backendTimeout", "service.hosts", "service.gatewayRefs", "service.match",
  "service.rewrite", "service.headers", "service.mirror", "service.corsPolicy",
] as const // biome-ignore format: a list of words

export const byWeight = (rule: Rule, context: RouteContext, { weight }: Split): readonly Rule[] => [
  { ...rule, backendRefs: refsOf(rule, context, weight) },
]

/** What is written counts as taken over, as long as it names our Service. */
export const unreported =
  (lack: (existing: RouteObject, services: RouteContext["services"]) => string) =>
  (context: RouteContext, existing: RouteObject): Accepted =>
    rulesIn(existing).some(rule => isToDivide(rule, context))
      ? { ok: true }
      : { ok: false, why: lack(existing, context.services) }

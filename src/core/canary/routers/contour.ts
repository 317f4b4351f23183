import type { Canary, Service } from "#api/v1alpha1/canary/index.ts"
import type { Accepted, RouteContext, RouteObject, RouteProblem, Router, Split } from "../router.ts"
import { strategyOf } from "../steps.ts"
import { conditionsIn, conditionsOf, read, saidOf, write } from "./contour-proxy.ts"
import { isToDivide, mirrorTo, refsOf } from "./gateway-division.ts"
import { emptyMatches } from "./gateway-problems.ts"
import { analysisMatches, ruleOf } from "./gateway-rule.ts"
import type { Rule } from "./http-route.ts"
import { routeRouter, rulesIn } from "./route-router.ts"

const kind = { group: "projectcontour.io", version: "v1", kind: "HTTPProxy", plural: "httpproxies" } as const

/** A route of an HTTPProxy has one set of conditions, so each match of the spec is a route of its own. */
function rulesOf(context: RouteContext): readonly Rule[] {
  const { matches = [], backendRefs } = ruleOf(context)
  const policies = policiesOf(context.canary.spec.service)
  return matches.map(match => ({ conditions: conditionsOf(match), ...policies, backendRefs: backendRefs! }))
}

type HeaderChanges = NonNullable<NonNullable<Service["headers"]>["request"]>

const headersPolicy = ({ set = {}, remove = [] }: HeaderChanges = {}, more: Readonly<Record<string, string>> = {}) => {
  const pairs = Object.entries({ ...set, ...more }).map(([name, value]) => ({ name, value }))
  return { ...(pairs.length > 0 && { set: pairs }), ...(remove.length > 0 && { remove }) }
}

function policiesOf({ timeout, retries, rewrite, headers }: Partial<Service> = {}): Readonly<Record<string, unknown>> {
  const request = headersPolicy(headers?.request, rewrite?.authority ? { Host: rewrite.authority } : {})
  const response = headersPolicy(headers?.response)
  return {
    // As Flagger writes it.
    ...(timeout && { timeoutPolicy: { response: timeout, idle: "5m" } }),
    ...(retries && {
      retryPolicy: {
        // To Contour, 0 is its default and -1 is none. The server fills in 1.
        count: retries.attempts === 0 ? -1 : (retries.attempts ?? 1),
        ...(retries.perTryTimeout && { perTryTimeout: retries.perTryTimeout }),
      },
    }),
    ...(rewrite?.uri && { pathRewritePolicy: { replacePrefix: [{ replacement: rewrite.uri }] } }),
    ...(Object.keys(request).length > 0 && { requestHeadersPolicy: request }),
    ...(Object.keys(response).length > 0 && { responseHeadersPolicy: response }),
  }
}

function divided(rule: Rule, context: RouteContext, { weight, isMirrored }: Split): readonly Rule[] {
  const { canary } = context
  const base: Rule = isMirrored ? { ...rule, filters: [...(rule.filters ?? []), mirrorTo(rule, context)] } : rule
  if (strategyOf(canary.spec.analysis) !== "HeaderOrCookie" || weight === 0)
    return [{ ...base, backendRefs: refsOf(rule, context, weight) }]
  const matching = analysisMatches(canary).map(match => ({
    ...rule,
    conditions: [...conditionsIn(rule), ...conditionsOf(match)],
    backendRefs: refsOf(rule, context, weight),
  }))
  return [...matching, { ...base, backendRefs: refsOf(rule, context, 0) }]
}

const no = (why: string): Accepted => ({ ok: false, why })

function isAccepted(context: RouteContext, existing: RouteObject): Accepted {
  const { metadata, status } = existing
  const { name, namespace, generation } = metadata
  if (!rulesIn(existing).some(rule => isToDivide(rule, context)))
    return no(`no route of HTTPProxy ${name} sends requests to Service ${context.services.apex}: add it to services`)
  const said = saidOf(status, generation)
  if (!said) return no(`Contour has not looked at HTTPProxy ${name} as it is now`)
  if (said.isOrphaned)
    return no(
      `no HTTPProxy with a virtualhost includes HTTPProxy ${name}: add includes: [{name: ${name}, namespace: ${namespace}}] to yours`,
    )
  return said.isValid ? { ok: true } : no(`Contour says that HTTPProxy ${name} is not valid: ${said.why}`)
}

const problem = (reason: RouteProblem["reason"], field: string, message: string): RouteProblem => ({
  ...{ reason, field, message },
})

function problemsOf(canary: Canary): readonly RouteProblem[] {
  const { analysis, service = {} as Partial<Service> } = canary.spec
  const { match = [], rewrite, headers } = service
  const added = (["request", "response"] as const).filter(side => Object.keys(headers?.[side]?.add ?? {}).length > 0)
  const isPrefix = ({ uri }: (typeof match)[number]) => uri?.exact === undefined && uri?.regex === undefined
  return [
    ...(analysis.sessionAffinity
      ? [
          problem(
            "NotSupported",
            "analysis.sessionAffinity",
            "an HTTPProxy can only replace the header Set-Cookie, with all cookies of the application: write provider: gatewayapi:v1 with service.gatewayRefs, or leave sessionAffinity out",
          ),
        ]
      : []),
    ...match.flatMap(({ method }, index) =>
      method
        ? [problem("InvalidSpec", `service.match[${index}].method`, "an HTTPProxy compares no methods: leave it out")]
        : [],
    ),
    ...added.map(side =>
      problem("InvalidSpec", `service.headers.${side}.add`, "an HTTPProxy cannot add a header: write set"),
    ),
    ...(rewrite?.uri && (rewrite.type !== "ReplacePrefixMatch" || !match.every(isPrefix))
      ? [
          problem(
            "InvalidSpec",
            "service.rewrite.type",
            "an HTTPProxy replaces the prefix of a path: write type: ReplacePrefixMatch, and match by uri.prefix",
          ),
        ]
      : []),
    ...emptyMatches(canary),
  ]
}

/**
 * Weights and conditions in an HTTPProxy. As with Flagger, one that is made has no virtualhost: an HTTPProxy of its owner
 * includes it, and says which host it is for.
 */
export const contour: Router = {
  ...routeRouter({ providers: ["contour"], kind, problemsOf, isAccepted, read, write, rulesOf, divided, followed }),
  uses: ["service.retries"],
  unused: [
    "service.hosts", "service.gatewayRefs", "service.backendTimeout", "service.mirror", "service.corsPolicy",
    "service.retries.retryOn",
  ], // biome-ignore format: a list of words
}

function followed(spec: Readonly<Record<string, unknown>>) {
  return spec
}

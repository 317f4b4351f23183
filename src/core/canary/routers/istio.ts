import type { Canary, Service } from "#api/v1alpha1/canary/index.ts"
import type { RouteContext, RouteProblem, Router, Split } from "../router.ts"
import { strategyOf } from "../steps.ts"
import { mirrorTo, refsOf } from "./gateway-division.ts"
import type { Rule } from "./http-route.ts"
import { bothOf, matchesIn, read, write } from "./istio-service.ts"
import { routeRouter } from "./route-router.ts"
import { unreported } from "./weights-only.ts"

const kind = {
  group: "networking.istio.io",
  version: "v1",
  kind: "VirtualService",
  plural: "virtualservices",
} as const

/** The words of `service` are Istio's own. What is empty is left out: the server refuses an empty duration. */
function rulesOf({ canary, services }: RouteContext): readonly Rule[] {
  const { match = [], rewrite, timeout, retries, corsPolicy, headers } = canary.spec.service ?? ({} as Partial<Service>)
  const { uri, authority } = rewrite ?? {}
  const { perTryTimeout, retryOn, ...attempts } = retries ?? {}
  return [
    {
      ...(match.length > 0 && { match }),
      ...((uri || authority) && { rewrite: { ...(uri && { uri }), ...(authority && { authority }) } }),
      ...(timeout && { timeout }),
      ...(retries && {
        retries: { ...attempts, ...(perTryTimeout && { perTryTimeout }), ...(retryOn && { retryOn }) },
      }),
      ...(corsPolicy && { corsPolicy }),
      ...(headers && { headers }),
      backendRefs: [{ name: services.apex, weight: 1 }],
    },
  ]
}

/** As with Flagger: the Service is one of the hosts, and without a gateway the route is for the mesh. */
function hostsOf({ canary, services }: RouteContext) {
  const { hosts = [], gateways = [], delegation } = canary.spec.service ?? ({} as Partial<Service>)
  if (delegation) return {}
  const isThere = hosts.includes(services.apex) || hosts.includes("*")
  return {
    hosts: isThere ? hosts : [...hosts, services.apex],
    gateways: gateways.length > 0 ? gateways : ["mesh"],
  }
}

function divided(rule: Rule, context: RouteContext, { weight, isMirrored }: Split): readonly Rule[] {
  const { analysis } = context.canary.spec
  const base: Rule = isMirrored ? { ...rule, filters: [...(rule.filters ?? []), mirrorTo(rule, context)] } : rule
  if (strategyOf(analysis) !== "HeaderOrCookie" || weight === 0)
    return [{ ...base, backendRefs: refsOf(rule, context, weight) }]
  const match = bothOf(analysis.match, matchesIn(rule))
  return [
    { ...rule, match, backendRefs: refsOf(rule, context, weight) },
    { ...base, backendRefs: refsOf(rule, context, 0) },
  ]
}

const invalid = (field: string, message: string): RouteProblem => ({ reason: "InvalidSpec", field, message })
const isEmpty = (texts: object = {}) => Object.keys(texts).length === 0

function problemsOf({ spec: { analysis, service } }: Canary): readonly RouteProblem[] {
  const { appProtocol } = service ?? ({} as Partial<Service>)
  const isMatched = strategyOf(analysis) === "HeaderOrCookie"
  return [
    ...(analysis.sessionAffinity
      ? [
          {
            reason: "NotSupported" as const,
            field: "analysis.sessionAffinity",
            message:
              "a VirtualService is not given cookies here: write provider: gatewayapi:v1 with service.gatewayRefs, or leave it out",
          },
        ]
      : []),
    ...(appProtocol?.toLowerCase() === "tcp"
      ? [invalid("service.appProtocol", "requests are divided, and not connections: write http or grpc")]
      : []),
    ...(isMatched ? analysis.match : []).flatMap(({ headers, queryParams, sourceLabels }, index) =>
      isEmpty(headers) && isEmpty(queryParams) && isEmpty(sourceLabels)
        ? [invalid(`analysis.match[${index}]`, "every request would match: write headers, queryParams or sourceLabels")]
        : [],
    ),
  ]
}

/** Weights, matches and copies in a VirtualService of Istio. Istio reports nothing about it unless it is told to. */
export const istio: Router = {
  ...routeRouter({
    providers: ["istio"],
    ...{ kind, problemsOf, read, write, rulesOf, divided },
    isAccepted: unreported(
      ({ metadata }, { apex }) =>
        `VirtualService ${metadata.name} has no http route to host ${apex} without a subset: add it to a route`,
    ),
    followed: ({ hosts: _, gateways: _gateways, ...spec }, context) => ({ ...spec, ...hostsOf(context) }),
  }),
  isOff: true,
  uses: [
    "service.gateways", "service.delegation", "service.retries", "service.match[].name", "service.match[].scheme",
    "service.match[].authority", "service.match[].withoutHeaders", "service.match[].ignoreUriCase",
    "service.match[].port", "service.match[].gateways", "service.match[].sourceLabels",
    "service.match[].sourceNamespace", "analysis.match[].sourceLabels",
  ], // biome-ignore format: a list of words
  unused: ["service.gatewayRefs", "service.backendTimeout", "service.mirror", "service.rewrite.type"],
}

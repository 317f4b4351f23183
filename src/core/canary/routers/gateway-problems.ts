import type { Canary, Service } from "#api/v1alpha1/canary/index.ts"
import type { RouteProblem } from "../router.ts"
import { strategyOf } from "../steps.ts"
import { goDurationMs, hostnamesOf, parentRefsOf } from "./gateway-rule.ts"

/** Bounds of the definition of an HTTPRoute. */
const hostnamesMost = 16
const matchesMost = 64

type Match = NonNullable<Service["match"]>[number]

const invalid = (field: string, message: string): RouteProblem => ({ reason: "InvalidSpec", field, message })

/** What the spec asks for and an HTTPRoute, or this gateway, cannot do. */
export function gatewayProblems(canary: Canary, features?: ReadonlySet<string>): readonly RouteProblem[] {
  const { spec } = canary
  const { service } = spec
  return [
    ...(parentRefsOf(canary).length > 0
      ? []
      : [
          invalid(
            "service.gatewayRefs",
            "an HTTPRoute attaches to a Gateway: write service.gatewayRefs: [{name: GATEWAY, namespace: NAMESPACE}]",
          ),
        ]),
    ...(service ? serviceProblems(service) : []),
    ...matchProblems(canary),
    ...(hostnamesOf(canary).length > hostnamesMost
      ? [invalid("service.hosts", `an HTTPRoute has at most ${hostnamesMost} hosts: write fewer`)]
      : []),
    // A gateway without a list says nothing about what it lacks.
    ...(features && features.size > 0 ? missingFeatures(canary, features) : []),
  ]
}

function serviceProblems({ match = [], rewrite, corsPolicy, timeout, backendTimeout }: Service): RouteProblem[] {
  const isWholeMethod = ({ method }: Match) => !method || method.exact !== undefined
  const isPrefix = ({ uri }: Match) => uri?.exact === undefined && uri?.regex === undefined
  const origins = corsPolicy?.allowOrigins ?? []
  return [
    ...match.flatMap((each, index) =>
      isWholeMethod(each)
        ? []
        : [invalid(`service.match[${index}].method`, "an HTTPRoute compares whole methods: write exact")],
    ),
    ...origins.flatMap(({ exact }, index) =>
      exact === undefined
        ? [
            invalid(
              `service.corsPolicy.allowOrigins[${index}]`,
              "an HTTPRoute has no patterns for origins: write exact, such as https://*.example.com",
            ),
          ]
        : [],
    ),
    ...(rewrite?.uri && rewrite.type === "ReplacePrefixMatch" && (match.length > 1 || !match.every(isPrefix))
      ? [
          invalid(
            "service.rewrite.type",
            "ReplacePrefixMatch needs exactly one match, by uri.prefix: write one, or leave type out",
          ),
        ]
      : []),
    ...(timeout && backendTimeout && goDurationMs(timeout) > 0 && goDurationMs(backendTimeout) > goDurationMs(timeout)
      ? [invalid("service.backendTimeout", "one attempt cannot take longer than the request: write at most timeout")]
      : []),
  ]
}

/** Matches that tell no requests apart. */
export function emptyMatches({ spec: { analysis } }: Canary): RouteProblem[] {
  if (strategyOf(analysis) !== "HeaderOrCookie") return []
  const isEmpty = (texts: object = {}) => Object.keys(texts).length === 0
  return analysis.match.flatMap((each, index) =>
    isEmpty(each.headers) && isEmpty(each.queryParams)
      ? [
          invalid(
            `analysis.match[${index}]`,
            "every request would match: write headers or queryParams (sourceLabels have no effect here)",
          ),
        ]
      : [],
  )
}

function matchProblems(canary: Canary): RouteProblem[] {
  const { analysis, service } = canary.spec
  if (strategyOf(analysis) !== "HeaderOrCookie") return []
  const count = analysis.match.length * Math.max(1, service?.match?.length ?? 0)
  return [
    ...emptyMatches(canary),
    ...(count > matchesMost
      ? [
          invalid(
            "analysis.match",
            `a rule of an HTTPRoute has at most ${matchesMost} matches, and these with service.match are ${count}: write fewer`,
          ),
        ]
      : []),
    ...(analysis.match.length > 1 && service?.rewrite?.uri && service.rewrite.type === "ReplacePrefixMatch"
      ? [invalid("service.rewrite.type", "ReplacePrefixMatch needs a rule with one match: write one analysis.match")]
      : []),
  ]
}

/** A field that needs more than the core of the Gateway API, and the name of the feature. */
type Need = { readonly field: string; readonly feature: string; readonly isNeeded: boolean }

function needsOf({ spec }: Canary): readonly Need[] {
  const { analysis } = spec
  const service = spec.service ?? ({} as Partial<Service>)
  const { match = [], rewrite, headers, mirror = [] } = service
  const isMatched = strategyOf(analysis) === "HeaderOrCookie"
  const isMirrored = strategyOf(analysis) === "BlueGreen" && analysis.mirror
  const { mirrorWeight = 100 } = analysis
  const has = (value: unknown) => value !== undefined && value !== "" && value !== false
  return [
    { field: "analysis.mirror", feature: "HTTPRouteRequestMirror", isNeeded: isMirrored },
    {
      field: "analysis.mirrorWeight",
      feature: "HTTPRouteRequestPercentageMirror",
      isNeeded: isMirrored && mirrorWeight > 0 && mirrorWeight < 100,
    },
    { field: "service.mirror", feature: "HTTPRouteRequestMirror", isNeeded: mirror.length > 0 },
    {
      field: "service.mirror",
      feature: "HTTPRouteRequestMultipleMirrors",
      isNeeded: mirror.length + (isMirrored ? 1 : 0) > 1,
    },
    {
      field: "analysis.match",
      feature: "HTTPRouteQueryParamMatching",
      isNeeded: isMatched && analysis.match.some(({ queryParams }) => has(queryParams)),
    },
    {
      field: "service.match",
      feature: "HTTPRouteQueryParamMatching",
      isNeeded: match.some(({ queryParams }) => has(queryParams)),
    },
    { field: "service.match", feature: "HTTPRouteMethodMatching", isNeeded: match.some(({ method }) => has(method)) },
    {
      field: "analysis.sessionAffinity",
      feature: "HTTPRouteResponseHeaderModification",
      isNeeded: has(analysis.sessionAffinity),
    },
    {
      field: "service.headers.response",
      feature: "HTTPRouteResponseHeaderModification",
      isNeeded: has(headers?.response),
    },
    { field: "service.rewrite.uri", feature: "HTTPRoutePathRewrite", isNeeded: has(rewrite?.uri) },
    { field: "service.rewrite.authority", feature: "HTTPRouteHostRewrite", isNeeded: has(rewrite?.authority) },
    { field: "service.timeout", feature: "HTTPRouteRequestTimeout", isNeeded: has(service.timeout) },
    { field: "service.backendTimeout", feature: "HTTPRouteBackendTimeout", isNeeded: has(service.backendTimeout) },
    { field: "service.corsPolicy", feature: "HTTPRouteCORS", isNeeded: has(service.corsPolicy) },
  ]
}

const missingFeatures = (canary: Canary, features: ReadonlySet<string>): RouteProblem[] =>
  needsOf(canary)
    .filter(({ feature, isNeeded }) => isNeeded && !features.has(feature))
    .map(({ field, feature }) => ({
      reason: "FeatureMissing" as const,
      field,
      message: `the gateway's class does not list ${feature} in supportedFeatures: leave ${field} out, or use another gateway`,
    }))

import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { group } from "#api/v1alpha1/group.ts"
import { annotationsOf, fieldsOf, labelsOf, savedIn, withMetadata } from "../before.ts"
import { ratioMost } from "../ratio.ts"
import type { RouteContext, RouteObject, RouteProblem, Router, Split } from "../router.ts"
import { hashLabelOf } from "../services.ts"
import { strategyOf, weightsOf } from "../steps.ts"
import { sharesPods } from "../targets/shared.ts"

/** On the Service, where its selector does not say it: the weight that the number of pods is to give. */
const weightAnnotation = `${group}/canary-weight`

const selectorIn = ({ spec }: RouteObject) => (fieldsOf(spec).selector ?? {}) as Readonly<Record<string, string>>

/** The Service that selects the pods of one revision, or of all. */
function selecting(
  context: RouteContext,
  existing: RouteObject,
  hash: string | undefined,
  weight?: number,
): RouteObject {
  const label = hashLabelOf(context.canary)
  const { [label]: _, ...others } = selectorIn(existing)
  const { [weightAnnotation]: _weight, ...rest } = annotationsOf(existing)
  const selector = hash === undefined ? others : { ...others, [label]: hash }
  const annotations = weight === undefined ? rest : { ...rest, [weightAnnotation]: String(weight) }
  return withMetadata(
    { ...existing, spec: { ...fieldsOf(existing.spec), selector } },
    { labels: labelsOf(existing), annotations, saved: savedIn(existing) },
  )
}

/**
 * At 0 and 100 the Service selects one revision, so that a promotion and an abort are one write. In between it selects
 * both, and the number of pods divides the requests. Between runs it selects as its owner has written.
 */
function routed(context: RouteContext, existing: RouteObject | undefined, { weight }: Split): RouteObject {
  if (!existing) throw new Error(`Service ${context.services.apex} is made before requests are divided`)
  const { source, target } = context.hashes
  if (target === undefined) return selecting(context, existing, undefined)
  if (weight <= 0) return selecting(context, existing, source)
  return weight >= 100 ? selecting(context, existing, target) : selecting(context, existing, undefined, weight)
}

function splitIn({ canary, hashes }: RouteContext, existing: RouteObject): Split | undefined {
  const hash = selectorIn(existing)[hashLabelOf(canary)]
  const split = (weight: number): Split => ({ weight, isMirrored: false })
  // After the roles were exchanged both are the same revision, which is the source.
  if (hash !== undefined) return hash === hashes.source ? split(0) : hash === hashes.target ? split(100) : undefined
  if (hashes.target === undefined) return split(0)
  const weight = Number(annotationsOf(existing)[weightAnnotation] ?? "")
  return weight > 0 && weight < 100 ? split(weight) : undefined
}

const problem = (reason: RouteProblem["reason"], field: string, message: string): RouteProblem => ({
  reason,
  field: `${field}`,
  message,
})

const needsGateway = "a Service alone cannot; write provider: gatewayapi:v1 with service.gatewayRefs"

function problemsOf(canary: Canary): readonly RouteProblem[] {
  const { analysis, canaryReplicas } = canary.spec
  const strategy = strategyOf(analysis)
  const isRatio = strategy === "Weighted"
  const high = sharesPods(canary) ? undefined : weightsOf(analysis).find(weight => weight > ratioMost && weight < 100)
  return [
    ...(strategy === "HeaderOrCookie"
      ? [
          problem(
            "NotSupported",
            "analysis.match",
            `requests are told apart by a gateway: ${needsGateway}, or leave match out`,
          ),
        ]
      : []),
    ...(analysis.sessionAffinity
      ? [
          problem(
            "NotSupported",
            "analysis.sessionAffinity",
            `cookies are set by a gateway: ${needsGateway}, or leave sessionAffinity out`,
          ),
        ]
      : []),
    ...(isRatio && high !== undefined
      ? [
          problem(
            "WeightNotPossible",
            analysis.stepWeights ? "analysis.stepWeights" : "analysis.maxWeight",
            `the running revision keeps its pods until promotion, so a number of pods gives at most ${ratioMost} % of the requests, and not ${high} %: write weights up to ${ratioMost}, or 100 as the last`,
          ),
        ]
      : []),
    ...(isRatio && canaryReplicas !== undefined
      ? [
          problem(
            "InvalidSpec",
            "canaryReplicas",
            "the number of pods is what divides the requests: leave canaryReplicas out",
          ),
        ]
      : []),
  ]
}

/** The selector of the Service that clients use. What endpoints it has, the controller sees; nothing else accepts it. */
export const kubernetes: Router = {
  providers: ["kubernetes"],
  kind: { group: "", version: "v1", kind: "Service", plural: "services" },
  // What only a route does.
  unused: [
    "service.timeout", "service.backendTimeout", "service.hosts", "service.gatewayRefs", "service.match",
    "service.rewrite", "service.headers", "service.mirror", "service.corsPolicy", "analysis.mirror",
    "analysis.mirrorWeight",
  ], // biome-ignore format: a list of words
  nameOf: ({ services }) => services.apex,
  problemsOf,
  routed,
  splitIn,
  isAccepted: () => ({ ok: true }),
  restored: (context, existing) => selecting(context, existing, undefined),
}

import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"

type Spec = Partial<Omit<CanarySpecInput, "service" | "analysis">> & {
  readonly service?: Partial<NonNullable<CanarySpecInput["service"]>>
  readonly analysis?: Partial<CanarySpecInput["analysis"]>
}

/** A Canary as the server stores it, with the one difference that matters. */
export function canaryOf({ service, analysis, ...spec }: Spec = {}): Canary {
  const hasSteps = analysis?.iterations !== undefined || analysis?.stepWeights || spec.rolloutPlan
  const steps = hasSteps ? {} : { stepWeight: 10, maxWeight: 50 }
  return {
    apiVersion: Canary.apiVersion,
    kind: Canary.kind,
    metadata: { name: "web", namespace: "shop", uid: "uid-of-web" },
    spec: Canary.spec.parse({
      targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      service: { port: 80, ...service },
      analysis: { interval: "1m", threshold: 5, ...steps, ...analysis },
      ...spec,
    }),
  } as Canary
}

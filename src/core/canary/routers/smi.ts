import type { Router } from "../router.ts"
import type { Ref, Rule } from "./http-route.ts"
import { routeRouter } from "./route-router.ts"
import { byWeight, unreported, unusedByWeights, weightsOnly } from "./weights-only.ts"

type Fields = Readonly<Record<string, unknown>>
type Backend = { readonly service: string; readonly weight?: number }

const kind = { group: "split.smi-spec.io", version: "v1alpha2", kind: "TrafficSplit", plural: "trafficsplits" } as const

/** A TrafficSplit is one rule, for all requests. */
const read = ({ backends = [], ...spec }: Fields): Fields => ({
  ...spec,
  rules: [
    {
      backendRefs: (backends as readonly Backend[]).map(({ service: name, weight = 0, ...rest }) => ({
        ...rest,
        ...{ name, weight },
      })),
    },
  ],
})

/** A weight of 0 is written out: some meshes read a missing one as a share. */
const write = ({ rules, ...spec }: Fields): Fields => ({
  ...spec,
  backends: (rules as readonly Rule[]).flatMap(({ backendRefs = [] }) => backendRefs.map(backendOf)),
})

const backendOf = ({ name, weight = 1, group: _, kind: _kind, port: _port, ...rest }: Ref) => ({
  ...rest,
  ...{ service: name, weight },
})

/** Weights in a TrafficSplit of the Service Mesh Interface. The project is archived, and nothing reports about the object. */
export const smi: Router = {
  ...routeRouter({
    providers: ["smi:v1alpha2"],
    ...{ kind, read, write },
    problemsOf: weightsOnly("a TrafficSplit of v1alpha2"),
    isAccepted: unreported(
      ({ metadata }, { apex }) => `TrafficSplit ${metadata.name} has no backend ${apex}: add it with a weight`,
    ),
    rulesOf: ({ services }) => [{ backendRefs: [{ name: services.apex, weight: 1 }] }],
    followed: (spec, { canary, services }) => ({ ...spec, service: canary.spec.service?.hosts?.[0] ?? services.apex }),
    divided: byWeight,
  }),
  isOff: true,
  unused: unusedByWeights.filter(field => field !== "service.hosts"),
}

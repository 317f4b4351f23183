import type { Canary } from "#api/v1alpha1/canary/index.ts"

export type Provider = NonNullable<Canary["spec"]["provider"]>

type Spec = Pick<Canary, "spec">

/** The target is a workload of an OAM component: each of its revisions has a workload of its own. */
export const isOfComponent = ({ spec }: Spec): boolean => spec.provider === "oam"

/** What divides the requests: as the spec says, or by what it has. OAM without a Gateway is a mesh of its own. */
export function providerOf({ spec }: Spec): Provider {
  const hasGateway = (spec.service?.gatewayRefs?.length ?? 0) > 0
  if (isOfComponent({ spec })) return hasGateway ? "gatewayapi:v1" : "smi:v1alpha2"
  return spec.provider ?? (hasGateway ? "gatewayapi:v1" : "kubernetes")
}

import type { Canary } from "#api/v1alpha1/canary/index.ts"

export type Provider = NonNullable<Canary["spec"]["provider"]>

/** What divides the requests: as the spec says, or by what it has. */
export const providerOf = ({ spec }: Canary): Provider =>
  spec.provider ?? ((spec.service?.gatewayRefs?.length ?? 0) > 0 ? "gatewayapi:v1" : "kubernetes")

import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { providerOf } from "../provider.ts"
import type { RouteProblem, Router } from "../router.ts"
import { gatewayApi } from "./gateway-api.ts"
import { kubernetes } from "./kubernetes.ts"

export { withoutEffect } from "./without-effect.ts"

/** Another router is another line. */
const routers: readonly Router[] = [gatewayApi, kubernetes]

/** What divides the requests of a Canary, or that nothing here does. */
export function routerOf(canary: Canary): Router | RouteProblem {
  const provider = providerOf(canary)
  const found = routers.find(({ providers }) => providers.includes(provider))
  if (found) return found
  const known = routers.flatMap(({ providers }) => providers)
  return {
    reason: "NotSupported",
    field: "provider",
    message: `provider ${provider} has no router here: write one of ${known.join(", ")}`,
  }
}

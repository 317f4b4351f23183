import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { isOfComponent, providerOf } from "../provider.ts"
import { isRouter, type RouteProblem, type Router } from "../router.ts"
import { contour } from "./contour.ts"
import { gatewayApi } from "./gateway-api.ts"
import { istio } from "./istio.ts"
import { kubernetes } from "./kubernetes.ts"
import { smi } from "./smi.ts"
import { traefik } from "./traefik.ts"
import { withoutEffect as without } from "./without-effect.ts"

/** Another router is another line. */
const routers: readonly Router[] = [gatewayApi, contour, traefik, kubernetes, smi, istio]

/** The kinds that routers write beside Services, each with the providers that choose it. */
export const routeKinds: readonly (Pick<Router, "providers"> & Pick<Router["kind"], "group" | "plural">)[] = routers
  .filter(({ kind }) => kind.kind !== "Service")
  .map(({ providers, kind: { group, plural } }) => ({ providers, group, plural }))

/** Providers that are off, unless an administrator allows them. */
export const providersOff: readonly string[] = routers.flatMap(({ isOff, providers }) => (isOff ? providers : []))

/** How one is allowed. */
export const howToAllow = (provider: string) => `an administrator runs aim controller --allow-provider ${provider}`

/**
 * What divides the requests of a Canary, or that nothing here does. `allowed` are the providers that an administrator has
 * allowed; without it, all are.
 */
export function routerOf(canary: Canary, allowed: readonly string[] = providersOff): Router | RouteProblem {
  const provider = providerOf(canary)
  const found = routers.find(({ providers }) => providers.includes(provider))
  if (found && !(found.isOff && !allowed.includes(provider))) return found
  if (isOfComponent(canary)) return withoutGateway(provider)
  const known = routers.flatMap(({ isOff, providers }) => (isOff ? [] : providers))
  const lacks = found ? `is off, unless ${howToAllow(provider)}` : "has no router here"
  const message = `provider ${provider} ${lacks}: write one of ${known.join(", ")}`
  return { reason: "NotSupported", field: "provider", message }
}

/** A component without a Gateway is routed by a mesh, and that is off. */
const withoutGateway = (provider: string): RouteProblem => ({
  reason: "NotSupported",
  field: "service.gatewayRefs",
  message: `without a Gateway, ${provider} divides the requests of a component, and it is off, unless ${howToAllow(provider)}: write service.gatewayRefs`,
})

/** Fields that the spec has and the chosen router does not use. */
export function withoutEffect(canary: Canary): readonly string[] {
  const router = routerOf(canary)
  return without(canary, isRouter(router) ? router : {})
}

import type { Json, Obj } from "../object.ts"
import type { AppliedRoute } from "./plan.ts"

export const traefikVersion = "traefik.io/v1alpha1"
const serviceLabel = "kubernetes.io/service-name"

type Name = { namespace: string; name: string }
type Pods = readonly { uid: string; isEnding: boolean }[]

/** What Traefik reads, at one moment. */
export type TraefikSnapshot = {
  ingressRoutes: readonly Obj[]
  traefikServices: readonly Obj[]
  /** The gateways (`NAMESPACE/NAME`) that requests come through. */
  gateways: readonly string[]
  service(name: Name): Obj | undefined
  /** The pods behind a Service that answer, some of them about to end. */
  pods(name: Name): Pods
  /** Why it does not take an object; undefined: it does. */
  refusal(object: Obj): string | undefined
}

/**
 * Decides which IngressRoutes are in effect, each in the words of an HTTPRoute. Traefik drops a TraefikService when one of
 * its Services is missing or has no pods, and answers 404 for what is routed to it. What it serves it sends to the pods that
 * there were then, and to none that is about to end. It reports nothing.
 */
export function planTraefik(snapshot: TraefikSnapshot): AppliedRoute[] {
  const { ingressRoutes, traefikServices, gateways } = snapshot
  return ingressRoutes.flatMap(route => {
    const { namespace } = route.metadata
    return route.spec.routes.flatMap(({ match, services = [] }: Json): AppliedRoute[] => {
      const [{ kind = "Service", name } = {} as Json] = services
      const weighted = kind === "TraefikService" && traefikServices.find(each => isNamed(each, namespace!, name))
      const backendRefs = weighted ? backendsOf(snapshot, weighted) : undefined
      const hostnames = hostsIn(match)
      if (!weighted || !backendRefs || hostnames.length === 0) return []
      // A change of either, or of the pods, is a change of the route.
      const from = [route, weighted].map(({ metadata }) => [metadata.uid, metadata.generation])
      const metadata = { ...route.metadata, uid: JSON.stringify([from, backendRefs]) }
      return [{ route: { ...route, metadata, spec: { hostnames, rules: [{ backendRefs }] } }, gateways }]
    })
  })
}

const isNamed = ({ metadata }: Obj, namespace: string, name: string) =>
  metadata.namespace === namespace && metadata.name === name

/** Of a match by hosts alone. One by anything else is not played, and nothing is served for it. */
function hostsIn(match: string): string[] {
  const isOfHosts = /^Host\(`[^`]+`\)(?: \|\| Host\(`[^`]+`\))*$/.test(match)
  return isOfHosts ? [...match.matchAll(/`([^`]+)`/g)].map(([, host]) => host!) : []
}

/** Undefined where one of them cannot be served. */
function backendsOf({ service, pods, refusal }: TraefikSnapshot, object: Obj): Json[] | undefined {
  const namespace = object.metadata.namespace!
  const services: Json[] = object.spec.weighted?.services ?? []
  const isServed = ({ name, port }: Json) => {
    const found = service({ namespace, name })
    const hasPort = found?.spec.ports?.some((each: Json) => each.port === port || each.name === port)
    return hasPort && pods({ namespace, name }).length > 0
  }
  if (refusal(object) !== undefined || services.length === 0 || !services.every(isServed)) return undefined
  return services.map(({ name, port, weight }) => {
    const staying = pods({ namespace, name }).filter(({ isEnding }) => !isEnding)
    return { name, port, ...(weight !== undefined && { weight }), pods: staying.map(({ uid }) => uid) }
  })
}

/** Those that EndpointSlices name for a Service. */
export const podsIn = (slices: readonly Obj[], { namespace, name }: Name): Pods =>
  slices
    .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[serviceLabel] === name)
    .flatMap(({ endpoints }) => (endpoints ?? []) as Json[])
    .filter(({ conditions, targetRef }) => conditions?.serving !== false && targetRef?.kind === "Pod")
    .map(({ conditions, targetRef }) => ({ uid: targetRef.uid, isEnding: conditions?.terminating === true }))

import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { type PodSpec, snapshotPolicy } from "#core/canary/config-refs.ts"
import { planned } from "#core/canary/rollout-plan.ts"
import { isRouter, type RouteObject } from "#core/canary/router.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import { type Services, serviceNamesOf } from "#core/canary/services.ts"
import { isSharedBy, placeOf } from "#core/canary/sharing.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { Around } from "#explain/canary/outlook.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { core, type KubeObject, keyOf, mutatingPolicies, type Resource, resourceOf } from "#runtime/resource.ts"
import { alertProviders, canaries, metricTemplates } from "../kinds.ts"

const services = core("services", "Service")
const namespaces: Resource = { ...core("namespaces", "Namespace"), namespaced: false }

export type Workload = KubeObject & { spec?: { replicas?: number; template?: { spec?: PodSpec } } }
type Place = { namespace: string; name: string }

/** Objects of the same file count as if they were there. */
export type Beside = {
  templates: readonly MetricTemplate[]
  providers: readonly AlertProvider[]
  workloads: readonly Workload[]
}

/** Reads what a plan needs, by name. What may not be read is unknown, and nothing is concluded from it. */
export async function lookAround(client: Client, canary: Canary, beside: Beside): Promise<Around> {
  const own = canary.metadata.namespace ?? ""
  const read = async <T extends KubeObject>(resource: Resource, at: { name: string; namespace?: string }) => {
    try {
      return await client.get<T>(resource, at)
    } catch (error) {
      if (isFailure(error, "NotFound")) return "Missing" as const
      if (isFailure(error, "Forbidden")) return undefined
      throw error
    }
  }
  const { metrics, alerts } = planned(canary).spec.analysis
  const places = (refs: readonly ({ name: string; namespace?: string | undefined } | undefined)[]) =>
    refs.flatMap(ref => (ref ? [placeOf(ref, own)] : []))
  const templates = await all(
    places(metrics.map(({ templateRef }) => templateRef)),
    metricTemplates,
    beside.templates as unknown as KubeObject[],
  )
  const providers = await all(
    places(alerts.map(({ providerRef }) => providerRef)),
    alertProviders,
    beside.providers as unknown as KubeObject[],
  )
  const foreign = new Map<string, boolean | undefined>()
  for (const { namespace } of [...templates.values(), ...providers.values()].map(({ place }) => place))
    if (namespace !== own && !foreign.has(namespace)) foreign.set(namespace, await isShared(namespace))
  return {
    workload: await workloadOf(),
    services: await servicesOf(),
    takesSnapshots: await isThere(snapshotPolicy),
    route: await routeOf(),
    rivals: await rivalsOf(),
    template: place => templates.get(keyOf(place))?.object as MetricTemplate | "Missing" | undefined,
    provider: place => providers.get(keyOf(place))?.object as AlertProvider | "Missing" | undefined,
    isShared: namespace => foreign.get(namespace),
  }

  async function all(wanted: readonly Place[], resource: Resource, given: readonly KubeObject[]) {
    const found = new Map<string, { place: Place; object: KubeObject | "Missing" | undefined }>()
    for (const place of wanted) {
      const there = given.find(({ metadata }) => keyOf({ namespace: own, ...metadata }) === keyOf(place))
      found.set(keyOf(place), { place, object: there ?? (await read(resource, place)) })
    }
    return found
  }

  /** A kind that is not served answers as a missing object does. */
  async function isThere(name: string): Promise<boolean | undefined> {
    const found = await read(mutatingPolicies, { name })
    return found === undefined ? undefined : found !== "Missing"
  }

  async function isShared(name: string): Promise<boolean | undefined> {
    const namespace = await read(namespaces, { name })
    return namespace === undefined ? undefined : namespace !== "Missing" && isSharedBy(namespace.metadata.annotations)
  }

  async function workloadOf(): Promise<Around["workload"]> {
    const { kind, name } = canary.spec.targetRef
    const known = workloadKind(kind)
    if (!known) return undefined
    const given = beside.workloads.find(
      each => each.kind === kind && each.metadata.name === name && (each.metadata.namespace ?? own) === own,
    )
    const found = given ?? (await read<Workload>(resourceOf(known), { name, namespace: own }))
    if (typeof found !== "object") return found
    return { replicas: found.spec?.replicas ?? 1, pod: found.spec?.template?.spec ?? {} }
  }

  async function servicesOf(): Promise<Partial<Services>> {
    const found: [string, RouteObject][] = []
    for (const [role, name] of Object.entries(serviceNamesOf(canary))) {
      const service = await read(services, { name, namespace: own })
      if (typeof service === "object") found.push([role, service as unknown as RouteObject])
    }
    return Object.fromEntries(found)
  }

  async function routeOf(): Promise<Around["route"]> {
    const router = routerOf(canary)
    if (!isRouter(router) || router.kind.kind === "Service") return undefined
    const resource = { ...router.kind, namespaced: true }
    const route = await read(resource, { name: serviceNamesOf(canary).apex, namespace: own })
    if (route === undefined) return undefined
    if (route !== "Missing") return "There"
    // A kind that is not served answers as a missing object does; its list tells them apart.
    const isServed = await client.list(resource, { namespace: own, limit: 1 }).then(
      () => true,
      error => !isFailure(error, "NotFound"),
    )
    return isServed ? "Missing" : "NotServed"
  }

  async function rivalsOf(): Promise<string[]> {
    const { items } = await client.list<KubeObject>(canaries, { namespace: own }).catch(error => {
      if (isFailure(error, "NotFound", "Forbidden")) return { items: [] }
      throw error
    })
    const isSameTarget = ({ spec }: Canary) =>
      spec.targetRef.kind === canary.spec.targetRef.kind && spec.targetRef.name === canary.spec.targetRef.name
    return (items as unknown as Canary[])
      .filter(other => other.metadata.name !== canary.metadata.name && isSameTarget(other))
      .map(({ metadata }) => metadata.name)
  }
}

import { formatInstant } from "#lib/instant.ts"
import { jitter } from "#runtime/random.ts"
import type { Json, Obj } from "../object.ts"
import { createTimers, type Timers } from "../physics/timers.ts"
import type { Part, PhysicsWorld } from "../physics/world.ts"
import { StatusError } from "../status-error.ts"
import { installGatewayApi } from "./definitions.ts"
import { type AppliedRoute, type Condition, plan, type Report } from "./plan.ts"
import { planProxies } from "./proxies.ts"
import { planTraefik, podsIn, traefikVersion } from "./traefik.ts"

/**
 * A gateway as Contour with Envoy is one: it takes routes over after a while, and reports it later still. Routes are
 * HTTPRoutes and Contour's own HTTPProxies. It also serves IngressRoutes, as Traefik does. Its faults concern what reads the API; the routes in effect stay as they are then, as Envoy goes on without Contour.
 */
export type SimulatedGateway = {
  /** The moving part, for the parts of a cluster. It installs the kinds that it reads where they are missing. */
  part(world: PhysicsWorld): Part
  /** The routes in effect. */
  routes(): readonly AppliedRoute[]
  /** The Services (`NAMESPACE/NAME`) that requests can be sent to: those for which Envoy has a cluster. */
  clusters(): ReadonlySet<string>
  /** Called right after the routes in effect, or the Services they can reach, changed. */
  onRoutes(listener: () => void): () => void
  /** Nothing is read and nothing is reported from now on. */
  stop(): void
  resume(): void
  /** Routes for which this returns a message are not accepted and not served. `undefined` for the function ends it. */
  refuse(why: ((route: Obj) => string | undefined) | undefined): void
}

export type GatewayOptions = {
  /** Gateways whose class names this controller are served. Default: Contour's. */
  controllerName?: string
  /** From a change to its effect on requests. Default: about 150. */
  effectMs?: number
  /** From the effect to the status that reports it. Default: about 50. */
  reportMs?: number
  /**
   * Contour sends routes and clusters to Envoy by separate streams, in no order (its issues 1178 and 2151). What is
   * played is the worst order: clusters that no route names any more go first, then routes change, then new clusters
   * come, so far apart. Default: 20.
   */
  streamMs?: number
  /** What the class publishes; Contour publishes none. */
  supportedFeatures?: readonly string[]
}

const version = "gateway.networking.k8s.io/v1"
const proxyVersion = "projectcontour.io/v1"

type Effect = { readonly routes: readonly AppliedRoute[]; readonly clusters: ReadonlySet<string> }

export function createGateway(options: GatewayOptions = {}): SimulatedGateway {
  const { controllerName = "projectcontour.io/gateway-controller", effectMs = 150, reportMs = 50 } = options
  const { supportedFeatures = [], streamMs = 20 } = options
  const listeners = new Set<() => void>()
  let effect: Effect = { routes: [], clusters: new Set() }
  /** Steps of the last change that are still to come. */
  let coming: Partial<Effect>[] = []
  let isStopped = false
  let refusal: ((route: Obj) => string | undefined) | undefined
  /** Reads everything again, soon. Set while the part runs. */
  let look: (() => void) | undefined

  function part(world: PhysicsWorld): Part {
    const { storage, clock, random } = world
    const all = (apiVersion: string, kind: string) => {
      const served = storage.kind(apiVersion, kind)
      return served ? storage.list(served).items : []
    }
    const find = (kind: string, name: { namespace?: string; name: string }) =>
      storage.find(storage.kind("v1", kind)!, name)

    function build(timers: Timers) {
      if (isStopped) return
      const ofRoutes = plan({
        ...{ controllerName, supportedFeatures },
        classes: all(version, "GatewayClass"),
        gateways: all(version, "Gateway"),
        routes: all(version, "HTTPRoute"),
        grants: all("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
        service: name => find("Service", name),
        namespace: name => find("Namespace", { name }),
        refusal: route => refusal?.(route),
      })
      const ofProxies = planProxies({
        proxies: all(proxyVersion, "HTTPProxy"),
        gateways: ofRoutes.gateways,
        service: name => find("Service", name),
        refusal: proxy => refusal?.(proxy),
      })
      const ofTraefik = planTraefik({
        ingressRoutes: all(traefikVersion, "IngressRoute"),
        traefikServices: all(traefikVersion, "TraefikService"),
        gateways: ofRoutes.gateways,
        service: name => find("Service", name),
        pods: name => podsIn(all("discovery.k8s.io/v1", "EndpointSlice"), name),
        refusal: object => refusal?.(object),
      })
      const next = {
        applied: [...ofRoutes.applied, ...ofProxies.applied, ...ofTraefik],
        reports: [...ofRoutes.reports, ...ofProxies.reports],
      }
      const { routes } = effect
      const isNew = next.applied.length !== routes.length || next.applied.some((each, at) => !isSame(each, routes[at]))
      if (isNew || coming.length > 0) stream(next.applied, timers)
      timers.after(jitter(random, reportMs), () => {
        if (!isStopped) for (const report of next.reports) write(world, report)
      })
    }

    /** One after another, each with its effect. A change that comes meanwhile begins from what is there. */
    function stream(applied: readonly AppliedRoute[], timers: Timers) {
      const { clusters } = effect
      const named = servicesIn(applied)
      const stay = new Set([...clusters].filter(each => named.has(each)))
      const steps: Partial<Effect>[] = [
        ...(stay.size < clusters.size ? [{ clusters: stay }] : []),
        { routes: applied },
        ...(stay.size < named.size ? [{ clusters: named }] : []),
      ]
      coming = steps
      const go = () => {
        if (coming !== steps) return
        effect = { ...effect, ...steps.shift() }
        for (const listener of [...listeners]) listener()
        if (steps.length > 0) timers.after(streamMs, go)
      }
      go()
    }

    return {
      name: "gateway",
      start() {
        installGatewayApi(storage)
        const timers = createTimers(clock)
        let isDue = false
        look = () => {
          if (isDue || isStopped) return
          isDue = true
          timers.after(jitter(random, effectMs), () => {
            isDue = false
            build(timers)
          })
        }
        const heard = [
          [version, "GatewayClass"],
          [version, "Gateway"],
          [version, "HTTPRoute"],
          [proxyVersion, "HTTPProxy"],
          [traefikVersion, "IngressRoute"],
          [traefikVersion, "TraefikService"],
          ["gateway.networking.k8s.io/v1beta1", "ReferenceGrant"],
          ["v1", "Service"],
        ].map(([apiVersion, kind]) =>
          storage.subscribe(storage.kind(apiVersion!, kind!)!, ({ object, before }) => {
            if (!before || hasNews(before, object)) look?.()
          }),
        )
        // Envoy follows endpoints by itself.
        const onPods = () => all(traefikVersion, "TraefikService").length > 0 && look?.()
        heard.push(storage.subscribe(storage.kind("discovery.k8s.io/v1", "EndpointSlice")!, onPods))
        look()
        return () => {
          for (const stop of heard) stop()
          timers.clear()
          look = undefined
        }
      },
    }
  }

  return {
    part,
    routes: () => effect.routes,
    clusters: () => effect.clusters,
    onRoutes(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop() {
      isStopped = true
    },
    resume() {
      isStopped = false
      look?.()
    },
    refuse(why) {
      refusal = why
      look?.()
    },
  }
}

/** Every Service that a rule names, with a weight or without one. */
function servicesIn(applied: readonly AppliedRoute[]): ReadonlySet<string> {
  const named = applied.flatMap(({ route }) =>
    (route.spec.rules ?? []).flatMap(({ backendRefs = [], filters = [] }: Json) => {
      const copies = filters.flatMap(({ requestMirror }: Json) => (requestMirror ? [requestMirror.backendRef] : []))
      return [...backendRefs, ...copies].map(
        ({ namespace = route.metadata.namespace, name }: Json) => `${namespace}/${name}`,
      )
    }),
  )
  return new Set(named)
}

/** Its own status is no news. A deleted object is: its last state differs in nothing but the version. */
const hasNews = (before: Obj, { metadata, spec, status }: Obj): boolean =>
  before.metadata.generation !== metadata.generation ||
  JSON.stringify(before.spec) !== JSON.stringify(spec) ||
  JSON.stringify(before.status) === JSON.stringify(status)

const isSame = (one: AppliedRoute, other: AppliedRoute | undefined): boolean =>
  one.route.metadata.uid === other?.route.metadata.uid &&
  one.route.metadata.generation === other?.route.metadata.generation &&
  String(one.gateways) === String(other?.gateways)

/** Writes a status, if it says something new. What changed meanwhile is reported when it has been read. */
function write({ storage, clock }: PhysicsWorld, { object, status }: Report): void {
  const kind = storage.kind(object.apiVersion, object.kind)
  const current = kind && storage.find(kind, object.metadata)
  if (!current || current.metadata.uid !== object.metadata.uid) return
  const now = formatInstant(clock.now())
  const next = dated(status, current.status, { generation: object.metadata.generation, now })
  if (JSON.stringify(next) === JSON.stringify(current.status)) return
  try {
    storage.update(kind, { ...current, status: next }, { subresource: "status", fieldManager: "gateway" })
  } catch (error) {
    if (!(error instanceof StatusError)) throw error // the namespace is being deleted
  }
}

/** Conditions with their time and generation: wherever a list of conditions stands in a status. */
function dated(next: Json, before: Json, about: { generation: number | undefined; now: string }): Json {
  if (Array.isArray(next)) return next.map((each, at) => dated(each, before?.[at], about))
  if (typeof next !== "object" || next === null) return next
  return Object.fromEntries(
    Object.entries(next).map(([name, value]) => [
      name,
      name === "conditions"
        ? conditionsOf(value as Condition[], before?.conditions, about)
        : dated(value, before?.[name], about),
    ]),
  )
}

function conditionsOf(next: Condition[], before: Json, { generation, now }: Json): Json[] {
  return next.map(condition => {
    const old = before?.find(({ type }: Condition) => type === condition.type)
    const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : now
    // A condition of another controller has all of it already.
    return { observedGeneration: generation, lastTransitionTime, ...condition }
  })
}

import { formatInstant } from "#lib/instant.ts"
import { jitter } from "#runtime/random.ts"
import type { Json, Obj } from "../object.ts"
import { createTimers, type Timers } from "../physics/timers.ts"
import type { Part, PhysicsWorld } from "../physics/world.ts"
import { StatusError } from "../status-error.ts"
import { installGatewayApi } from "./definitions.ts"
import { type AppliedRoute, type Condition, plan, type Report } from "./plan.ts"

/**
 * A gateway as Contour with Envoy is one: it takes routes over after a while, and reports it later still. Its faults
 * concern what reads the API; the routes in effect stay as they are then, as Envoy goes on without Contour.
 */
export type SimulatedGateway = {
  /** The moving part, for the parts of a cluster. It installs the kinds of the Gateway API where they are missing. */
  part(world: PhysicsWorld): Part
  /** The routes in effect. */
  routes(): readonly AppliedRoute[]
  /** Called right after the routes in effect changed. */
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
  /** What the class publishes; Contour publishes none. */
  supportedFeatures?: readonly string[]
}

const version = "gateway.networking.k8s.io/v1"

export function createGateway(options: GatewayOptions = {}): SimulatedGateway {
  const { controllerName = "projectcontour.io/gateway-controller", effectMs = 150, reportMs = 50 } = options
  const { supportedFeatures = [] } = options
  const listeners = new Set<() => void>()
  let routes: readonly AppliedRoute[] = []
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
      const next = plan({
        ...{ controllerName, supportedFeatures },
        classes: all(version, "GatewayClass"),
        gateways: all(version, "Gateway"),
        routes: all(version, "HTTPRoute"),
        grants: all("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
        service: name => find("Service", name),
        namespace: name => find("Namespace", { name }),
        refusal: route => refusal?.(route),
      })
      const isNew = next.applied.length !== routes.length || next.applied.some((each, at) => !isSame(each, routes[at]))
      routes = next.applied
      if (isNew) for (const listener of [...listeners]) listener()
      timers.after(jitter(random, reportMs), () => {
        if (!isStopped) for (const report of next.reports) write(world, report)
      })
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
          ["gateway.networking.k8s.io/v1beta1", "ReferenceGrant"],
          ["v1", "Service"],
        ].map(([apiVersion, kind]) =>
          storage.subscribe(storage.kind(apiVersion!, kind!)!, ({ object, before }) => {
            if (!before || hasNews(before, object)) look?.()
          }),
        )
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
    routes: () => routes,
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

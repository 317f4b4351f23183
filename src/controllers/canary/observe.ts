import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { withoutOwner } from "#core/canary/before.ts"
import { cookiesOf } from "#core/canary/cookies.ts"
import type { Decision } from "#core/canary/decision.ts"
import { asRouted, effective } from "#core/canary/effective.ts"
import { trialNameOf } from "#core/canary/idle.ts"
import type { QueryValues } from "#core/canary/query-template.ts"
import { ratioProblem } from "#core/canary/ratio.ts"
import { isRouter, type RouteContext, type RouteObject, type Router } from "#core/canary/router.ts"
import { decide } from "#core/canary/run.ts"
import {
  type HashLabel,
  hashLabelOf,
  releasedService,
  restoredApex,
  type Services,
  serviceNamesOf,
  serviceProblemsOf,
  servicesOf,
} from "#core/canary/services.ts"
import {
  answerKey,
  type HookAnswer,
  type Problem,
  type ServiceSeen,
  type SetSeen,
  type Sight,
} from "#core/canary/sight.ts"
import type { Check } from "#core/canary/tally.ts"
import { isRoutedOnly } from "#core/canary/targets/index.ts"
import { kindProblem } from "#core/canary/targets/problems.ts"
import { leftService, routedServices } from "#core/canary/targets/service-revision.ts"
import { sharesPods } from "#core/canary/targets/shared.ts"
import { parseInstant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { checksumIn, imagesIn, type Json, readMarks, readSet, revisionIn, troubleIn } from "./facts.ts"
import { canaryFinalizer, services as serviceResource } from "./resources.ts"
import { observeScalers } from "./scalers.ts"
import { seenService, sideOfService, type TargetSeen } from "./targets/service.ts"
import { seenSet } from "./targets/sets.ts"
import { asRoute, type Near, type World } from "./world.ts"

/** What this process remembers of a Canary: whether a policy holds its target, and how often that was tried. */
export type Memory = { policyHolds?: boolean | undefined; tries: number }
export const newMemory = (): Memory => ({ tries: 0 })

/** The objects as they were read, beside what they mean. */
export type Seen = {
  readonly sight: Sight
  /** What is decided from the sight, where nothing was answered since. */
  readonly decision?: Decision | undefined
  readonly isListed: boolean
  readonly router: Router | undefined
  readonly context: RouteContext | undefined
  readonly objects: {
    readonly workload?: KubeObject | undefined
    readonly trial?: KubeObject | undefined
    readonly sets: ReadonlyMap<string, KubeObject>
    readonly services: Partial<Services>
    readonly route?: RouteObject | undefined
    readonly scalers: ReadonlyMap<string, KubeObject>
  }
}

export function observe(world: World, look: Look<Canary, Memory>): Seen {
  const { key, now, memory } = look
  const canary = effective(look.object)
  const found = world.parts.routerOf(canary)
  const router = isRouter(found) ? found : undefined
  const { near, isCurrent: isNearCurrent, isServed } = world.near(key, router, canary.spec.targetRef.kind)
  const { objects: scalerObjects, isCurrent: areScalersCurrent, ...scaling } = observeScalers(world, key, near, canary)
  const isCurrent = isNearCurrent && areScalersCurrent
  const { namespace } = canary.metadata
  const named = (name: string) => keyOf({ namespace, name })
  const run = canary.status?.run
  const isService = isRoutedOnly(canary)
  const ofSet = sharesPods(canary) ? seenSet(near, canary, named(canary.spec.targetRef.name)) : undefined
  const workload = isService || ofSet ? ofSet?.object : near.deployments.get(named(canary.spec.targetRef.name))?.object
  const checksum = run?.checksum ?? (workload && checksumIn(workload)) ?? ""
  const trial = ofSet
    ? undefined
    : near.deployments.get(named(trialNameOf(canary.spec.targetRef.name, checksum)))?.object
  const { sets, setObjects } = setsOf(near, ofSet ? undefined : workload, trial)
  const services = existingServices(near, canary)
  const other = isService ? seenService(near, canary, services) : ofSet
  const target: TargetSeen = other ?? {
    workload: workload && workloadOf(workload),
    sets,
    trial: trial && trialOf(trial, canary),
  }
  const seenServices = sidesOf(near, canary, services)
  const context = target.workload && contextOf(canary, seenServices, run)
  const routeObject =
    router &&
    context &&
    asRoute(
      (router.kind.kind === "Service" ? near.services : near.routes.get(router.kind.kind))?.get(
        named(router.nameOf(context)),
      )?.object,
      router.kind,
    )
  const accepted =
    router && context && routeObject
      ? router.isAccepted(context, routeObject)
      : { ok: false as const, why: "it does not exist" }
  const tested = trial && [...setObjects.values()].find(set => ownedBy(set, trial))
  const graceOverAt = (parseInstant(run?.progressAt) ?? now) + pullGraceMs
  const trouble = ofSet ? ofSet.trouble : tested && troubleIn(podsOf(near, tested), tested)
  const sight: Sight = {
    canary,
    now,
    problem: problemOf(world, canary, found, isServed, services, run?.sizes.full ?? target.workload?.size ?? 0),
    hasFinalizer: ((canary.metadata as Json).finalizers ?? []).includes(canaryFinalizer),
    workload: target.workload,
    sets: target.sets,
    trial: target.trial,
    set: target.set,
    ...scaling,
    trouble: trouble && {
      ...trouble,
      ...(trouble.reason === "ImageUnavailable" && { isFatal: now >= graceOverAt, fatalAt: graceOverAt }),
    },
    services: {
      ...seenServices,
      areMade: hashes => {
        const wanted = wantedServices(canary, workload, hashes, services)
        return (["apex", "source", "target"] as const).every(
          role => services[role] && wanted[role] && isSame(wanted[role], services[role]),
        )
      },
    },
    route: {
      split: router && context && routeObject ? router.splitIn(context, routeObject) : undefined,
      isAccepted: accepted.ok,
      why: accepted.ok ? "" : accepted.why,
    },
    routesBySelector: router?.kind.kind === "Service",
    // No policy holds a set for a Canary: the hold stands between runs.
    policyHolds: ofSet ? false : memory.policyHolds,
    ...(canary.metadata.deletionTimestamp === undefined
      ? { isLeft: false }
      : leaving(leftOf(canary, services, router, context, routeObject), routeObject, accepted.ok)),
    answers: new Map(),
  }
  return {
    ...(isCurrent ? answeredBy(world, key, sight) : { sight }),
    isListed: isCurrent,
    router,
    context,
    objects: {
      workload,
      trial,
      sets: ofSet?.revisions ?? setObjects,
      services,
      route: routeObject,
      scalers: scalerObjects,
    },
  }
}

const pullGraceMs = 60_000

/** The same look decides with the answers that are there, and asks for those that are not. */
function answeredBy(world: World, key: string, sight: Sight): Pick<Seen, "sight" | "decision"> {
  const { canary } = sight
  const run = canary.status?.run
  const decision = decide(sight)
  const { asks } = decision
  if (!run || (asks.hooks.length === 0 && !asks.round)) return { sight, decision }
  const answers = new Map<string, HookAnswer>()
  for (const ask of asks.hooks) {
    const call = { key, canary, runId: run.id, checksum: run.checksum, ...ask }
    const answer = world.hooks ? world.hooks.answerOf(call) : { yes: false, why: noWay("call hooks"), at: sight.now }
    if (answer) answers.set(answerKey(ask), answer)
  }
  const round = asks.round && { key, canary, runId: run.id, values: valuesOf(canary, run), ...asks.round }
  const checks = round && (world.measuring ? world.measuring.checksOf(round) : unmeasured(canary))
  return answers.size === 0 && !checks ? { sight, decision } : { sight: { ...sight, answers, checks } }
}

const noWay = (what: string) => `this controller was started without a way to ${what}`

const unmeasured = ({ spec }: Canary): readonly Check[] =>
  spec.analysis.metrics.map(({ name }) => ({ name, verdict: "Error", why: noWay("measure") }))

const valuesOf = (canary: Canary, run: NonNullable<NonNullable<Canary["status"]>["run"]>): QueryValues => ({
  name: canary.metadata.name,
  namespace: canary.metadata.namespace ?? "",
  target: run.target.workload ?? "",
  source: run.source.workload ?? "",
  revision: run.target.hash,
  service: serviceNamesOf(canary).apex,
  ingress: canary.spec.ingressRef?.name ?? "",
  route: canary.spec.routeRef?.name ?? serviceNamesOf(canary).apex,
  interval: "",
  variables: {},
})

const ownedBy = (set: KubeObject, { metadata }: KubeObject) =>
  (set.metadata.ownerReferences ?? []).some(({ uid, controller }) => controller && uid === metadata.uid)

const podsOf = (near: Near, set: KubeObject) =>
  [...near.pods.keysBy("owner", set.metadata.uid ?? "")].flatMap(key => near.pods.get(key) ?? [])

function setsOf(near: Near, workload: KubeObject | undefined, trial: KubeObject | undefined) {
  const setObjects = new Map<string, KubeObject>()
  const sets: SetSeen[] = []
  for (const [owner, by] of [
    ["user", workload],
    ["trial", trial],
  ] as const) {
    if (!by) continue
    for (const key of near.sets.keysBy("owner", by.metadata.uid ?? "")) {
      const object = near.sets.get(key)?.object
      if (!object || object.metadata.deletionTimestamp) continue
      setObjects.set(object.metadata.name, object)
      sets.push(readSet(object, owner, podsOf(near, object).filter(({ isReady }) => isReady).length))
    }
  }
  sets.sort((a, b) => (a.name < b.name ? -1 : 1))
  return { sets, setObjects }
}

function workloadOf(object: KubeObject): Sight["workload"] {
  const { metadata, spec, status = {} } = object as Json
  return {
    name: metadata.name,
    uid: metadata.uid,
    size: spec.replicas ?? 1,
    generation: metadata.generation ?? 0,
    isObserved: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    isPaused: spec.paused === true,
    ...readMarks(object),
    checksum: checksumIn(object),
    images: imagesIn(object),
    revision: revisionIn(object),
    updated: status.updatedReplicas ?? 0,
  }
}

function trialOf(object: KubeObject, canary: Canary): Sight["trial"] {
  const { metadata, spec, status = {} } = object as Json
  const conditions: Json[] = status.conditions ?? []
  const isObserved = (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
  return {
    name: metadata.name,
    isOurs: (metadata.ownerReferences ?? []).some(({ uid }: Json) => uid === canary.metadata.uid),
    isGoing: metadata.deletionTimestamp !== undefined,
    size: spec.replicas ?? 1,
    checksum: checksumIn(object),
    isPaused: spec.paused === true,
    isPauseSeen: spec.paused === true && isObserved && conditions.some(({ reason }) => reason === "DeploymentPaused"),
  }
}

function existingServices(near: Near, canary: Canary): Partial<Services> {
  const { namespace } = canary.metadata
  const entries = Object.entries(serviceNamesOf(canary)).flatMap(([role, name]) => {
    const object = asRoute(near.services.get(keyOf({ namespace, name }))?.object, serviceResource)
    return object ? [[role, object] as const] : []
  })
  return Object.fromEntries(entries)
}

function sidesOf(
  near: Near,
  canary: Canary,
  services: Partial<Services>,
): { source?: ServiceSeen; target?: ServiceSeen } {
  const names = serviceNamesOf(canary)
  const side = (role: "source" | "target"): ServiceSeen | undefined => {
    const object = services[role] as Json | undefined
    if (!object) return undefined
    if (isRoutedOnly(canary)) return sideOfService(near, services[role]!)
    const ready: Record<string, number> = {}
    for (const key of near.slices.keysBy("service", names[role]))
      for (const uid of near.slices.get(key)?.ready ?? []) {
        const hash = hashOfPod(near, uid, hashLabelOf(canary))
        if (hash !== undefined) ready[hash] = (ready[hash] ?? 0) + 1
      }
    return { hash: object.spec?.selector?.[hashLabelOf(canary)] ?? "", ready }
  }
  const [source, target] = [side("source"), side("target")]
  return { ...(source && { source }), ...(target && { target }) }
}

/** A ready pod, by its revision. */
function hashOfPod(near: Near, uid: string, label: HashLabel): string | undefined {
  for (const key of near.pods.keysBy("uid", uid)) {
    const pod = near.pods.get(key)
    if (pod?.isReady) return pod.labels[label]
  }
  return undefined
}

export function contextOf(
  canary: Canary,
  services: { source?: ServiceSeen | undefined; target?: ServiceSeen | undefined },
  run: NonNullable<Canary["status"]>["run"] | undefined,
): RouteContext {
  const cookies = cookiesOf(canary, run)
  return {
    canary: asRouted(canary, services, run),
    ...(cookies && { cookies }),
    services: serviceNamesOf(canary),
    hashes: {
      source: services.source?.hash ?? run?.source.hash ?? "",
      target: services.target?.hash ?? run?.target.hash,
    },
  }
}

export function wantedServices(
  canary: Canary,
  workload: KubeObject | undefined,
  hashes: RouteContext["hashes"],
  existing: Partial<Services>,
): Partial<Services> {
  if (isRoutedOnly(canary)) return routedServices(canary, hashes, existing)
  if (!workload) return {}
  const { spec } = workload as Json
  const containers = spec.template.spec.containers ?? []
  const made = (each: RouteContext["hashes"]) =>
    servicesOf(canary, each, existing, spec.selector.matchLabels ?? {}, hashLabelOf(canary), containers)
  // Pods of a StatefulSet find each other by this one, whatever their revision.
  const isOfPeers = spec.serviceName === serviceNamesOf(canary).apex
  return isOfPeers ? { ...made(hashes), apex: made({ source: hashes.source }).apex } : made(hashes)
}

/** What is left of each object when the Canary goes; undefined where it is deleted. */
export function leftOf(
  canary: Canary,
  services: Partial<Services>,
  router: Router | undefined,
  context: RouteContext | undefined,
  route: RouteObject | undefined,
) {
  const isReverted = canary.spec.revertOnDeletion
  const left = new Map<RouteObject, RouteObject | undefined>()
  if (router && context && route && router.kind.kind !== "Service")
    left.set(route, isReverted ? router.restored(context, route) : withoutOwner(route))
  for (const [role, object] of Object.entries(services)) {
    if (isRoutedOnly(canary)) {
      if (role !== "apex") left.set(object, leftService(object, isReverted))
      continue
    }
    const isRouted = role === "apex" && router?.kind.kind === "Service" && context
    const plain = isReverted && isRouted ? (router.restored(context, object) ?? object) : object
    left.set(object, isReverted ? restoredApex(plain) : releasedService(object, hashLabelOf(canary)))
  }
  return left
}

function leaving(left: ReturnType<typeof leftOf>, route: RouteObject | undefined, isAccepted: boolean) {
  const isSo = (object: RouteObject) => isSame(object, left.get(object))
  return {
    isLeft: [...left.keys()].every(isSo),
    isRouteGoing: route !== undefined && left.has(route) && isSo(route) && !isAccepted,
  }
}

function problemOf(
  world: World,
  canary: Canary,
  found: ReturnType<World["parts"]["routerOf"]>,
  isServed: boolean,
  services: Partial<Services>,
  size: number,
): Problem | undefined {
  const unsupported = kindProblem(canary, size)
  if (unsupported) return unsupported
  if (!isRouter(found)) return { reason: found.reason, message: `${found.field}: ${found.message}` }
  const first = found.problemsOf(canary)[0] ?? ratioProblem(canary, size)
  if (first) return { reason: first.reason, message: `${first.field}: ${first.message}` }
  if (!isServed) {
    const { kind, group, version } = found.kind
    const message = `provider: the cluster does not serve ${kind} of ${group}/${version}: install it, or write provider: kubernetes`
    return { reason: "RouteMissing", message }
  }
  const older = world.rivals(canary).filter(each => isBefore(each, canary))[0]
  if (older)
    return { reason: "Conflict", message: `Canary ${older.metadata.name} has the same target: delete one of them` }
  return serviceProblemsOf(canary, services)[0]
}

function isBefore(a: Canary, b: Canary): boolean {
  const time = ({ metadata }: Canary) => metadata.creationTimestamp ?? ""
  if (a.metadata.uid === b.metadata.uid) return false
  return time(a) === time(b) ? a.metadata.name < b.metadata.name : time(a) < time(b)
}

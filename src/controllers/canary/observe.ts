import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { withoutOwner } from "#core/canary/before.ts"
import { checksumOf } from "#core/canary/checksum.ts"
import { withMark } from "#core/canary/config-refs.ts"
import { cookiesOf } from "#core/canary/cookies.ts"
import type { Decision } from "#core/canary/decision.ts"
import { asRouted, effective } from "#core/canary/effective.ts"
import { metricProblem } from "#core/canary/metric-problem.ts"
import { unnamedScaler } from "#core/canary/oam.ts"
import { isOfComponent } from "#core/canary/provider.ts"
import type { QueryValues } from "#core/canary/query-template.ts"
import { ratioProblem } from "#core/canary/ratio.ts"
import { planProblem } from "#core/canary/rollout-plan.ts"
import { isRouter, type RouteContext, type RouteObject, type Router } from "#core/canary/router.ts"
import { decide } from "#core/canary/run.ts"
import { endedLabel, trialNameOf } from "#core/canary/run-object.ts"
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
import { answerKey, type HookAnswer, type Problem, type ServiceSeen, type Sight } from "#core/canary/sight.ts"
import type { Check } from "#core/canary/tally.ts"
import { isRoutedOnly } from "#core/canary/targets/index.ts"
import { kindProblem } from "#core/canary/targets/problems.ts"
import { leftService, routedServices } from "#core/canary/targets/service-revision.ts"
import { sharesPods } from "#core/canary/targets/shared.ts"
import { parseInstant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { budgetsOver } from "./budgets.ts"
import { type Json, readMarks, revisionIn, troubleIn } from "./facts.ts"
import type { KeptWorkload, WithTemplate } from "./kept.ts"
import { callFor, roundFor } from "./questions.ts"
import { podsOf, setsOf } from "./replica-sets.ts"
import { canaryFinalizer, services as serviceResource } from "./resources.ts"
import { observeScalers } from "./scalers.ts"
import { scaledOf, seenComponent } from "./targets/component.ts"
import { seenService, sideOfService, type TargetSeen } from "./targets/service.ts"
import { seenSet } from "./targets/sets.ts"
import { asRoute, type Near, type World } from "./world.ts"

/** What this process remembers of a Canary: whether a policy holds its target, and how often that was tried. */
export type Memory = {
  policyHolds?: boolean | undefined
  tries: number
  /** Queries are read once for each generation of the spec. */
  metrics?: { readonly generation: number; readonly problem: Problem | undefined }
}
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
    readonly workload?: KeptWorkload | undefined
    readonly trial?: KeptWorkload | undefined
    /** ReplicaSets or ControllerRevisions by name. */
    readonly sets: ReadonlyMap<string, WithTemplate>
    /** The workloads of the revisions of a component, by name. */
    readonly revisions?: ReadonlyMap<string, KubeObject>
    readonly services: Partial<Services>
    readonly route?: RouteObject | undefined
    readonly scalers: ReadonlyMap<string, KubeObject>
    /** Snapshots of this Canary by name, with their uids. */
    readonly snapshots: ReadonlyMap<string, string>
  }
}

export function observe(world: World, look: Look<Canary, Memory>): Seen {
  const { key, now, memory } = look
  const canary = effective(look.object)
  const found = world.parts.routerOf(canary)
  const router = isRouter(found) ? found : undefined
  const { near, isCurrent: isNearCurrent, isServed } = world.near(key, router, canary.spec.targetRef.kind)
  const ofComponent = isOfComponent(canary) ? seenComponent(near, canary) : undefined
  const scaled = ofComponent ? scaledOf(ofComponent) : canary.spec.targetRef
  const scalersSeen = observeScalers(world, key, near, canary, scaled)
  const { objects: scalerObjects, isCurrent: areScalersCurrent, ...scaling } = scalersSeen
  const isCurrent = isNearCurrent && areScalersCurrent
  const { namespace } = canary.metadata
  const named = (name: string) => keyOf({ namespace, name })
  const run = canary.status?.run
  const isService = isRoutedOnly(canary)
  const ofSet = sharesPods(canary) ? seenSet(near, canary, named(canary.spec.targetRef.name)) : undefined
  const own = ofSet ?? ofComponent
  const workload = isService || own ? own?.object : near.deployments.get(named(canary.spec.targetRef.name))?.object
  const checksum = run?.checksum ?? workload?.template.facts.checksum ?? ""
  const trial = own ? undefined : near.deployments.get(named(trialNameOf(canary.spec.targetRef.name, checksum)))?.object
  const { sets, setObjects } = ofComponent ?? setsOf(near, ofSet ? undefined : workload, trial)
  const services = existingServices(near, canary)
  const other = isService ? seenService(near, canary, services) : own
  const target: TargetSeen = other ?? {
    workload: workload && workloadOf(workload),
    sets,
    trial: trial && trialOf(trial, canary),
  }
  const seenServices = sidesOf(near, canary, services)
  const context = target.workload && contextOf(canary, seenServices, run, ofComponent?.component)
  const routeObject =
    router &&
    context &&
    asRoute(
      (router.kind.kind === "Service" ? near.services : near.routes.get(router.kind.kind))?.get(
        named(router.nameOf(context)),
      )?.object,
      router.kind,
    )
  const route = routeSeen(router, context, routeObject)
  const tested = trial && [...setObjects.values()].find(set => ownedBy(set, trial))
  const graceOverAt = (parseInstant(run?.progressAt) ?? now) + pullGraceMs
  const trouble = own ? own.trouble : tested && troubleIn(podsOf(near, tested), tested)
  const { configs, snapshots } = configsOf(world, key, near, canary, target, workload)
  const sight: Sight = {
    canary,
    now,
    problem:
      planProblem(canary) ??
      ofComponent?.problem ??
      (ofComponent && !run ? unnamedScaler(canary, scaling.scalers) : undefined) ??
      problemOf(world, canary, found, isServed, services, run?.sizes.full ?? target.workload?.size ?? 0) ??
      metricsOf(canary, memory),
    hasFinalizer: ((canary.metadata as Json).finalizers ?? []).includes(canaryFinalizer),
    workload: target.workload,
    sets: target.sets,
    trial: target.trial,
    set: target.set,
    component: ofComponent?.component,
    configs,
    ...scaling,
    budgets: () => budgetsOver(near, ofSet ? uidsOf([workload]) : uidsOf(setObjects.values()), hashLabelOf(canary)),
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
    route,
    routesBySelector: router?.kind.kind === "Service",
    // No policy holds a set for a Canary: the hold stands between runs.
    policyHolds: ofSet ? false : memory.policyHolds,
    ...(canary.metadata.deletionTimestamp === undefined
      ? { isLeft: false }
      : leaving(leftOf(canary, services, router, context, routeObject), routeObject, route)),
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
      ...(ofComponent && { revisions: ofComponent.revisions }),
      services,
      route: routeObject,
      scalers: scalerObjects,
      snapshots,
    },
  }
}

const uidsOf = (objects: Iterable<KubeObject | undefined>) => [...objects].flatMap(object => object?.metadata.uid ?? [])

const pullGraceMs = 60_000

/** Of the workload's template, and of the revisions that have pods. */
function configsOf(
  world: World,
  key: string,
  near: Near,
  canary: Canary,
  { workload, sets }: TargetSeen,
  object: KeptWorkload | undefined,
): { configs?: Sight["configs"]; snapshots: ReadonlyMap<string, string> } {
  if (!workload?.configs || !object) return { snapshots: new Map() }
  const templates = [workload.configs, ...sets.flatMap(({ size, configs }) => (size > 0 && configs ? [configs] : []))]
  const names = new Set(templates.flatMap(({ refs }) => refs.map(each => each.key)))
  const { snapshots, ...seen } = world.configs.seen(key, canary, names)
  return {
    configs: {
      ...seen,
      snapshots: snapshots.map(({ name, owner }) => ({
        name,
        owner,
        isRead: near.pods.keysBy("snapshot", name).size > 0,
      })),
      checksumWith: mark => checksumOf(withMark(object.template.whole, mark)),
    },
    snapshots: new Map(snapshots.map(({ name, uid }) => [name, uid])),
  }
}

/** The same look decides with the answers that are there, and asks for those that are not. */
function answeredBy(world: World, key: string, sight: Sight): Pick<Seen, "sight" | "decision"> {
  const { canary } = sight
  const run = canary.status?.run
  const decision = decide(sight)
  const { asks } = decision
  if (!run || (asks.hooks.length === 0 && !asks.round)) return { sight, decision }
  const answers = new Map<string, HookAnswer>()
  for (const ask of asks.hooks) {
    const answer = world.hooks
      ? world.hooks.answerOf(callFor(key, canary, run, ask))
      : { yes: false, why: noWay("call hooks"), at: sight.now }
    if (answer) answers.set(answerKey(ask), answer)
  }
  const round = asks.round && roundFor(key, canary, { runId: run.id, values: valuesOf(canary, run), ...asks.round })
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
  sourceRevision: run.source.hash,
  service: serviceNamesOf(canary).apex,
  ingress: canary.spec.ingressRef?.name ?? "",
  route: canary.spec.routeRef?.name ?? serviceNamesOf(canary).apex,
  interval: "",
  variables: {},
})

const ownedBy = (set: KubeObject, { metadata }: KubeObject) =>
  (set.metadata.ownerReferences ?? []).some(({ uid, controller }) => controller && uid === metadata.uid)

function routeSeen(
  router: Router | undefined,
  context: RouteContext | undefined,
  object: RouteObject | undefined,
): Sight["route"] {
  if (!router || !context || !object) return { isAccepted: false, why: "it does not exist" }
  const accepted = router.isAccepted(context, object)
  return {
    split: router.splitIn(context, object),
    isAccepted: accepted.ok,
    why: accepted.ok ? "" : accepted.why,
    isUnderWay: router.isUnderWay?.(context, object),
  }
}

function workloadOf(object: KeptWorkload): Sight["workload"] {
  const { metadata, spec, status } = object as Json
  return {
    name: metadata.name,
    uid: metadata.uid,
    size: spec.replicas ?? 1,
    generation: metadata.generation ?? 0,
    isObserved: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    isPaused: spec.paused === true,
    ...readMarks(object),
    ...object.template.facts,
    revision: revisionIn(object),
    updated: status.updatedReplicas ?? 0,
  }
}

function trialOf(object: KeptWorkload, canary: Canary): Sight["trial"] {
  const { metadata, spec, status } = object as Json
  const conditions: Json[] = status.conditions
  const isObserved = (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
  return {
    name: metadata.name,
    isOurs: (metadata.ownerReferences ?? []).some(({ uid }: Json) => uid === canary.metadata.uid),
    isGoing: metadata.deletionTimestamp !== undefined,
    size: spec.replicas ?? 1,
    checksum: object.template.facts.checksum,
    isPaused: spec.paused === true,
    isEnded: metadata.labels?.[endedLabel] !== undefined,
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
  component: Sight["component"],
): RouteContext {
  const cookies = cookiesOf(canary, run)
  return {
    canary: asRouted(canary, services, run, component),
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
  workload: KeptWorkload | undefined,
  hashes: RouteContext["hashes"],
  existing: Partial<Services>,
): Partial<Services> {
  if (isRoutedOnly(canary)) return routedServices(canary, hashes, existing)
  if (!workload) return {}
  const { spec, template } = workload
  // Of all that is asked for here, only the ports of containers are not at hand.
  const { containers = [] } = (canary.spec.service?.portDiscovery ? template.whole.spec : undefined) ?? ({} as Json)
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

function leaving(left: ReturnType<typeof leftOf>, route: RouteObject | undefined, seen: Sight["route"]) {
  const isSo = (object: RouteObject) => isSame(object, left.get(object))
  const isTurned = route !== undefined && left.has(route) && (seen.isUnderWay || isSo(route))
  return { isLeft: [...left.keys()].every(isSo), isRouteGoing: isTurned && !seen.isAccepted }
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

function metricsOf(canary: Canary, memory: Memory): Problem | undefined {
  const { generation = 0 } = canary.metadata
  if (memory.metrics?.generation === generation) return memory.metrics.problem
  const problem = metricProblem(canary)
  memory.metrics = { generation, problem }
  return problem
}

function isBefore(a: Canary, b: Canary): boolean {
  const time = ({ metadata }: Canary) => metadata.creationTimestamp ?? ""
  if (a.metadata.uid === b.metadata.uid) return false
  return time(a) === time(b) ? a.metadata.name < b.metadata.name : time(a) < time(b)
}

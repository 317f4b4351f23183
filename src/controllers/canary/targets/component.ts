import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { digestOf } from "#core/canary/checksum.ts"
import {
  byAge,
  componentLabel,
  componentRevisionLabel,
  noCommonLabel,
  noComponent,
  noSource,
  selectorOf,
} from "#core/canary/oam.ts"
import { tooSmall } from "#core/canary/rollout-plan.ts"
import { serviceNamesOf } from "#core/canary/services.ts"
import type { ComponentSeen, Problem, RevisionSeen, SetSeen, Sight } from "#core/canary/sight.ts"
import { hashLabel } from "#core/in-place/template.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { keyOf } from "#runtime/resource.ts"
import { type Json, readMarks, troubleIn } from "../facts.ts"
import type { KeptWorkload } from "../kept.ts"
import { podsOf, setsOf } from "../replica-sets.ts"
import { scaledObjects } from "../resources.ts"
import type { Near } from "../world.ts"
import type { TargetSeen } from "./service.ts"

export type ComponentTargetSeen = TargetSeen & {
  readonly component: ComponentSeen
  /** What Services are made from. */
  readonly object?: KeptWorkload | undefined
  readonly setObjects: ReadonlyMap<string, KeptWorkload>
  /** The workloads of both revisions by name. */
  readonly revisions: ReadonlyMap<string, KeptWorkload>
  readonly trouble?: ReturnType<typeof troubleIn>
  readonly problem?: Problem | undefined
}

type Ref = { readonly kind: string; readonly name: string }

const componentOf = ({ metadata }: KeptWorkload): string | undefined => metadata.labels?.[componentLabel]

/** By the component that they are a revision of, and by the workload of OAM that has them. */
export const deploymentIndexes = {
  component: ({ object }: Held<KeptWorkload>) => [componentOf(object)].filter(each => each !== undefined),
  workload: ({ object }: Held<KeptWorkload>) =>
    (object.metadata.ownerReferences ?? []).map(({ kind, name }) => `${kind}/${name}`),
}

/** What a Canary may call this Deployment, and the other revisions of its component. */
export function namesAround(near: Near, object: KeptWorkload): readonly string[] {
  return [object, ...revisionsOf(near, object)].flatMap(({ metadata }) => [
    metadata.name,
    ...(metadata.ownerReferences ?? []).map(({ name }) => name),
  ])
}

/** Every revision of its component. */
function revisionsOf(near: Near, object: KeptWorkload): readonly KeptWorkload[] {
  const component = componentOf(object)
  const keys = component === undefined ? [] : [...near.deployments.keysBy("component", component)]
  return keys.flatMap(key => near.deployments.get(key)?.object ?? [])
}

/** The Deployment of a workload: itself, or the one that it has. */
function deploymentOf(near: Near, namespace: string, { kind, name }: Ref): KeptWorkload | undefined {
  if (kind === "Deployment") return standing(near.deployments.get(keyOf({ namespace, name }))?.object)
  return [...near.deployments.keysBy("workload", `${kind}/${name}`)].flatMap(
    key => standing(near.deployments.get(key)?.object) ?? [],
  )[0]
}

const standing = (object: KeptWorkload | undefined) => (object?.metadata.deletionTimestamp ? undefined : object)
const sizeOf = (object: KeptWorkload): number => object.spec.replicas ?? 1
const titleOf = ({ kind, name }: Ref) => `${kind} ${name}`

/** A revision is a workload with its template: the same template under another name is another one. */
const checksumOf = (name: string, template: string) => digestOf([name, template])

/** A component as a workload that is always held: nothing but the route gives requests to a workload that is new. */
export function seenComponent(near: Near, canary: Canary): ComponentTargetSeen {
  const namespace = canary.metadata.namespace ?? ""
  const { phase, run } = canary.status ?? {}
  const named = deploymentOf(near, namespace, canary.spec.targetRef)
  const ofRun = (name: string | undefined) => deploymentOf(near, namespace, { kind: "Deployment", name: name ?? "" })
  const selected = selectedHash(near, canary)
  const [source, target] = run
    ? [ofRun(run.source.workload), ofRun(run.target.workload)]
    : [named && sourceOf(near, canary, named, selected), named]
  const { sets, setObjects } = setsOf(near, source, target)
  // What answered is gone, and nothing else has pods.
  const isLeft = !run && !source && named !== undefined && selected !== undefined && !isSelected(near, named, selected)
  const seen = {
    source: source && revisionOf(near, source, run?.source.hash),
    target: target && revisionOf(near, target, run?.target.hash),
  }
  const isTurned = run !== undefined && run.target.hash !== "" && selected === run.target.hash
  const isMoved =
    isTurned && (!seen.source || seen.source.size === 0 || (!seen.source.scaler && seen.target?.scaler !== undefined))
  const tested =
    target && [...setObjects.values()].find(set => isOwned(set, target) && hashIn(set) === seen.target?.hash)
  const trouble = tested && troubleIn(podsOf(near, tested), tested)
  return {
    workload: workloadOf(canary, named, seen),
    sets: sets.map(set => setOf(set, setObjects, { source, target, isAlone: run ? isMoved : !source })),
    ...(run && target && { trial: trialOf(target) }),
    component: { ...seen, isFirst: phase === undefined || phase === "Initializing" || isLeft },
    object: selecting(target ?? source, source),
    setObjects,
    revisions: new Map([source, target].flatMap(each => (each ? [[each.metadata.name, each] as const] : []))),
    ...(trouble && { trouble }),
    problem: problemOf(near, canary, { source, target, named }) ?? (run ? undefined : sizeProblem(canary, seen.source)),
  }
}

const isOwned = (set: KeptWorkload, { metadata }: KeptWorkload) =>
  (set.metadata.ownerReferences ?? []).some(({ uid, controller }) => controller && uid === metadata.uid)

const hashIn = ({ metadata }: KeptWorkload) => metadata.labels?.[hashLabel] ?? ""

/** The pods that the Service of the running revision selects. */
function selectedHash(near: Near, canary: Canary): string | undefined {
  const key = keyOf({ namespace: canary.metadata.namespace, name: serviceNamesOf(canary).source })
  return (near.services.get(key)?.object as Json | undefined)?.spec?.selector?.[hashLabel]
}

/**
 * The workload that answers, where it is not the target: the one that the Service of the running revision selects, the one
 * that the spec names, or the newest other one that has pods.
 */
function sourceOf(
  near: Near,
  canary: Canary,
  target: KeptWorkload,
  selected: string | undefined,
): KeptWorkload | undefined {
  const { sourceRef } = canary.spec
  const others = revisionsOf(near, target).filter(each => standing(each) && each !== target && sizeOf(each) > 0)
  const has = (each: KeptWorkload) => hasHash(near, each, selected)
  const answering = others.find(has)
  if (answering) return answering
  if (sizeOf(target) > 0 && has(target)) return undefined
  if (sourceRef) {
    const found = deploymentOf(near, canary.metadata.namespace ?? "", sourceRef)
    return found && found !== target && sizeOf(found) > 0 ? found : undefined
  }
  const isReady = (each: KeptWorkload) => setsIn(near, each).some(set => readyOf(near, set) > 0)
  return others.filter(isReady).toSorted((a, b) => byAge(agedOf(a), agedOf(b)))[0]
}

const hasHash = (near: Near, each: KeptWorkload, hash: string | undefined) =>
  setsIn(near, each).some(set => hashIn(set) === hash)

/** A workload of the component has the pods that are selected, or had them. */
const isSelected = (near: Near, named: KeptWorkload, hash: string) =>
  [named, ...revisionsOf(near, named)].some(each => standing(each) && hasHash(near, each, hash))

const agedOf = ({ metadata }: KeptWorkload) => ({
  revision: metadata.labels?.[componentRevisionLabel] ?? metadata.name,
  name: metadata.name,
})

const setsIn = (near: Near, { metadata }: KeptWorkload) =>
  [...near.sets.keysBy("owner", metadata.uid ?? "")].flatMap(key => standing(near.sets.get(key)?.object) ?? [])

const readyOf = (near: Near, set: KeptWorkload) => podsOf(near, set).filter(({ isReady }) => isReady).length

function revisionOf(near: Near, object: KeptWorkload, recorded: string | undefined): RevisionSeen {
  const sets = setsIn(near, object)
  const own = sets.find(set => set.template.facts.checksum === object.template.facts.checksum)
  const pods = sets.flatMap(set => podsOf(near, set))
  return {
    name: object.metadata.name,
    hash: recorded || (own ? hashIn(own) : ""),
    size: sizeOf(object),
    ready: pods.filter(({ isReady }) => isReady).length,
    scaler: scalerOf(near, object.metadata.name),
    isTroubled: sets.some(set => troubleIn(podsOf(near, set), set) !== undefined),
  }
}

/** An autoscaler of this workload. One that KEDA has made counts like its ScaledObject. */
function scalerOf(near: Near, name: string): RevisionSeen["scaler"] {
  for (const cache of [near.autoscalers, near.routes.get(scaledObjects.kind)])
    for (const key of cache?.keysBy("target", name) ?? []) {
      const { spec = {} } = (cache?.get(key)?.object ?? {}) as Json
      if ((spec.scaleTargetRef?.kind ?? "Deployment") !== "Deployment") continue
      return { least: Number(spec.minReplicas ?? spec.minReplicaCount ?? 1) }
    }
  return undefined
}

type Both = { readonly source?: RevisionSeen | undefined; readonly target?: RevisionSeen | undefined }

/** Where the target was deleted during a run, the run goes back. */
function workloadOf(canary: Canary, named: KeptWorkload | undefined, { source, target }: Both): Sight["workload"] {
  const run = canary.status?.run
  if (!named && !(run && source)) return undefined
  const own = Math.max(source?.size ?? 0, target?.size ?? 0)
  const isScaled = source?.scaler !== undefined || target?.scaler !== undefined
  const size = own === 0 || isScaled ? own : Math.max(own, canary.spec.rolloutPlan?.targetSize ?? 0)
  return {
    name: named?.metadata.name ?? run!.target.workload ?? "",
    uid: named?.metadata.uid ?? "",
    size,
    generation: (named?.metadata as Json | undefined)?.generation ?? 0,
    isObserved: true,
    isPaused: true,
    otherHolder: named && readMarks(named).otherHolder,
    hold: { isStanding: true },
    checksum: named ? checksumOf(named.metadata.name, named.template.facts.checksum) : run!.checksum,
    images: named ? named.template.facts.images : [],
    revision: 0,
    updated: size,
  }
}

/** A revision that answers alone is the component's own. */
function setOf(
  { configs: _, ...set }: SetSeen,
  objects: ReadonlyMap<string, KeptWorkload>,
  {
    source,
    target,
    isAlone,
  }: { source?: KeptWorkload | undefined; target?: KeptWorkload | undefined; isAlone: boolean },
): SetSeen {
  const workload = (set.owner === "user" ? source : target)!.metadata.name
  const owner = set.owner === "trial" && isAlone ? "user" : set.owner
  return { ...set, owner, workload, checksum: checksumOf(workload, objects.get(set.name)!.template.facts.checksum) }
}

const trialOf = (object: KeptWorkload): NonNullable<Sight["trial"]> => ({
  ...{ name: object.metadata.name, size: sizeOf(object) },
  checksum: checksumOf(object.metadata.name, object.template.facts.checksum),
  ...{ isOurs: true, isGoing: false, isPaused: false, isPauseSeen: false },
})

const labelledBy = (object: KeptWorkload) => ({
  labels: object.template.labels,
  matchLabels: (object.spec.selector?.matchLabels ?? {}) as Record<string, string>,
})

/** As a workload that selects the pods of both. */
function selecting(target: KeptWorkload | undefined, source: KeptWorkload | undefined): KeptWorkload | undefined {
  if (!target) return undefined
  const matchLabels = selectorOf(labelledBy(target), source && labelledBy(source))
  return { ...target, spec: { ...target.spec, selector: { matchLabels } } }
}

function sizeProblem({ spec: { rolloutPlan } }: Canary, source: RevisionSeen | undefined): Problem | undefined {
  const wanted = rolloutPlan?.targetSize
  if (wanted === undefined || !source || source.scaler || source.size <= wanted) return undefined
  return tooSmall(wanted, source.name, source.size)
}

type Objects = {
  readonly source?: KeptWorkload | undefined
  readonly target?: KeptWorkload | undefined
  readonly named?: KeptWorkload | undefined
}

function problemOf(near: Near, canary: Canary, { source, target, named }: Objects): Problem | undefined {
  const { targetRef, sourceRef } = canary.spec
  if (!named || !target) return undefined
  if (!sourceRef && componentOf(named) === undefined) return noComponent(titleOf(targetRef))
  const isAnswering = setsIn(near, target).some(set => hashIn(set) === selectedHash(near, canary))
  const isItself = sourceRef && deploymentOf(near, canary.metadata.namespace ?? "", sourceRef) === target
  // In a run that was deleted, and the run goes on with what is left.
  if (!source && sourceRef && !canary.status?.run && !isAnswering && !isItself) return noSource(titleOf(sourceRef))
  const selector = selecting(target, source)!.spec.selector.matchLabels
  return Object.keys(selector).length > 0
    ? undefined
    : noCommonLabel(titleOf(targetRef), source ? `Deployment ${source.metadata.name}` : titleOf(targetRef))
}

/** What its autoscaler scales: the workload that answers. */
export const scaledOf = ({ component: { source, target } }: ComponentTargetSeen): Ref => ({
  kind: "Deployment",
  name: (source ?? target)?.name ?? "",
})

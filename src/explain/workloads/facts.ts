import { holdKinds } from "#core/in-place/hold.ts"
import { type Hold, parseHold, parseNote, type WorkloadNote } from "#core/in-place/marks.ts"
import {
  heldMark,
  inPlaceAnnotation,
  inPlaceStrategies,
  revisionLabel,
  strategyAnnotation,
} from "#core/in-place/names.ts"
import { isAtRest } from "#core/in-place/operation.ts"
import { type PodFacts, readPod } from "#core/in-place/pod.ts"
import { imagesOf, isSameTemplate, type PodTemplate, withoutHash } from "#core/in-place/template.ts"
import { controllerOf } from "#core/pods/pod-facts.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { Workload as Kind } from "#core/workloads/workload-target.ts"
import type { Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"

/** What is read of a Deployment, StatefulSet or DaemonSet, and of what surrounds it. */
export type Sight = {
  readonly workload: KubeObject
  /** ReplicaSets, or ControllerRevisions; those of other workloads may be among them. */
  readonly revisions: readonly KubeObject[]
  /** Pods of other workloads may be among them. */
  readonly pods: readonly KubeObject[]
  readonly budgets: readonly KubeObject[]
  /** Undefined where they cannot be read. */
  readonly nodeImages: readonly KubeObject[] | undefined
  /** Nodes whose pods are not ready, as far as they were read. */
  readonly nodes?: readonly KubeObject[] | undefined
  readonly now: Instant
}

type Lists = Pick<Sight, "revisions" | "pods" | "budgets" | "nodeImages" | "nodes" | "now">

/** Many workloads, each with what belongs to it. Every list is gone through once, however many workloads there are. */
export function sightsOf(workloads: readonly KubeObject[], { revisions, pods, budgets, ...rest }: Lists): Sight[] {
  const ofOwner = ({ metadata }: KubeObject) => controllerOf(metadata)
  const [revisionsBy, podsBy] = [Map.groupBy(revisions, ofOwner), Map.groupBy(pods, ofOwner)]
  const budgetsBy = Map.groupBy(budgets, ({ metadata }) => metadata.namespace)
  return workloads.map(workload => {
    const { uid = "", namespace } = workload.metadata
    const own = revisionsBy.get(uid) ?? []
    const owners = [uid, ...own.map(({ metadata }) => metadata.uid ?? "")]
    return {
      ...rest,
      workload,
      revisions: own,
      pods: owners.flatMap(owner => podsBy.get(owner) ?? []),
      budgets: budgetsBy.get(namespace) ?? [],
    }
  })
}

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
type Json = Record<string, any>

export type WorkloadFacts = {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly generation: number
  readonly isObserved: boolean
  readonly annotations: Readonly<Record<string, string>>
  readonly template: PodTemplate
  /** How many pods there should be. */
  readonly replicas: number
  /** Its own update strategy: of a held workload, the one that it gets back. */
  readonly strategy: Json
  /** Of a StatefulSet: pods go from the highest ordinal, and strictly so unless it says Parallel. */
  readonly ordinals: { readonly isStrict: boolean } | undefined
  readonly isPaused: boolean
  readonly minReadySeconds: number
  readonly deadlineSeconds: number
  /** Its owner asks for updates in place. */
  readonly isOptedIn: boolean
  /**
   * Of an update that is under way. Only with annotation and label: `kubectl rollout undo` may bring back the annotation
   * of long ago.
   */
  readonly hold: Hold | undefined
  /** What its marks name, between two changes too. */
  readonly holder: Pick<Hold, "by" | "name"> | undefined
  /** No update is under way: a standing hold between two of them, or its own controller does a rolling update. */
  readonly rest: "Standing" | "Lent" | undefined
  /** What holds it is in its spec: a pause, a partition above all pods, or OnDelete. */
  readonly isHolding: boolean
  /** The last note, whatever hold it is of. */
  readonly note: WorkloadNote | undefined
  readonly status: Json
}

export function readWorkload(object: KubeObject): WorkloadFacts {
  const { metadata, kind } = object
  const { spec, status = {} } = object as Json
  const { annotations = {}, labels = {}, generation = 0 } = metadata
  const replicas = kind === "DaemonSet" ? (status.desiredNumberScheduled ?? 0) : (spec.replicas ?? 1)
  const held = labels[heldMark] === undefined ? undefined : annotations[heldMark]
  const marked: Hold | undefined = held === undefined ? undefined : (parseHold(held) ?? { by: "", generation: 0 })
  const note = parseNote(annotations[inPlaceAnnotation])
  const rest = marked?.isLent ? "Lent" : isAtRest({ hold: marked, note }) ? "Standing" : undefined
  return {
    kind: kind as Kind,
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    uid: metadata.uid ?? "",
    generation,
    isObserved: (status.observedGeneration ?? 0) >= generation,
    annotations,
    template: spec.template,
    replicas,
    strategy: { ...(spec.strategy ?? spec.updateStrategy), ...(rest !== "Lent" && marked?.original) },
    ordinals: kind === "StatefulSet" ? { isStrict: spec.podManagementPolicy !== "Parallel" } : undefined,
    isPaused: spec.paused === true && rest !== "Standing",
    minReadySeconds: spec.minReadySeconds ?? 0,
    deadlineSeconds: Math.min(spec.progressDeadlineSeconds ?? 600, 86_400),
    isOptedIn: inPlaceStrategies.some(each => each === annotations[strategyAnnotation]),
    hold: rest ? undefined : marked,
    holder: marked,
    rest,
    isHolding: holdKinds[kind as Kind].isInForce(spec),
    note,
    status,
  }
}

/** A change of it is held. */
export const isKept = ({ hold, rest, isHolding }: WorkloadFacts): boolean =>
  isHolding && (hold !== undefined || rest === "Standing")

/** As it is typed: `deploy/web`. */
export const typed = ({ kind, name }: { kind: string; name: string }) => `${workloadKind(kind)!.shortNames[0]}/${name}`

/** The template has these images, and there are some. */
export function hasImages(template: PodTemplate, images: Readonly<Record<string, string>>): boolean {
  const own = imagesOf(template)
  const wanted = Object.entries(images)
  return wanted.length > 0 && wanted.every(([name, image]) => own.get(name) === image)
}

/** One template that the workload has had. */
export type Revision = {
  readonly number: number
  readonly name: string
  readonly template: PodTemplate
  /** Names of pods that were made from it, or have been updated to it. */
  readonly pods: readonly string[]
  /** It is what the workload says now. */
  readonly isPresent: boolean
  readonly cause: string
}

const numberAnnotation = "deployment.kubernetes.io/revision"
const causeAnnotation = "kubernetes.io/change-cause"
/** Pods of a DaemonSet are labelled with the hash alone, those of a StatefulSet with the name of the revision. */
const hashLabels = [revisionLabel, "controller.kubernetes.io/hash"]

/** The newest first. */
export function revisionsOf(sight: Sight): Revision[] {
  const workload = readWorkload(sight.workload)
  const pods = podsOf(sight)
  const own = sight.revisions.filter(({ metadata }) => controllerOf(metadata) === workload.uid)
  return own
    .map((object): Revision => {
      const { metadata } = object
      const template = templateOf(object)
      const names = [metadata.name, ...hashLabels.map(label => metadata.labels?.[label])]
      const isOf = ({ owner, labels }: PodFacts) =>
        workload.kind === "Deployment" ? owner === metadata.uid : names.includes(labels[revisionLabel] ?? "none")
      return {
        number: Number((object as Json).revision ?? metadata.annotations?.[numberAnnotation] ?? 0),
        name: metadata.name,
        template,
        pods: pods.filter(isOf).map(({ name }) => name),
        isPresent: isSameTemplate(template, workload.template),
        cause: metadata.annotations?.[causeAnnotation] ?? "",
      }
    })
    .sort((a, b) => b.number - a.number)
}

/** A ControllerRevision is a patch that replaces the template. */
function templateOf(object: KubeObject): PodTemplate {
  const { data, spec } = object as Json
  const { $patch: _, ...template } = data?.spec?.template ?? spec?.template ?? {}
  return withoutHash(template)
}

/** The revision that pods come from: the newest with pods that is not what the workload says now, otherwise that one. */
export const revisionBefore = (revisions: readonly Revision[]): Revision | undefined =>
  revisions.find(({ pods, isPresent }) => pods.length > 0 && !isPresent) ?? revisions.find(({ isPresent }) => isPresent)

/** Pods that are not ending, by name. */
export function podsOf({ workload, revisions, pods }: Sight): PodFacts[] {
  const { uid = "" } = workload.metadata
  const owners = new Set([uid])
  for (const { metadata } of revisions) if (controllerOf(metadata) === uid) owners.add(metadata.uid ?? "")
  return pods
    .flatMap(pod => readPod(pod) ?? [])
    .filter(({ owner }) => owners.has(owner))
    .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }))
}

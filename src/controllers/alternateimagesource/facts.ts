import type { PullFailure } from "#api/v1alpha1/alternateimagesource/index.ts"
import { canaryHolder } from "#core/canary/hold.ts"
import { endedLabel, targetOfRun } from "#core/canary/run-object.ts"
import { repositoryTextOf, sameSource } from "#core/image/equivalent.ts"
import { classify, isHeldBack } from "#core/image/pull-failure.ts"
import { decisionAnnotation, type ImageRecord, parseFailover } from "#core/image/record.ts"
import { isDigest, parseImageReference, repositoryOf } from "#core/image/reference.ts"
import { type PodMark, parseMark } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation } from "#core/in-place/names.ts"
import { type HoldFacts, isHeldNow, isUnderWay, readOptIn } from "#core/in-place/own-hold.ts"
import { mirrorMark, skipMark } from "#core/pods/left-alone.ts"
import { containerStates } from "#core/pods/pod-facts.ts"
import { type Crash, worstCrash } from "#core/pods/steady.ts"
import { fieldOf as field, isObject, textOf } from "#core/workloads/object-facts.ts"
import { Interner } from "#lib/interner.ts"
import { clip, clipMiddle } from "#lib/text.ts"
import type { Projected } from "#runtime/cache/cache.ts"
import type { KubeObject } from "#runtime/resource.ts"

/** The owner of an object, by its controller's owner reference. Without a uid: the one of this name, whichever it is. */
export type Owner = { readonly group: string; readonly kind: string; readonly name: string; readonly uid: string }

export type Container = { readonly name: string; readonly image: string; readonly isInit: boolean }

/** A workload, reduced to the sources of its images. */
export type WorkloadFacts = Projected & {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly owner: Owner | undefined
  readonly containers: readonly Container[]
  readonly isGitOps: boolean
  readonly isDeleting: boolean
  readonly matchLabels: Readonly<Record<string, string>> | undefined
  /** The revision from which a StatefulSet makes pods now; undefined until its controller has seen the template. */
  readonly revision: string | undefined
  /** Our last change of it. */
  readonly decision: ImageRecord | undefined
  /** It is held for an update in place or by a Canary, or being given back: the label goes last. */
  readonly isUpdated: boolean
  /** For a workload that asks for updates in place: what a change of its template has to write beside. */
  readonly inPlace: HoldFacts | undefined
}

/** A pod, reduced to the images that it cannot pull, and those that it runs. */
export type PodFacts = Projected & {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  readonly owner: Owner | undefined
  /** Kept only for pods without an owner; for others the labels of their workload count. */
  readonly labels: Readonly<Record<string, string>> | undefined
  /** Not kept for healthy pods that have an owner. */
  readonly containers: readonly Container[] | undefined
  readonly failing: readonly FailingContainer[]
  /** Images that run, each with its digest. */
  readonly running: readonly { readonly image: string; readonly digest: string }[]
  /** Our last change of it, and the images that its containers had before, by name. */
  readonly decision: ImageRecord | undefined
  /** For a failing pod: the last update in place of it. */
  readonly updated: PodMark | undefined
  /** For a repaired pod: the container with the new image keeps crashing. */
  readonly crash: Crash | undefined
  readonly secrets: readonly string[]
  readonly account: string
  /** "" until it has one. */
  readonly node: string
  /** For a failing pod: the revision of its workload that it was made from, where the workload has revisions. */
  readonly revision: string | undefined
}

/** The label that holds the revision from which a StatefulSet's controller made a pod. */
export const revisionLabel = "controller-revision-hash"

export type FailingContainer = Container & {
  /** Undefined if its node holds the pull back, and no registry was asked. */
  readonly failure: PullFailure | undefined
  readonly message: string
  /** The pod pulls even if its node has the image. */
  readonly pullsAlways: boolean
}

/** Its pods may have another version than its template. The label of a hold goes last. */
export const isHeld = ({ labels }: Pick<WorkloadFacts, "labels">) => Object.hasOwn(labels, heldMark)

type Json = Record<string, unknown>

/** Reads a Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob. Fields that tenants write are untrusted. */
export function readWorkload(object: KubeObject, kind = object.kind ?? ""): WorkloadFacts {
  const { metadata } = object
  const matchLabels = field(field(field(object, "spec"), "selector"), "matchLabels")
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    uid: metadata.uid ?? "",
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    labels: metadata.labels ?? none,
    owner: targetAsOwner(object, kind) ?? ownerOf(metadata as Json),
    containers: containersOf(podSpecOf(object)),
    isGitOps: isGitOps(metadata as Json),
    isDeleting: metadata.deletionTimestamp !== undefined,
    matchLabels: isObject(matchLabels) ? (matchLabels as Record<string, string>) : undefined,
    revision: revisionOf(object),
    decision: parseFailover(mapOf(metadata, "annotations")[decisionAnnotation]),
    isUpdated: isUpdated(object),
    inPlace: readOptIn(kind, object),
  }
}

/** A Canary holds a workload between runs too where no policy does, and only pods tell whether one is under way. */
function isUpdated(object: KubeObject): boolean {
  const holder = (object.metadata.labels ?? none)[heldMark]
  return holder === canaryHolder || (holder !== undefined && (!isHeldNow(object) || isUnderWay(object)))
}

/** The Deployment of a run of a Canary: its pods are the target's, which it is known by the name of. */
function targetAsOwner(object: KubeObject, kind: string): Owner | undefined {
  const name = kind === "Deployment" ? targetOfRun(object) : undefined
  return name === undefined ? undefined : { group: "apps", kind: "deployment", name, uid: "" }
}

/** The run of this Deployment is being given up. */
export const isRunOver = ({ owner, isDeleting, labels }: Pick<WorkloadFacts, "owner" | "isDeleting" | "labels">) =>
  owner?.uid === "" && (isDeleting || Object.hasOwn(labels, endedLabel))

function revisionOf(object: KubeObject): string | undefined {
  const status = field(object, "status")
  const isSeen = Number(field(status, "observedGeneration") ?? 0) >= Number(field(object.metadata, "generation") ?? 0)
  return isSeen ? textOf(field(status, "updateRevision")) || undefined : undefined
}

/** The pod spec of this object: its own, or that of its template. */
function podSpecOf(object: KubeObject): unknown {
  const spec = field(object, "spec")
  if (object.kind === "Pod") return spec
  const job = field(spec, "jobTemplate")
  return field(field(job === undefined ? spec : field(job, "spec"), "template"), "spec")
}

/** The credentials that the pods of an object, or the pod itself, pull with. */
export const pullsAs = (object: KubeObject): Pick<PodFacts, "namespace" | "secrets" | "account"> =>
  credentialsIn(podSpecOf(object), object.metadata.namespace)

const credentialsIn = (spec: unknown, namespace = "") => ({
  namespace,
  secrets: listOf(spec, "imagePullSecrets")
    .map(each => textOf(field(each, "name")))
    .slice(0, 16),
  account: textOf(field(spec, "serviceAccountName")) || "default",
})

export function readPod(object: KubeObject): PodFacts {
  const { metadata } = object
  const [spec, status] = [field(object, "spec"), field(object, "status")]
  const owner = ownerOf(metadata as Json)
  const containers = containersOf(spec)
  const statuses = [...listOf(status, "initContainerStatuses"), ...listOf(status, "containerStatuses")]
  const phase = textOf(field(status, "phase"))
  const isOver = metadata.deletionTimestamp !== undefined || phase === "Succeeded" || phase === "Failed"
  // A mirror pod belongs to the kubelet: the API server cannot change the static pod.
  const isLeftAlone = isOver || isMarked(metadata as Json, skipMark) || isMarked(metadata as Json, mirrorMark)
  const decision = parseFailover(mapOf(metadata, "annotations")[decisionAnnotation])
  const failing = isLeftAlone ? [] : statuses.flatMap(each => failureIn(each, spec, containers, decision))
  const node = textOf(field(spec, "nodeName"))
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    uid: metadata.uid ?? "",
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    owner,
    labels: owner ? undefined : (metadata.labels ?? none),
    containers: owner && failing.length === 0 && !decision ? undefined : containers,
    failing: failing.length > 0 ? failing : noFailures,
    running: runningIn(statuses, containers),
    decision,
    updated: failing.length > 0 ? parseMark(mapOf(metadata, "annotations")[inPlaceAnnotation]) : undefined,
    crash: decision && !isOver ? crashIn(spec, status, decision) : undefined,
    node: nodes.share(node, node),
    revision: failing.length > 0 ? metadata.labels?.[revisionLabel] : undefined,
    ...(failing.length > 0 ? credentialsIn(spec, metadata.namespace) : { secrets: noNames, account: "" }),
  }
}

/** Only for images that we wrote: other crashes are not caused by us. */
function crashIn(spec: unknown, status: unknown, { to }: ImageRecord): Crash | undefined {
  const states = containerStates(spec as Json | undefined, status as Json | undefined)
  const crash = worstCrash(states.filter(({ image }) => image === to))
  return crash?.isLoop ? { ...crash, message: clip(crash.message, 128), said: "" } : undefined
}

/** Only for a container that never started in this pod: a change of its image would restart one that runs. */
function failureIn(
  status: unknown,
  spec: unknown,
  containers: readonly Container[],
  decision: ImageRecord | undefined,
): FailingContainer[] {
  const container = containers.find(({ name }) => name === field(status, "name"))
  const waiting = field(field(status, "state"), "waiting")
  const hasStarted = Number(field(status, "restartCount") ?? 0) > 0 || textOf(field(status, "containerID")) !== ""
  if (!container || !waiting || hasStarted) return []
  const [reason, message] = [textOf(field(waiting, "reason")), textOf(field(waiting, "message")).slice(0, 4096)]
  if (decision && isOldNews(message, container.image, decision.from)) return []
  const failure = classify(reason, message)
  if (!failure && !isHeldBack(reason, message)) return []
  const own = listOf(spec, container.isInit ? "initContainers" : "containers").find(
    each => field(each, "name") === container.name,
  )
  const pullsAlways = field(own, "imagePullPolicy") === "Always"
  // Errors are wrapped at the front, so the cause stands last.
  return [{ ...container, failure, message: clipMiddle(message, 256), pullsAlways }]
}

/** While a kubelet pulls the image that we wrote, it still reports the failure of the image before. */
function isOldNews(message: string, image: string, before: string): boolean {
  const named = repositoriesIn(message)
  const isNamed = (name: string) => {
    const parsed = parseImageReference(name)
    return parsed.ok && (named.has(repositoryTextOf(name)) || named.has(repositoryOf(parsed.reference)))
  }
  return !sameSource(image, before) && isNamed(before) && !isNamed(image)
}

/** Words that may be images, without their tags. */
function repositoriesIn(message: string): Set<string> {
  const words = [...message.matchAll(/(?:^|["\s]|docker:\/\/)([\w.:/[\]-]*\w)/g)]
  return new Set(words.map(([, word]) => repositoryTextOf(word!)))
}

function runningIn(statuses: readonly unknown[], containers: readonly Container[]): PodFacts["running"] {
  const found = statuses.flatMap(status => {
    const container = containers.find(({ name }) => name === field(status, "name"))
    const id = textOf(field(status, "imageID"))
    const digest = id.slice(id.lastIndexOf("@") + 1)
    return container && id.includes("@") && isDigest(digest) ? [shared(container.image, digest)] : []
  })
  return found.length > 0 ? found : noneRunning
}

function containersOf(spec: unknown): readonly Container[] {
  const read = (list: string, isInit: boolean) =>
    listOf(spec, list).flatMap(each => {
      const [name, image] = [textOf(field(each, "name")), textOf(field(each, "image"))]
      return name && image && image.length <= 1024 ? [{ name, image, isInit }] : []
    })
  return [...read("initContainers", true), ...read("containers", false)].slice(0, 256)
}

function ownerOf(metadata: Json): Owner | undefined {
  const reference = listOf(metadata, "ownerReferences").find(each => field(each, "controller") === true)
  if (!reference) return undefined
  const apiVersion = textOf(field(reference, "apiVersion"))
  const owner = {
    group: apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "",
    kind: textOf(field(reference, "kind")).toLowerCase(),
    name: textOf(field(reference, "name")),
    uid: textOf(field(reference, "uid")),
  }
  const id = JSON.stringify(owner)
  return id.length <= 1024 ? owners.share(id, owner) : owner
}
/** A node has many pods. */
const nodes = new Interner<string>(10_000)
/** The pods of a workload have the same. */
const owners = new Interner<Owner>(10_000)

/** Marks that common GitOps tools leave on the objects they manage. */
function isGitOps(metadata: Json): boolean {
  const marks = [...Object.keys(mapOf(metadata, "labels")), ...Object.keys(mapOf(metadata, "annotations"))]
  if (marks.some(mark => gitOpsMarks.some(prefix => mark.startsWith(prefix)))) return true
  if (mapOf(metadata, "labels")["app.kubernetes.io/managed-by"] === "Helm") return true
  return listOf(metadata, "managedFields").some(each => gitOpsManagers.test(textOf(field(each, "manager"))))
}
export const gitOpsMarks = [
  "argocd.argoproj.io/",
  "kustomize.toolkit.fluxcd.io/",
  "helm.toolkit.fluxcd.io/",
  "fleet.cattle.io/",
]
const gitOpsManagers = /^(argocd|kustomize-controller|helm-controller|flux|fleetagent)/

const isMarked = (metadata: Json, mark: string) =>
  mark === mirrorMark
    ? Object.hasOwn(mapOf(metadata, "annotations"), mark)
    : mapOf(metadata, "annotations")[mark] === "true" || mapOf(metadata, "labels")[mark] === "true"

const listOf = (value: unknown, name: string): readonly unknown[] => {
  const list = field(value, name)
  return Array.isArray(list) ? list : noNames
}
const mapOf = (value: unknown, name: string): Json => {
  const map = field(value, name)
  return isObject(map) ? map : {}
}

const none: Readonly<Record<string, string>> = Object.freeze({})
const noNames: readonly never[] = []
const noFailures: readonly FailingContainer[] = []
const noneRunning: PodFacts["running"] = []

/** Thousands of pods run the same image. */
const pairs = new Map<string, { image: string; digest: string }>()
function shared(image: string, digest: string) {
  const key = `${image} ${digest}`
  const known = pairs.get(key)
  if (known) return known
  if (pairs.size >= 10_000) pairs.clear()
  const pair = { image, digest }
  pairs.set(key, pair)
  return pair
}

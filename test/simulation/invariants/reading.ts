import type { Json } from "#cluster-sim/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import { sameImage } from "./images.ts"

// What a record says, read without the code that is judged by it: only the contract and the spec are believed.

export const decisionAnnotation = "autoimagemanager.io/last-decision"
export const fenceAnnotation = "autoimagemanager.io/fence"

/** A status that a ServiceImage controller wrote. The ServiceImage is as it was with it: spec, generation, status. */
export type StatusWrite = { process: number; commit: Commit; serviceImage: Json; takeover: number } // counted per ServiceImage

/** An image that a ServiceImage controller gave to an object. */
export type Stamp = {
  sent: Sent
  commit: Commit
  before: Json
  decision: Json
  /** The last status of the same process before it was sent: what it was decided by. */
  source: StatusWrite | undefined
  /** The ServiceImage as it stood when the stamp was committed. */
  standing: Json | undefined
}

export type Reading = {
  run: Run
  statuses: StatusWrite[]
  stamps: Stamp[]
  /** What became of each object, in order; undefined where it was deleted. */
  lives: ReadonlyMap<string, readonly State[]>
}

type State = { revision: number; at: Instant; object: Json | undefined }

export function read(run: Run): Reading {
  const commits = new Map(run.commits.map(commit => [commit.revision, commit]))
  const statuses: StatusWrite[] = []
  for (const sent of run.sent) {
    const commit = commits.get(sent.revision ?? Number.NaN)
    if (commit && isStatusOf(sent.path))
      statuses.push({ process: sent.process, commit, serviceImage: commit.object, takeover: 0 })
  }
  statuses.sort((a, b) => a.commit.revision - b.commit.revision)
  const last = new Map<string, StatusWrite>()
  for (const status of statuses) {
    const { uid } = status.serviceImage.metadata
    const before = last.get(uid)
    status.takeover = (before?.takeover ?? 0) + (before && isOneLeaders(before, status) ? 0 : 1)
    last.set(uid, status)
  }
  const lives = livesOf(run)
  const stamps = run.sent.flatMap((sent): Stamp[] => {
    const commit = commits.get(sent.revision ?? Number.NaN)
    if (!commit?.before || isStatusOf(sent.path) || isJob(sent.path) || isTouch(sent.body)) return []
    const decision = decisionOf(commit.object)
    const name = String(decision.by ?? "").replace("serviceimage/", "")
    const isSource = ({ process, commit, serviceImage }: StatusWrite) =>
      process === sent.process && commit.revision <= sent.after && serviceImage.metadata.uid === decision.uid
    const standing = [...run.commits].reverse().find(each => {
      return each.revision < commit.revision && isServiceImage(each.object) && each.object.metadata.name === name
    })
    return [
      {
        sent,
        commit,
        before: commit.before,
        decision,
        source: statuses.findLast(isSource),
        standing: standing?.object,
      },
    ]
  })
  stamps.sort((a, b) => a.commit.revision - b.commit.revision)
  return { run, statuses, stamps, lives }
}

const isOneLeaders = (a: StatusWrite, b: StatusWrite) =>
  a.process === b.process && a.serviceImage.status.electionID === b.serviceImage.status.electionID

function livesOf({ initial, commits }: Run): Map<string, State[]> {
  const lives = new Map<string, State[]>()
  const add = (object: Json, state: State) => {
    const known = lives.get(idOf(object))
    if (known) known.push(state)
    else lives.set(idOf(object), [state])
  }
  for (const object of initial) add(object, { revision: 0, at: Number.NEGATIVE_INFINITY, object })
  for (const { revision, at, type, object } of commits)
    add(object, { revision, at, object: type === "DELETED" ? undefined : object })
  return lives
}

/** Each way an object was between an instant and a revision, undefined standing for not being there. */
export function between(life: readonly State[], from: Instant, until: number): (Json | undefined)[] {
  const known = life.filter(state => state.revision < until)
  const first = known.findLastIndex(state => state.at <= from)
  const states = known.slice(Math.max(0, first)).map(state => state.object)
  return first < 0 ? [undefined, ...states] : states
}

export const idOf = ({ apiVersion, kind, metadata }: Json) =>
  `${apiVersion} ${kind} ${metadata.namespace ?? ""}/${metadata.name}`
export const keyOf = ({ metadata }: Json) =>
  metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`
export const isServiceImage = ({ kind }: Json) => kind === "ServiceImage"
/** A job for pre-caching, which is no object of the fleet. */
export const isJob = (path: string) => /\/imagepulljobs(\/|\?|$)/.test(path)

export const isStatusOf = (path: string) => /\/serviceimages\/[^/]+\/status(\?|$)/.test(path)
export const conditionOf = (status: Json, type: string): Json | undefined =>
  status?.conditions?.find((each: Json) => each.type === type)
export const isTrue = (status: Json, type: string) => conditionOf(status, type)?.status === "True"

export function decisionOf({ metadata }: Json): Json {
  const text = metadata.annotations?.[decisionAnnotation]
  return text === undefined ? {} : JSON.parse(text)
}

/** Made by the present operation of this very ServiceImage: one created again under its name is another. */
export function isDecisionOf({ metadata, status }: Json, object: Json): boolean {
  const { by, uid, operation } = decisionOf(object)
  return by === `serviceimage/${metadata.name}` && uid === metadata.uid && operation === status.operation.id
}

/** Moves nothing but the mark: the only write that may go without a version. */
export function isTouch(body: Json | undefined): boolean {
  const only = (value: Json | undefined, name: string) =>
    value !== undefined && Object.keys(value).length === 1 ? value[name] : undefined
  return only(only(only(body, "metadata"), "annotations"), fenceAnnotation) !== undefined
}

/** Its owner keeps the image. */
export const isPinned = ({ metadata, spec }: Json): boolean =>
  spec.manuallySpecifiedImage === true ||
  metadata.annotations?.["autoimagemanager.io/manually-specified-image"] === "true"

export const haltsOnFailure = ({ metadata, spec }: Json): boolean =>
  spec.failureHaltsUpdate === true || metadata.annotations?.["autoimagemanager.io/failure-halts-update"] === "true"

/** What a ServiceImage wants for an object: the tier its label names, else the tier "", else the default image, last. */
export function tierOf({ spec }: Json, { metadata }: Json): Json | undefined {
  const label = metadata.labels?.["upgrade-tier"] ?? ""
  const named = (name: string) => spec.tiers?.find((tier: Json) => tier.upgradeTier === name)
  const tier = named(label) ?? named("")
  if (tier) return { ...tier, image: tier.image || spec.defaultImage }
  const lowest = Math.min(0, ...(spec.tiers ?? []).map((each: Json) => each.priority - 1))
  // Without a default image it is none of the rollout's business.
  return spec.defaultImage ? { upgradeTier: "", image: spec.defaultImage, priority: lowest } : undefined
}

export const tierStatusOf = ({ status }: Json, tier: Json): Json | undefined =>
  status?.tierStatus?.find((each: Json) => each.upgradeTier === tier.upgradeTier)

/** The image that is wanted, in whatever words, or that one with the digest its tag was found to mean. */
export const isImage = (image: string | undefined, wanted: string | undefined): boolean =>
  image !== undefined &&
  wanted !== undefined &&
  (sameImage(image, wanted) || (!wanted.includes("@") && sameImage(image.split("@")[0]!, wanted)))

export const isRollingBack = ({ status }: Json) => /^Roll/.test(status?.operation?.phase ?? "")

/** The image of an object where the ServiceImage has it; "" if it has none. */
export function imageIn({ spec }: Json, object: Json): string {
  const { container, paths = ["spec.image"] } = spec.target.image ?? {}
  const { containers = [], initContainers = [] } = object.spec.template?.spec ?? {}
  if (container !== undefined)
    return [...containers, ...initContainers].find((each: Json) => each.name === container)?.image ?? ""
  const at = (path: string) => path.split(".").reduce((value, name) => value?.[name], object as Json | undefined)
  return paths.map(at).find((image: unknown) => typeof image === "string" && image !== "") ?? ""
}

/** Its health by the ImageSpec contract, the only one that these invariants read. */
export const keepsContract = ({ spec }: Json) => spec.target.image?.container === undefined && !spec.target.health

/** Objects that are the ServiceImage's business, as far as the object itself says so. Another one may have it: see ownerOf. */
export function isManaged(serviceImage: Json, object: Json): boolean {
  if (!selects(serviceImage, object) || object.metadata.deletionTimestamp) return false
  return !isPinned(object) && tierOf(serviceImage, object) !== undefined
}

/** Kind and labels are those of the target. */
export function selects({ spec }: Json, object: Json): boolean {
  const { apiVersion, kind, selector } = spec.target
  return object.apiVersion === apiVersion && object.kind === kind && hasLabels(object, selector)
}

export function hasLabels({ metadata }: Json, { matchLabels = {}, matchExpressions = [] }: Json = {}): boolean {
  const labels = metadata.labels ?? {}
  const holds: Record<string, (value: string | undefined, values: string[]) => boolean> = {
    In: (value, values) => value !== undefined && values.includes(value),
    NotIn: (value, values) => value === undefined || !values.includes(value),
    Exists: value => value !== undefined,
    DoesNotExist: value => value === undefined,
  }
  return (
    Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
    matchExpressions.every(({ key, operator, values = [] }: Json) => holds[operator]!(labels[key], values))
  )
}

/** Of those that select an object: the ServiceImage that stamped it, else the oldest. */
export function ownerOf(selecting: readonly Json[], object: Json): Json | undefined {
  const { by } = decisionOf(object)
  const age = ({ metadata }: Json) => metadata.creationTimestamp + metadata.name
  const oldest = [...selecting].sort((a, b) => (age(a) < age(b) ? -1 : 1))
  return oldest.find(({ metadata }) => by === `serviceimage/${metadata.name}`) ?? oldest[0]
}

export const timeOf = (text: string | undefined): Instant => (text === undefined ? 0 : Date.parse(text))

/** Was there when the operation started, or has been deployed since. */
export function isCounted({ status }: Json, object: Json): boolean {
  const created = timeOf(object.metadata.creationTimestamp)
  return created <= timeOf(status.operation.startedAt) || isTrue(object.status, "Deployed")
}

/** By the contract: it says so itself, of this very generation. */
export function isUpToDate({ metadata, status }: Json): boolean {
  const condition = conditionOf(status, "UpToDate")
  return (
    condition?.status === "True" &&
    status.observedGeneration >= metadata.generation &&
    (condition.observedGeneration ?? metadata.generation) >= metadata.generation
  )
}

/** When an object that is not up to date has had its time. */
export function deadlineOf(serviceImage: Json, object: Json): Instant {
  const tier = tierOf(serviceImage, object)!
  const { to, at } = decisionOf(object)
  const stamped = isImage(to, tier.image) ? timeOf(at) : 0
  const started = timeOf(serviceImage.status.operation.startedAt)
  return Math.max(stamped, started) + (tier.progressDeadlineSeconds ?? 600) * 1000
}

import { createHash } from "node:crypto"
import type { ImageListPullJob, Reason } from "#api/v1alpha1/imagelistpulljob/index.ts"
import type { ImagePullJobSpec } from "#api/v1alpha1/imagepulljob/index.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { counted } from "#lib/text.ts"

/** An ImagePullJob that exists under a name which the list needs, or that belongs to the list. */
export type Child = {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** The uid of the list that it belongs to, "" for none. */
  readonly owner: string
  readonly spec: ImagePullJobSpec
  /** What its Ready condition says, once it has looked at this spec. */
  readonly ready: { readonly isTrue: boolean; readonly reason: string; readonly message: string } | undefined
  readonly isOver: boolean
  /** It waits for a person. */
  readonly isStalled: boolean
}

export type Snapshot = {
  readonly list: ImageListPullJob
  /** By name. */
  readonly children: ReadonlyMap<string, Child>
  readonly now: Instant
}

export type Action =
  | { readonly do: "create"; readonly name: string; readonly spec: ImagePullJobSpec }
  | { readonly do: "change"; readonly name: string; readonly child: Child; readonly spec: ImagePullJobSpec }
  | { readonly do: "delete"; readonly name: string; readonly child: Child }

export type FailedImage = { readonly name: string; readonly imagePullJob: string; readonly message: string }

export type Plan = {
  readonly actions: readonly Action[]
  readonly verdict: {
    readonly reason: Reason
    readonly message: string
    readonly isReady?: true
    readonly isStuck?: true
  }
  readonly counts: { desired: number; active: number; completed: number; succeeded: number }
  readonly failed: readonly FailedImage[]
  readonly ends?: true
  /** Its time to live is over. */
  readonly deletes?: true
  readonly lookAgainAt?: Instant | undefined
}

/** Decides about one list: a job for each image, and what they say together. */
export function plan({ list, children, now }: Snapshot): Plan {
  const { images, ...rest } = list.spec
  const uid = list.metadata.uid ?? ""
  const wanted = new Map(images.map(image => [childName(list.metadata.name, image), specFor(rest, image)]))
  const mine = [...children.values()].filter(({ owner }) => owner === uid)
  const taken = [...wanted].filter(([name]) => children.has(name) && children.get(name)!.owner !== uid)
  const actions = isOver(list) ? [] : actionsFor(wanted, children, mine, uid)
  const states = [...wanted].map(([name, spec]) => ({ name, image: spec.image, child: ownOf(children, name, uid) }))
  const succeeded = states.filter(({ child }) => child?.ready?.isTrue).length
  const completed = states.filter(({ child }) => child?.isOver).length
  const bad = states.filter(({ child }) => child?.isStalled || (child?.isOver && !child.ready?.isTrue))
  const counts = { desired: images.length, active: images.length - completed, completed, succeeded }
  const failed = bad.map(({ name, image, child }) => ({
    name: image,
    imagePullJob: name,
    message: `${child!.ready?.reason ?? ""}: ${child!.ready?.message ?? ""}`,
  }))
  const found = { actions, counts, failed, ...lifeOf(list, now) }
  const standing = `${succeeded} of ${counted(images.length, "image")} on every node`
  if (taken.length > 0) {
    const message = `an ImagePullJob ${taken[0]![0]} exists and is not of this list: delete it, or rename the list`
    return { ...found, verdict: { reason: "NameTaken", message, isStuck: true } }
  }
  const isForEver = list.spec.completionPolicy.type === "Never"
  if (succeeded === images.length)
    return {
      ...found,
      verdict: { reason: isForEver ? "Present" : "Completed", message: standing, isReady: true },
      ...(!isForEver && { ends: true }),
    }
  if (completed === images.length)
    return { ...found, verdict: { reason: "ImagesFailed", message: standing, isStuck: true }, ends: true }
  const waiting = bad.find(({ child }) => !child!.isOver)
  if (waiting) {
    const { reason, message } = waiting.child!.ready!
    const verdict = {
      reason: "ImagesStalled",
      message: `${standing}; ${waiting.image}: ${reason}: ${message}`,
    } as const
    return { ...found, verdict: { ...verdict, isStuck: true } }
  }
  return { ...found, verdict: { reason: "Pulling", message: standing } }
}

/** It has ended. A list that is edited afterwards goes on. */
export const isOver = ({ metadata, status }: ImageListPullJob) =>
  status?.completionTime !== undefined && status.observedGeneration === metadata.generation

/** The list is deleted with its jobs when its time is over, so they have no time of their own. */
function specFor(rest: Omit<ImageListPullJob["spec"], "images">, image: string): ImagePullJobSpec {
  const { ttlSecondsAfterFinished: _, ...completionPolicy } = rest.completionPolicy
  return { ...rest, completionPolicy, image }
}

function actionsFor(
  wanted: ReadonlyMap<string, ImagePullJobSpec>,
  children: ReadonlyMap<string, Child>,
  mine: readonly Child[],
  uid: string,
): Action[] {
  const writes = [...wanted].flatMap(([name, spec]): Action[] => {
    const child = children.get(name)
    if (!child) return [{ do: "create", name, spec }]
    return child.owner !== uid || isSame(child.spec, spec) ? [] : [{ do: "change", name, child, spec }]
  })
  const gone = mine.filter(({ name }) => !wanted.has(name))
  return [...writes, ...gone.map((child): Action => ({ do: "delete", name: child.name, child }))]
}

const ownOf = (children: ReadonlyMap<string, Child>, name: string, uid: string) => {
  const child = children.get(name)
  return child?.owner === uid ? child : undefined
}

function lifeOf(list: ImageListPullJob, now: Instant): Pick<Plan, "deletes" | "lookAgainAt"> {
  const ttl = list.spec.completionPolicy.ttlSecondsAfterFinished
  const endedAt = parseInstant(list.status?.completionTime)
  if (!isOver(list) || ttl === undefined || endedAt === undefined) return {}
  const goesAt = endedAt + ttl * 1000
  return goesAt <= now ? { deletes: true } : { lookAgainAt: goesAt }
}

/** The same for the same image, so that a crash between two writes makes no second job. */
export function childName(list: string, image: string): string {
  const hash = createHash("sha256").update(image).digest("hex").slice(0, 10)
  return `${list.slice(0, 240).replace(/[^a-z0-9]+$/, "")}-${hash}`
}

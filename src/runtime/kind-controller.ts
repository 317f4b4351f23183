import { earliest } from "#lib/instant.ts"
import type { Projected, WatchedCache } from "./cache/cache.ts"
import type { Instant } from "./clock.ts"
import type { Controller, Wiring } from "./controller.ts"
import { memoriesOf } from "./memories.ts"
import type { KubeObject, Resource } from "./resource.ts"
import { type Episode, statusWriter, type WithStatus } from "./status.ts"

/** A whole object in a cache. */
export type Held<O> = Projected & { readonly object: O }

export const hold = <O>(object: KubeObject): Held<O> => ({
  resourceVersion: object.metadata.resourceVersion ?? "",
  object: object as O,
})

/** Without `managedFields`: they are the larger part of many objects, and a controller does not read those of its own. */
export function holdPlain<O>(object: KubeObject): Held<O> {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject["metadata"] & { managedFields?: unknown }
  return hold({ ...object, metadata })
}

export type Look<O, Memory> = {
  readonly key: string
  readonly object: O
  /** What this process remembers of the object. Losing it costs at most a repeated write. */
  readonly memory: Memory
  readonly now: Instant
}

/** A status, and the parts of it that are worth an Event. */
export type Report<Status> = { readonly status: Status; readonly episodes?: readonly Episode[] }

type Timed = { readonly lookAgainAt?: Instant | undefined }

/**
 * A controller of one kind, as four functions over a world of its own. `observe` and `plan` write nothing, and `plan` is
 * pure. The frame reads the newest copy of the object, keeps its memory by uid, writes its status, records events, and
 * looks again when the plan says so.
 *
 *   key → prepare → observe → plan → apply → report        or, with reports: "before", report and then apply
 */
export type KindController<O extends WithStatus, World, Memory, Seen, Plan extends Timed, Done extends Timed> = Pick<
  Controller,
  "name" | "permissions" | "concurrency" | "turns"
> & {
  /** The kind that is looked at: one of ours, or one of Kubernetes. */
  resource: Resource
  /** Only objects with these fields, such as those of one node. */
  fieldSelector?: string
  /** Only objects with these labels. */
  labelSelector?: string
  indexes?: Record<string, (held: Held<O>) => readonly string[]>
  /** What is kept of an object, where its kind has many or large ones. Default: all of it but `managedFields`. */
  keep?: (object: KubeObject) => O
  /** An object that is being deleted and has this finalizer is looked at like any other, until the finalizer is gone. */
  finalizer?: string
  /** Opens caches, indexes and questions beside the objects themselves. */
  open(wiring: Wiring, objects: WatchedCache<Held<O>>): World
  remember?(): Memory
  /** Updates what `observe` reads. Returns whether the key names an object at all. */
  prepare?(world: World, key: string): Promise<boolean>
  /** Everything that the plan is made from. */
  observe(world: World, look: Look<O, Memory>): Seen
  /** Decides. The same facts always give the same plan. */
  plan(seen: Seen): Plan
  /** Carries the plan out, each write conditional on what it was decided from. */
  apply(world: World, seen: Seen, plan: Plan, look: Look<O, Memory>): Promise<Done>
  /** `before` acting: a crash leaves an explanation behind. `after` it: nothing is reported that did not happen. */
  reports: "before" | "after"
  /** The next status, or undefined where there is none yet. A kind without a status of ours has no report. */
  report?(seen: Seen, plan: Plan, done: Done | undefined, now: Instant): Report<O["status"]> | undefined
  /**
   * The status is written even if it is unchanged: the answer proves that the object has not changed since it was read.
   * For plans whose writes the status declares before they are sent.
   */
  declares?(plan: Plan): boolean
  /** Called with the reported status, for metrics. */
  onReported?(world: World, look: Look<O, Memory>, status: O["status"], plan: Plan, done: Done | undefined): void
  /** The object is gone, or is no longer selected. May return when to look again. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most have nothing to return
  forget?(world: World, key: string): void | Promise<Instant | undefined>
}

export function kindController<O extends WithStatus, World, Memory, Seen, Plan extends Timed, Done extends Timed>(
  kind: KindController<O, World, Memory, Seen, Plan, Done>,
): Controller {
  const { name, permissions, concurrency, turns, resource, fieldSelector, labelSelector, indexes, keep } = kind
  return {
    name,
    permissions,
    ...(concurrency !== undefined && { concurrency }),
    ...(turns && { turns }),
    setup(wiring) {
      const objects = wiring.watch<Held<O>>(resource, {
        project: keep ? object => ({ ...hold<O>(object), object: keep(object) }) : holdPlain,
        ...(fieldSelector !== undefined && { fieldSelector }),
        ...(labelSelector !== undefined && { labelSelector }),
        ...(indexes && { indexes }),
      })
      const world = kind.open(wiring, objects)
      const statuses = statusWriter<O>(wiring, resource)
      const memories = memoriesOf<Memory>(kind.remember ?? (() => undefined as Memory))
      objects.subscribe(({ key, initial }) => wiring.enqueue(key, { background: initial }))

      async function report(look: Look<O, Memory>, seen: Seen, plan: Plan, done: Done | undefined): Promise<void> {
        const next = kind.report?.(seen, plan, done, wiring.clock.now())
        if (!next) return
        const write = kind.declares?.(plan) ? statuses.prove : statuses.write
        await write(look.object, next.status, next.episodes)
        kind.onReported?.(world, look, next.status, plan, done)
      }

      return {
        async reconcile(key) {
          // A process that has just begun to lead may not see yet what the last leader wrote.
          if (!objects.isCurrent) await objects.current()
          if (kind.prepare && !(await kind.prepare(world, key))) return undefined
          const cached = objects.get(key)?.object
          if (!cached || isLeaving(cached, kind.finalizer)) {
            memories.drop(key)
            statuses.forget(key)
            return (await kind.forget?.(world, key)) ?? undefined
          }
          const memory = memories.of(key, cached.metadata.uid ?? "")
          const look = { key, object: statuses.newest(cached), memory, now: wiring.clock.now() }
          const seen = kind.observe(world, look)
          const plan = kind.plan(seen)
          if (kind.reports === "before") await report(look, seen, plan, undefined)
          const done = await kind.apply(world, seen, plan, look)
          if (kind.reports === "after") await report(look, seen, plan, done)
          return earliest(plan.lookAgainAt, done.lookAgainAt)
        },
      }
    },
  }
}

const isLeaving = ({ metadata }: KubeObject, finalizer: string | undefined) =>
  metadata.deletionTimestamp !== undefined && !(finalizer && metadata.finalizers?.includes(finalizer))

import { isSame } from "#lib/same.ts"
import { annotationsOf, fieldsOf, labelsOf, savedIn, withMetadata } from "./before.ts"
import type { RouteObject } from "./router.ts"

/**
 * The autoscaler of a target. It goes on scaling the pods of the source, and only up during a run: its rules for scaling
 * down are switched off, and what stood there is kept on the object itself. So any process can put it back.
 */

export type ScalerKind = "HorizontalPodAutoscaler" | "ScaledObject"

export type ScalerSeen = {
  readonly kind: ScalerKind
  readonly name: string
  /** It scales the workload of the Canary. */
  readonly isOfTarget: boolean
  /** Our note is on it. */
  readonly isNoted: boolean
  /** It may scale down as it is. */
  readonly mayShrink: boolean
}

type Fields = Readonly<Record<string, unknown>>

/** Which field of the spec is changed, and how. The text of `undone` is about the same field after an edit of its owner. */
type Field = {
  readonly name: string
  /** As it is written, and as the server completes it. */
  readonly held: (before: unknown) => unknown
  /** The owner has edited the field since: only what is ours goes. */
  readonly undone: (now: unknown, before: unknown) => unknown
}

const disabled = "Disabled"

const without = (fields: Fields, name: string): Fields => {
  const { [name]: _, ...rest } = fields
  return rest
}

/** What an API server adds to a behavior that is given in part. */
const scaleUpRules = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
}
const scaleDownRules = { selectPolicy: "Max", policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] }

const noShrinking = (behavior: unknown) => ({
  ...fieldsOf(behavior),
  scaleDown: { ...fieldsOf(fieldsOf(behavior).scaleDown), selectPolicy: disabled },
})

/** The policy goes back to what it was; the other rules stay as their owner has them now. */
function shrinking(now: unknown, before: unknown): unknown {
  const scaleDown = fieldsOf(fieldsOf(now).scaleDown)
  if (scaleDown.selectPolicy !== disabled) return now
  const policy = fieldsOf(fieldsOf(before).scaleDown).selectPolicy
  const rest = without(scaleDown, "selectPolicy")
  return { ...fieldsOf(now), scaleDown: policy === undefined ? rest : { ...rest, selectPolicy: policy } }
}

const behaviorField: Field = {
  name: "behavior",
  held(before) {
    const { scaleUp, scaleDown } = noShrinking(before) as Fields
    return {
      ...fieldsOf(before),
      scaleUp: { ...scaleUpRules, ...fieldsOf(scaleUp) },
      scaleDown: { ...scaleDownRules, ...fieldsOf(scaleDown) },
    }
  },
  undone: shrinking,
}

const config = "horizontalPodAutoscalerConfig"
const behaviorIn = (advanced: unknown) => fieldsOf(fieldsOf(advanced)[config]).behavior
const withBehavior = (advanced: unknown, behavior: unknown) => ({
  ...fieldsOf(advanced),
  [config]: { ...fieldsOf(fieldsOf(advanced)[config]), behavior },
})

/** KEDA writes the autoscaler that it makes from these, and takes the last pod away by itself. */
const kedaFields: readonly Field[] = [
  {
    name: "advanced",
    held: before => withBehavior(before, noShrinking(behaviorIn(before))),
    undone: (now, before) => withBehavior(now, shrinking(behaviorIn(now), behaviorIn(before))),
  },
  { name: "minReplicaCount", held: before => Math.max(1, Number(before ?? 0)), undone: now => now },
  { name: "idleReplicaCount", held: () => undefined, undone: now => now },
]

const fieldsByKind: Readonly<Record<ScalerKind, readonly Field[]>> = {
  HorizontalPodAutoscaler: [behaviorField],
  ScaledObject: kedaFields,
}

const specOf = ({ spec }: RouteObject): Fields => fieldsOf(spec)

/** Whether it scales this workload. A ScaledObject without a kind means a Deployment. */
export function scales(object: RouteObject, { kind, name }: { readonly kind: string; readonly name: string }): boolean {
  const target = fieldsOf(specOf(object).scaleTargetRef)
  return target.name === name && (target.kind ?? "Deployment") === kind
}

type Note = { readonly by: string; readonly spec: Fields }

function noteIn(object: RouteObject): Note | undefined {
  const { by, spec } = savedIn(object)
  return typeof by === "string" ? { by, spec: fieldsOf(spec) } : undefined
}

/** The Canary whose note is on it. */
export const notedBy = (object: RouteObject): string | undefined => noteIn(object)?.by

export function readScaler(
  kind: ScalerKind,
  object: RouteObject,
  { canary, isOfTarget }: { readonly canary: string; readonly isOfTarget: boolean },
): ScalerSeen {
  const spec = specOf(object)
  const behavior = kind === "ScaledObject" ? behaviorIn(spec.advanced) : spec.behavior
  const isToZero = kind === "ScaledObject" && (Number(spec.minReplicaCount ?? 0) < 1 || spec.idleReplicaCount != null)
  return {
    kind,
    name: object.metadata.name,
    isOfTarget,
    isNoted: notedBy(object) === canary,
    mayShrink: fieldsOf(fieldsOf(behavior).scaleDown).selectPolicy !== disabled || isToZero,
  }
}

/**
 * It no longer scales down. A field that its owner has changed since it was first held is kept as it is now, and not as it
 * was then.
 */
export function heldScaler(kind: ScalerKind, object: RouteObject, canary: string): RouteObject {
  const spec = specOf(object)
  const note = noteIn(object)
  const saved: Record<string, unknown> = {}
  const next: Record<string, unknown> = { ...spec }
  for (const { name, held } of fieldsByKind[kind]) {
    const known = note && Object.hasOwn(note.spec, name) ? note.spec[name] : undefined
    const isAsHeld = note !== undefined && isSame(spec[name], held(known ?? undefined))
    const before = isAsHeld ? known : spec[name]
    const wanted = held(before ?? undefined)
    if (isSame(wanted, before ?? undefined)) continue
    saved[name] = before ?? null
    next[name] = wanted
  }
  return withMetadata({ ...object, spec: next }, { ...metadataOf(object), saved: { by: canary, spec: saved } })
}

/** It scales another workload from now on, and is otherwise as before. */
export function movedScaler(kind: ScalerKind, object: RouteObject, name: string): RouteObject {
  const freed = freedScaler(kind, object)
  const { scaleTargetRef, ...rest } = specOf(freed)
  return { ...freed, spec: { ...rest, scaleTargetRef: { ...fieldsOf(scaleTargetRef), name } } }
}

/** It is as before, but for what its owner has changed meanwhile. */
export function freedScaler(kind: ScalerKind, object: RouteObject): RouteObject {
  const note = noteIn(object)
  if (!note) return object
  const next: Record<string, unknown> = { ...specOf(object) }
  for (const { name, held, undone } of fieldsByKind[kind]) {
    if (!Object.hasOwn(note.spec, name)) continue
    const before = note.spec[name] ?? undefined
    const now = next[name]
    const value = isSame(now, held(before)) ? before : undone(now, before)
    if (value === undefined) delete next[name]
    else next[name] = value
  }
  return withMetadata({ ...object, spec: next }, metadataOf(object))
}

const metadataOf = (object: RouteObject) => ({ labels: labelsOf(object), annotations: annotationsOf(object) })

import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type Backend, isNamespace, managedBy, ordered, without } from "./backend.ts"
import { withoutUndefined } from "./deletion.ts"
import { equal } from "./equal.ts"
import type { ServedKind } from "./kind.ts"
import { finalizerWarnings, validateUpdate } from "./metadata.ts"
import { cause, invalid, modifiedMeanwhile } from "./refusals.ts"
import type { WriteOptions } from "./storage.ts"

/** Takes a new version of an object through all steps of an endpoint, and stores it. */
export function reviseObject(
  backend: Backend,
  kind: ServedKind,
  old: Obj,
  next: Json,
  options: WriteOptions,
  isApplied = false,
): Obj {
  const { strategy } = kind
  const { patching, now } = backend
  const { subresource } = options
  const manager = options.fieldManager || "unknown"
  const was = old.metadata
  const version = next.metadata?.resourceVersion
  if (!version || version === "0") {
    if (!strategy.allowsUnconditionalUpdate && !isApplied)
      throw invalid({ group: kind.group, kind: kind.plural }, was.name, [
        cause.invalid("metadata.resourceVersion", 0, "must be specified for an update"),
      ])
  } else if (!/^\d+$/.test(version))
    throw new StatusError(500, "", `strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`)
  else if (version !== was.resourceVersion) throw modifiedMeanwhile(kind, was.name)

  let object = ordered(kind, {
    ...next,
    metadata: withoutUndefined({
      ...next.metadata,
      namespace: was.namespace,
      generation: was.generation,
      resourceVersion: was.resourceVersion,
    }),
  })
  object = strategy.default?.(object) ?? object
  const managedFields = isApplied
    ? next.metadata?.managedFields
    : subresource === "binding"
      ? was.managedFields // the server's own write has no field manager
      : patching.track({ kind, before: old, after: object, manager, subresource, now: now() })
  const { name, namespace } = was
  const request = { operation: "update", kind, name, namespace, old, subresource, options } as const
  object = backend.admit({ ...request, object })
  object = prepare(backend, kind, object, old, subresource)
  object = {
    ...object,
    metadata: withoutUndefined({
      ...object.metadata,
      uid: object.metadata.uid || was.uid,
      creationTimestamp: was.creationTimestamp,
      deletionTimestamp: was.deletionTimestamp ?? object.metadata.deletionTimestamp,
      deletionGracePeriodSeconds: object.metadata.deletionGracePeriodSeconds ?? was.deletionGracePeriodSeconds,
    }),
  }
  const isOutside = subresource === "status" || subresource === "binding" // observed state, not desired state
  if (was.generation !== undefined && !isOutside && movesGeneration(kind, object, old))
    object = { ...object, metadata: { ...object.metadata, generation: was.generation + 1 } }
  const validate =
    subresource === "status"
      ? strategy.validateStatusUpdate
      : subresource === "binding"
        ? undefined
        : strategy.validateUpdate
  const causes = [...validateUpdate(kind, object.metadata, was), ...(validate?.(object, old) ?? [])]
  if (causes.length > 0) throw invalid(kind, was.name, causes)
  if (kind.isCustom) for (const warning of finalizerWarnings(object.metadata, was)) options.warn?.(warning)
  object = managedBy(object, managedFields)
  backend.validate({ ...request, object })
  if (equal(withoutTimes(object), withoutTimes(old))) return old
  if (options.dryRun) return object
  if (isFinished(kind, object, old)) {
    backend.commit(kind, old, undefined, manager)
    return object
  }
  return backend.commit(kind, old, object, manager)
}

function prepare(backend: Backend, kind: ServedKind, object: Json, old: Obj, subresource: string | undefined): Json {
  const { strategy } = kind
  if (subresource === "status") {
    if (strategy.prepareStatusUpdate) return strategy.prepareStatusUpdate(object, old, backend.context())
    const { status: _, ...kept } = old
    const metadata = kind.isCustom ? old.metadata : object.metadata
    return { ...kept, metadata, ...("status" in object && { status: object.status }) }
  }
  if (subresource === "binding") {
    const { annotations } = object.metadata
    const metadata = withoutUndefined({ ...old.metadata, annotations })
    return { ...old, metadata, spec: { ...old.spec, nodeName: object.spec.nodeName }, status: object.status }
  }
  if (subresource === "finalize") return { ...old, metadata: object.metadata, spec: object.spec }
  const prepared = strategy.prepareUpdate
    ? strategy.prepareUpdate(object, old, backend.context())
    : kind.subresources.includes("status")
      ? { ...without(object, "status"), ...("status" in old && { status: old.status }) }
      : object
  if (!isNamespace(kind)) return prepared
  return { ...prepared, spec: old.spec, status: old.status } // their finalizers have an endpoint of their own
}

/** Whether the last finalizer of a deleted object is gone, so that nothing holds it any more. */
function isFinished(kind: ServedKind, object: Json, { metadata }: Obj): boolean {
  if ((object.metadata.finalizers ?? []).length > 0 || metadata.deletionTimestamp === undefined) return false
  if (isNamespace(kind) && (object.spec?.finalizers ?? []).length > 0) return false
  return !metadata.deletionGracePeriodSeconds
}

const movesGeneration = ({ strategy }: ServedKind, object: Json, old: Obj): boolean =>
  strategy.movesGeneration
    ? strategy.movesGeneration(object, old)
    : !equal({ ...object, metadata: undefined, status: undefined }, { ...old, metadata: undefined, status: undefined })

/** For comparing: a new time in managedFields alone is no change. */
function withoutTimes(object: Json): Json {
  const { managedFields } = object.metadata
  if (!managedFields) return object
  const timeless = managedFields.map((entry: Json) => ({ ...entry, time: undefined }))
  return { ...object, metadata: { ...object.metadata, managedFields: timeless } }
}

import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type Backend, managedBy, ordered, without } from "./backend.ts"
import { withoutUndefined } from "./deletion.ts"
import type { ServedKind } from "./kind.ts"
import { finalizerWarnings, orderedMetadata, validateNew } from "./metadata.ts"
import { generateName } from "./names.ts"
import { alreadyExists, forbidden, generatedNameTaken, invalid, notFound } from "./refusals.ts"
import type { WriteOptions } from "./storage.ts"

/** Takes a new object, already decoded, through all steps of a create, and stores it. */
export function createObject(
  backend: Backend,
  kind: ServedKind,
  decoded: Json,
  options: WriteOptions,
  isApplied: boolean,
): Obj {
  const { strategy } = kind
  const { store, random, patching, now } = backend
  const manager = options.fieldManager || "unknown"
  const sent = decoded.metadata ?? {}
  if (sent.resourceVersion && sent.resourceVersion !== "0")
    throw new StatusError(500, "", "resourceVersion should not be set on objects to be created")
  checkNamespace(backend, kind, { ...sent, name: sent.name ?? "" })
  const isGenerated = !sent.name && Boolean(sent.generateName)
  const metadata = withoutUndefined({
    ...sent,
    name: isGenerated ? generateName(sent.generateName, random.next) : sent.name,
    namespace: kind.namespaced ? sent.namespace : undefined,
    uid: random.uuid(),
    creationTimestamp: now(),
    generation: undefined,
    resourceVersion: undefined,
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    selfLink: undefined,
  })
  let object = ordered(kind, { ...decoded, metadata })
  object = strategy.default?.(object) ?? object
  const managedFields = isApplied
    ? sent.managedFields
    : patching.track({ kind, before: undefined, after: object, manager, now: now() })
  const request = {
    ...({ operation: "create", kind, old: undefined, subresource: undefined, options } as const),
    ...{ name: sent.name ?? "", namespace: metadata.namespace },
  }
  object = backend.admit({ ...request, object })
  object = strategy.prepareCreate
    ? strategy.prepareCreate(object, backend.context())
    : kind.subresources.includes("status")
      ? without(object, "status")
      : object
  // Kinds without a generation of their own keep the value that was sent, and it never changes.
  const hasGeneration = strategy.movesGeneration || kind.isCustom
  const generation = hasGeneration ? (object.metadata.generation ?? 1) : sent.generation
  object = { ...object, metadata: { ...object.metadata, generation } }
  const causes = [...validateNew(kind, object.metadata), ...(strategy.validateCreate?.(object) ?? [])]
  if (causes.length > 0) throw invalid(kind, object.metadata.name ?? "", causes)
  options.authorizeCreate?.()
  if (kind.isCustom) for (const warning of finalizerWarnings(object.metadata, undefined)) options.warn?.(warning)
  object = managedBy(object, managedFields)
  backend.validate({ ...request, object })
  const taken = store.get(kind.storage, metadata.namespace, metadata.name)
  if (taken && isGenerated) throw generatedNameTaken(kind, metadata.name)
  if (taken) throw alreadyExists(kind, metadata.name, taken.metadata.deletionTimestamp !== undefined)
  if (options.dryRun) return object
  // The store fills in the version, where the server writes it.
  const numbered = { ...object, metadata: orderedMetadata({ ...object.metadata, resourceVersion: "" }) }
  return backend.commit(kind, undefined, numbered, manager)
}

/** Throws if the namespace does not exist or is being deleted. */
function checkNamespace(backend: Backend, kind: ServedKind, { namespace, name }: { namespace?: string; name: string }) {
  if (!kind.namespaced || !namespace) return
  const home = backend.store.get(backend.namespacesPlace(), undefined, namespace)
  if (!home) throw notFound({ group: "", plural: "namespaces" }, namespace)
  if (home.metadata.deletionTimestamp === undefined) return
  throw forbidden(kind, name, `unable to create new content in namespace ${namespace} because it is being terminated`, [
    {
      reason: "NamespaceTerminating",
      message: `namespace ${namespace} is being terminated`,
      field: "metadata.namespace",
    },
  ])
}

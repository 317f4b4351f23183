import { resourceName } from "#runtime/resource.ts"
import type { Json, Meta, Owner } from "../object.ts"
import type { Cause } from "../status-error.ts"
import type { ServedKind } from "./kind.ts"
import { dnsLabel, labelValueRule, nameRule, qualifiedName } from "./names.ts"
import { cause } from "./refusals.ts"

const annotationBytes = 256 * 1024

/** What is wrong with the metadata of a new object. */
export const validateNew = (kind: ServedKind, metadata: Json): Cause[] => [
  ...validateMetadata(kind, metadata),
  ...(kind.isCustom ? [] : validateFinalizers(metadata)),
]

function validateMetadata(kind: ServedKind, metadata: Json): Cause[] {
  const causes: Cause[] = []
  const rule = nameRule(kind)
  if (metadata.generateName)
    for (const why of rule(maskTrailingDash(metadata.generateName)))
      causes.push(cause.invalid("metadata.generateName", metadata.generateName, why))
  if (!metadata.name) causes.push(cause.required("metadata.name", "name or generateName is required"))
  else for (const why of rule(metadata.name)) causes.push(cause.invalid("metadata.name", metadata.name, why))
  if (kind.namespaced) {
    if (!metadata.namespace) causes.push(cause.required("metadata.namespace"))
    else
      for (const why of dnsLabel(metadata.namespace))
        causes.push(cause.invalid("metadata.namespace", metadata.namespace, why))
  } else if (metadata.namespace) causes.push(cause.forbidden("metadata.namespace", "not allowed on this type"))
  return [...causes, ...validateCommon(metadata)]
}

function validateCommon(metadata: Json): Cause[] {
  const causes = validateMaps(metadata)
  const finalizers: string[] = metadata.finalizers ?? []
  for (const finalizer of finalizers)
    for (const why of qualifiedName(finalizer)) causes.push(cause.invalid("metadata.finalizers", finalizer, why))
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion"))
    causes.push(
      cause.invalid("metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set"),
    )
  return causes
}

function validateMaps(metadata: Json): Cause[] {
  const causes: Cause[] = []
  for (const [key, value] of Object.entries<string>(metadata.labels ?? {})) {
    for (const why of qualifiedName(key)) causes.push(cause.invalid("metadata.labels", key, why))
    for (const why of labelValueRule(value)) causes.push(cause.invalid("metadata.labels", value, why))
  }
  let bytes = 0
  for (const [key, value] of Object.entries<string>(metadata.annotations ?? {})) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
    for (const why of qualifiedName(key.toLowerCase())) causes.push(cause.invalid("metadata.annotations", key, why))
  }
  if (bytes > annotationBytes) causes.push(cause.tooLong("metadata.annotations", annotationBytes))
  return [...causes, ...validateOwners(metadata.ownerReferences ?? [])]
}

/** A finalizer that Kubernetes does not define must name its owner before a slash. */
function validateFinalizers({ finalizers = [] }: Json): Cause[] {
  return finalizers.flatMap((finalizer: string, index: number) =>
    finalizer.includes("/") || standardFinalizers.has(finalizer)
      ? []
      : [
          cause.invalid(
            `metadata.finalizers[${index}]`,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
          ),
        ],
  )
}

const standardFinalizers = new Set(["kubernetes", "orphan", "foregroundDeletion"])

function validateOwners(owners: readonly Owner[]): Cause[] {
  const field = "metadata.ownerReferences"
  const causes: Cause[] = []
  let controller: string | undefined
  for (const owner of owners) {
    const version = (owner.apiVersion ?? "").split("/").at(-1)
    if (!version) causes.push(cause.invalid(`${field}.apiVersion`, owner.apiVersion ?? "", "version must not be empty"))
    for (const each of ["kind", "name", "uid"] as const)
      if (!owner[each]) causes.push(cause.invalid(`${field}.${each}`, owner[each] ?? "", "must not be empty"))
    if (owner.apiVersion === "v1" && owner.kind === "Event")
      causes.push(cause.invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner"))
    if (!owner.controller) continue
    const name = `${owner.kind}/${owner.name}`
    if (controller !== undefined)
      causes.push(
        cause.invalid(
          field,
          owners,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`,
        ),
      )
    else controller = name
  }
  return causes
}

/** The causes for metadata changes that an update may not make. */
function validateMetadataUpdate(metadata: Json, old: Meta): Cause[] {
  const causes: Cause[] = []
  if (old.deletionTimestamp) {
    const added = (metadata.finalizers ?? []).filter((each: string) => !old.finalizers?.includes(each))
    if (added.length > 0) {
      const list = [...new Set(added)].sort().map(each => JSON.stringify(each))
      causes.push(
        cause.forbidden(
          "metadata.finalizers",
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list.join(", ")}}`,
        ),
      )
    }
  }
  if (!metadata.resourceVersion)
    causes.push(cause.invalid("metadata.resourceVersion", "", "must be specified for an update"))
  for (const field of [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
  ] as const)
    if (metadata[field] !== old[field])
      causes.push(cause.invalid(`metadata.${field}`, metadata[field] ?? "", "field is immutable"))
  return [...causes, ...validateMaps(metadata)]
}

/**
 * What is wrong with an update's metadata. The server validates more than once (for all kinds, and again for the kind
 * itself), and each time lists its findings.
 */
export function validateUpdate(kind: ServedKind, metadata: Json, old: Meta): Cause[] {
  const common = [...validateMetadata(kind, metadata), ...validateMetadataUpdate(metadata, old)]
  const again = [...validateMetadataUpdate(metadata, old)]
  if (kind.isCustom) return [...common, ...again]
  const whole = validatesWhole.has(resourceName(kind))
    ? [...validateMetadata(kind, metadata), ...validateFinalizers(metadata)]
    : []
  return [...common, ...again, ...validateFinalizers(metadata), ...whole]
}

/** Kinds whose updates are also validated like a create. */
const validatesWhole = new Set(["configmaps", "secrets", "services", "nodes", "persistentvolumes"])

/** A prefix may end in a dash, since letters follow. */
const maskTrailingDash = (prefix: string) =>
  prefix.length > 1 && prefix.endsWith("-") ? `${prefix.slice(0, -2)}a` : prefix

/** In the order the server writes them, so that all metadata is of one shape. What is undefined is left out. */
export function orderedMetadata(metadata: Json): Json {
  const ordered: Json = {}
  for (const field of fieldOrder) if (metadata[field] !== undefined) ordered[field] = metadata[field]
  return ordered
}

const fieldOrder = [
  "name",
  "generateName",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "labels",
  "annotations",
  "ownerReferences",
  "finalizers",
  "managedFields",
] as const satisfies (keyof Meta)[]

/** The server's warnings for new finalizers of custom resources that do not name their owner. */
export const finalizerWarnings = ({ finalizers = [] }: Json, old: Meta | undefined): string[] =>
  finalizers
    .filter((each: string) => !each.includes("/") && !standardFinalizers.has(each) && !old?.finalizers?.includes(each))
    .map((each: string) => {
      const path = each.includes(".") ? " including a path (/)" : ""
      return `metadata.finalizers: ${JSON.stringify(each)}: prefer a domain-qualified finalizer name${path} to avoid accidental conflicts with other finalizer writers`
    })

import type { Json } from "../object.ts"
import { age } from "./cells.ts"
import {
  keepsImmutable,
  validateClaim,
  validateClaimUpdate,
  validateConfigMap,
  validateSecret,
} from "./core-validation.ts"
import type { Definition } from "./define.ts"
import { edit, editEach, fill, fillZero, set } from "./edit.ts"
import { claimSpecDefaults, resourceList } from "./pod-defaults.ts"

const createdAt = (object: Json) => [object.metadata.name, object.metadata.creationTimestamp]

export const namespace: Definition = {
  apiVersion: "v1",
  kind: "Namespace",
  strategy: {
    default(object) {
      const named = object.metadata?.name
        ? set(
            object,
            "metadata",
            set(
              object.metadata,
              "labels",
              set(object.metadata.labels ?? {}, "kubernetes.io/metadata.name", object.metadata.name),
            ),
          )
        : object
      return set(named, "status", fillZero(named.status ?? {}, { phase: "Active" }))
    },
    prepareCreate(object) {
      const finalizers: string[] = object.spec?.finalizers ?? []
      const spec = finalizers.includes("kubernetes")
        ? object.spec
        : { ...object.spec, finalizers: [...finalizers, "kubernetes"] }
      return { ...object, spec, status: { phase: "Active" } }
    },
    prepareUpdate: (object, old) => ({
      ...object,
      spec: { ...object.spec, finalizers: old.spec?.finalizers },
      status: old.status,
    }),
    prepareStatusUpdate: (object, old) => set(object, "spec", old.spec),
    selectableFields: ({ metadata, status }) => ({ name: metadata.name, "status.phase": status?.phase ?? "" }),
  },
  row: (object, nowMs) => [object.metadata.name, object.status?.phase ?? "", age(object, nowMs)],
}

export const configMap: Definition = {
  apiVersion: "v1",
  kind: "ConfigMap",
  strategy: {
    validateCreate: validateConfigMap,
    validateUpdate: keepsImmutable(["data", "binaryData"], validateConfigMap),
  },
  row: (object, nowMs) => [
    object.metadata.name,
    Object.keys(object.data ?? {}).length + Object.keys(object.binaryData ?? {}).length,
    age(object, nowMs),
  ],
}

export const secret: Definition = {
  apiVersion: "v1",
  kind: "Secret",
  strategy: {
    default(object) {
      const next = fillZero(object, { type: "Opaque" })
      if (!next.stringData) return next
      const { stringData, ...rest } = next
      const encoded = Object.entries<string>(stringData).map(([key, text]) => [
        key,
        Buffer.from(text).toString("base64"),
      ])
      return { ...rest, data: { ...rest.data, ...Object.fromEntries(encoded) } }
    },
    selectableFields: ({ type }) => ({ type: type ?? "" }),
    validateCreate: validateSecret,
    validateUpdate: keepsImmutable(["data"], validateSecret),
  },
  row: (object, nowMs) => [
    object.metadata.name,
    object.type,
    Object.keys(object.data ?? {}).length,
    age(object, nowMs),
  ],
}

export const serviceAccount: Definition = {
  apiVersion: "v1",
  kind: "ServiceAccount",
  row: (object, nowMs) => [object.metadata.name, age(object, nowMs)],
}

export const persistentVolumeClaim: Definition = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  hasStatus: true,
  strategy: {
    default: object =>
      set(
        set(object, "spec", claimSpecDefaults(object.spec ?? {})),
        "status",
        fillZero(object.status ?? {}, { phase: "Pending" }),
      ),
    prepareCreate: object => set(object, "status", { phase: "Pending" }),
    validateCreate: validateClaim,
    validateUpdate: validateClaimUpdate,
  },
  row(object, nowMs) {
    const { metadata, spec, status = {} } = object
    return [
      metadata.name,
      metadata.deletionTimestamp ? "Terminating" : (status.phase ?? ""),
      spec.volumeName ?? "",
      spec.volumeName ? (status.capacity?.storage ?? "0") : "",
      spec.volumeName ? accessModes(status.accessModes ?? []) : "",
      metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ?? spec.storageClassName ?? "",
      spec.volumeAttributesClassName ?? "<unset>",
      age(object, nowMs),
      spec.volumeMode ?? "<unset>",
    ]
  },
}

const modes = { ReadWriteOnce: "RWO", ReadOnlyMany: "ROX", ReadWriteMany: "RWX", ReadWriteOncePod: "RWOP" }

const accessModes = (given: string[]) =>
  Object.entries(modes)
    .filter(([mode]) => given.includes(mode))
    .map(([, short]) => short)
    .join(",")

export const limitRange: Definition = {
  apiVersion: "v1",
  kind: "LimitRange",
  strategy: {
    allowsCreateOnUpdate: true,
    default: object => edit(object, "spec", spec => editEach(spec, "limits", limitDefaults)),
  },
  row: createdAt,
}

function limitDefaults(given: Json): Json {
  let item = given
  for (const field of ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"])
    item = edit(item, field, resourceList)
  if (item.type !== "Container") return item
  const limit = fill(item.default ?? {}, item.max ?? {})
  const request = fill(fill(item.defaultRequest ?? {}, limit), item.min ?? {})
  if (Object.keys(limit).length > 0) item = set(item, "default", limit)
  return Object.keys(request).length > 0 ? set(item, "defaultRequest", request) : item
}

export const resourceQuota: Definition = {
  apiVersion: "v1",
  kind: "ResourceQuota",
  hasStatus: true,
  strategy: {
    default: object => edit(object, "spec", spec => edit(spec, "hard", resourceList)),
    prepareCreate: object => set(object, "status", {}),
  },
  row(object, nowMs) {
    const { hard = {}, used = {} } = object.status ?? {}
    const texts = (isLimit: boolean) =>
      Object.keys(hard)
        .sort()
        .filter(name => name.startsWith("limits.") === isLimit)
        .map(name => `${name}: ${used[name] ?? "0"}/${hard[name]}`)
        .join(", ")
    return [object.metadata.name, texts(false), texts(true), age(object, nowMs)]
  },
}

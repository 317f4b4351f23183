// biome-ignore lint/suspicious/noExplicitAny: objects of every kind pass through a cluster; their schemas are data here.
export type Json = any

/**
 * An object as it is stored and sent. It is immutable and may be kept: a new version is a new object. This makes a list
 * a snapshot without copying.
 */
export type Obj = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Meta
  readonly [field: string]: Json
}

export type Meta = {
  readonly name: string
  readonly namespace?: string
  readonly generateName?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation?: number
  readonly creationTimestamp: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly Owner[]
  readonly managedFields?: readonly ManagedFields[]
}

export type Owner = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export type ManagedFields = {
  readonly manager: string
  readonly operation: "Apply" | "Update"
  readonly apiVersion: string
  readonly time?: string
  readonly fieldsType: "FieldsV1"
  readonly fieldsV1: Json
  readonly subresource?: string
}

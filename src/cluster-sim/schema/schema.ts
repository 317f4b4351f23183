/**
 * What the server knows of a type: enough to refuse wrong types and unknown fields, to merge strategically, and to
 * track the owners of fields. Built-in types come from a table generated from Kubernetes' published OpenAPI; custom
 * ones from their CRD. Nodes are shared and may be recursive (JSONSchemaProps), so references are by name.
 */
export type Schema = {
  readonly type: "object" | "array" | "string" | "integer" | "number" | "boolean" | "any" | "int-or-string"
  readonly format?: string
  readonly properties?: Readonly<Record<string, SchemaRef>>
  readonly required?: readonly string[]
  /** Values of a map. */
  readonly additional?: SchemaRef
  readonly items?: SchemaRef
  /** Strategic merge: `merge` lists are merged by `mergeKey`, or as sets of scalars where there is none. */
  readonly patchStrategy?: "merge" | "replace" | "retainKeys" | "merge,retainKeys"
  readonly mergeKey?: string
  /** Server-side apply. Lists are atomic by default; maps are granular unless `atomic`. */
  readonly listType?: "atomic" | "set" | "map"
  readonly listMapKeys?: readonly string[]
  readonly isAtomic?: boolean
  /** Unknown fields stay (RawExtension, preserve-unknown-fields, embedded objects). */
  readonly preservesUnknown?: boolean
  readonly default?: unknown
  readonly description?: string
  /** Built-in types: what Go writes if the field has no value (`resources: {}`, `lastProbeTime: null`). */
  readonly zero?: unknown
  /** Built-in types: a field that holds only its zero value is not written. */
  readonly omitsZero?: boolean
  /** Built-in types: the name of the type in error messages (`v1.DeploymentSpec`). */
  readonly goType?: string
}

/** A field of a named type, with the attributes that the field adds. */
export type SchemaUse = Partial<Omit<Schema, "type">> & { readonly ref: string }

/** A node, or its name in the table (`io.k8s.api.core.v1.PodSpec`), alone or with the attributes that its use adds. */
export type SchemaRef = Schema | SchemaUse | string

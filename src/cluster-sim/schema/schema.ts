/**
 * What the server knows of a type: enough to refuse wrong types and unknown fields, to merge strategically, and to
 * track who owns which field. Built-in types come from a table generated from Kubernetes' published OpenAPI; custom
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
  /** Server-side apply. Lists are atomic unless said; maps granular unless `atomic`. */
  readonly listType?: "atomic" | "set" | "map"
  readonly listMapKeys?: readonly string[]
  readonly isAtomic?: boolean
  /** Unknown fields stay (RawExtension, preserve-unknown-fields, embedded objects). */
  readonly preservesUnknown?: boolean
  readonly default?: unknown
  readonly description?: string
  /** Built-in types: what Go writes where the field has no value (`resources: {}`, `lastProbeTime: null`). */
  readonly zero?: unknown
  /** Built-in types: a field that holds only its zero value is not written. */
  readonly omitsZero?: boolean
  /** Built-in types: what a refusal calls the type (`v1.DeploymentSpec`). */
  readonly goType?: string
}

/** A field of a named type, with what the field adds to it. */
export type SchemaUse = Partial<Omit<Schema, "type">> & { readonly ref: string }

/** A node, or the name of one in the table (`io.k8s.api.core.v1.PodSpec`), alone or with what its use adds. */
export type SchemaRef = Schema | SchemaUse | string

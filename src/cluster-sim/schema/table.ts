import kubernetes from "./kubernetes.generated.json" with { type: "json" }
import type { Schema, SchemaRef, SchemaUse } from "./schema.ts"

type Definition = Schema & { gvk?: readonly string[] }

const table = kubernetes as unknown as Readonly<Record<string, Definition>>

/** "apps/v1/Deployment" → "io.k8s.api.apps.v1.Deployment" */
const byKind = new Map(Object.entries(table).flatMap(([name, { gvk = [] }]) => gvk.map(kind => [kind, name] as const)))

/** The name of a built-in kind's type in the table: ("apps/v1", "Deployment") → "io.k8s.api.apps.v1.Deployment". */
export const definitionName = (apiVersion: string, kind: string): string | undefined =>
  byKind.get(`${apiVersion}/${kind}`)

/** The schema of a built-in kind. */
export function kubernetesSchema(apiVersion: string, kind: string): Schema | undefined {
  const name = definitionName(apiVersion, kind)
  return name === undefined ? undefined : table[name]
}

/** Every definition, by name. */
export const definitions = (): Readonly<Record<string, Definition>> => table

/** Resolves a reference. An inline node is returned as it is, so schemas from CRDs may be passed too. */
export function resolve(ref: SchemaRef): Schema {
  if (typeof ref === "string") return named(ref)
  if (!("ref" in ref)) return ref
  const known = used.get(ref)
  if (known) return known
  const { ref: name, ...use } = ref
  const node = { ...named(name), ...use }
  used.set(ref, node)
  return node
}

const used = new WeakMap<SchemaUse, Schema>()

function named(name: string): Schema {
  const found = table[name]
  if (!found) throw new Error(`the table of Kubernetes' types has no ${name}`)
  return found
}

export const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

/** The schema of a whole object. A CRD can only restrict metadata: its type is always ObjectMeta. */
export function ofObject(schema: Schema): Schema {
  const metadata = schema.properties?.metadata
  if (metadata && (typeof metadata === "string" || "ref" in metadata)) return schema
  const known = objects.get(schema)
  if (known) return known
  const text: Schema = { type: "string" }
  const whole: Schema = {
    ...schema,
    type: "object",
    properties: { ...schema.properties, apiVersion: text, kind: text, metadata: objectMeta },
    // A schema without fields accepts everything. With metadata as its only field it would accept nothing else.
    ...(!schema.properties && { preservesUnknown: true }),
  }
  objects.set(schema, whole)
  return whole
}

const objects = new WeakMap<Schema, Schema>()

import { apiVersionOf } from "#runtime/resource.ts"
import type { Json } from "../object.ts"
import type { ServerRegistry } from "../registry/create-registry.ts"
import type { ServedKind } from "../registry/kind.ts"
import { openApiSchemas, resolve } from "../schema/index.ts"
import type { Schema, SchemaRef } from "../schema/schema.ts"
import { type Answer, json, unknownPath } from "./answer.ts"

/** `/openapi/v3` and below: enough for `kubectl explain` and for kubectl to learn what the server validates. */
export async function openApi(
  registry: ServerRegistry,
  path: string[],
  _headers: Record<string, string>,
): Promise<Answer> {
  const [dialect, ...where] = path
  if (dialect !== "v3") return unknownPath()
  if (where.length === 0) {
    const versions = new Set(registry.kinds().map(kind => pathOf(kind)))
    const paths = [...versions].map(each => [each, { serverRelativeURL: `/openapi/v3/${each}` }])
    return json({ paths: Object.fromEntries(paths) })
  }
  const kinds = registry.kinds().filter(kind => pathOf(kind) === where.join("/"))
  const [first] = kinds
  if (!first) return unknownPath()
  const schemas: Record<string, Json> = kinds.some(kind => !kind.isCustom)
    ? await openApiSchemas(apiVersionOf(first))
    : {}
  for (const kind of kinds) if (kind.isCustom) schemas[componentName(kind)] = componentOf(kind)
  return json({
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.36.3" },
    paths: Object.fromEntries(kinds.flatMap(operations)),
    components: { schemas },
  })
}

const pathOf = ({ group, version }: ServedKind) => (group ? `apis/${group}/${version}` : `api/${version}`)

function operations(kind: ServedKind): [string, Json][] {
  const { group, version, plural, namespaced } = kind
  const collection = `/${pathOf(kind)}/${namespaced ? "namespaces/{namespace}/" : ""}${plural}`
  const about = { "x-kubernetes-group-version-kind": { group, version, kind: kind.kind } }
  const parameters = ["dryRun", "fieldManager", "fieldValidation"].map(name => ({
    name,
    in: "query",
    schema: { type: "string", uniqueItems: true },
  }))
  const read = { ...about, responses: {} }
  const write = { ...about, parameters, responses: {} }
  return [
    [
      collection,
      { get: { ...read, "x-kubernetes-action": "list" }, post: { ...write, "x-kubernetes-action": "post" } },
    ],
    [
      `${collection}/{name}`,
      {
        get: { ...read, "x-kubernetes-action": "get" },
        put: { ...write, "x-kubernetes-action": "put" },
        patch: { ...write, "x-kubernetes-action": "patch" },
        delete: { ...read, "x-kubernetes-action": "delete" },
      },
    ],
  ]
}

const componentName = ({ group, version, kind }: ServedKind) => [...group.split(".").reverse(), version, kind].join(".")

function componentOf(kind: ServedKind): Json {
  const { group, version } = kind
  const schema = openApiOf(kind.schema)
  return { ...schema, "x-kubernetes-group-version-kind": [{ group, version, kind: kind.kind }] }
}

/** A schema of ours in OpenAPI's words. */
function openApiOf(ref: SchemaRef): Json {
  const schema: Schema = resolve(ref)
  const { type, format, properties, required, additional, items, description } = schema
  const types: Partial<Record<Schema["type"], Json>> = {
    any: {},
    "int-or-string": { "x-kubernetes-int-or-string": true },
  }
  return {
    ...(types[type] ?? { type }),
    ...(format && { format }),
    ...(description && { description }),
    ...(schema.default !== undefined && { default: schema.default }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, openApiOf(each)])),
    }),
    ...(required && required.length > 0 && { required }),
    ...(additional && { additionalProperties: openApiOf(additional) }),
    ...(items && { items: openApiOf(items) }),
    ...(schema.preservesUnknown && { "x-kubernetes-preserve-unknown-fields": true }),
    ...(schema.listType && { "x-kubernetes-list-type": schema.listType }),
    ...(schema.listMapKeys && { "x-kubernetes-list-map-keys": schema.listMapKeys }),
    ...(schema.isAtomic && { "x-kubernetes-map-type": "atomic" }),
  }
}

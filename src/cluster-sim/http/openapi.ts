import { apiVersionOf } from "#runtime/resource.ts"
import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { Json } from "../object.ts"
import { openApiSchemas, openApiTypes } from "../schema/index.ts"
import { type Answer, json, text, unknownPath } from "./answer.ts"

/** `/openapi/v3` and below: enough for `kubectl explain`, and for kubectl to find out what the server validates. */
export async function openApi(
  storage: ServerStorage,
  path: string[],
  headers: Record<string, string>,
): Promise<Answer> {
  const [dialect, ...where] = path
  if (dialect === "v2" && where.length === 0) return version2(headers)
  if (dialect !== "v3") return unknownPath()
  if (where.length === 0) {
    const versions = new Set(storage.kinds().map(kind => pathOf(kind)))
    const paths = [...versions].map(each => [each, { serverRelativeURL: `/openapi/v3/${each}` }])
    return json({ paths: Object.fromEntries(paths) })
  }
  const kinds = storage.kinds().filter(kind => pathOf(kind) === where.join("/"))
  const [first] = kinds
  if (!first) return unknownPath()
  const schemas: Record<string, Json> = kinds.some(kind => !kind.isCustom)
    ? await openApiSchemas(apiVersionOf(first))
    : { ...(await openApiTypes([meta("ObjectMeta")])), [meta("ListMeta")]: listMeta }
  for (const kind of kinds) if (kind.isCustom) Object.assign(schemas, componentsOf(storage, kind))
  return json({
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.36.3" },
    paths: Object.fromEntries(kinds.flatMap(operations)),
    components: { schemas },
  })
}

/**
 * The older dialect, empty. kubectl asks for it, as protobuf, when the newer one does not have a kind. Only with an
 * answer does kubectl report that there is no such kind.
 */
function version2({ accept = "" }: Record<string, string>): Answer {
  const type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
  if (/proto-openapi\.spec\.v2[@.]v1\.0\+protobuf/.test(accept))
    return { ...text("\n\u00032.0"), headers: { "content-type": type, "cache-control": "no-cache, private" } }
  return json({ swagger: "2.0", info: { title: "Kubernetes", version: "v1.36.3" }, paths: {} })
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

const componentName = ({ group, version }: ServedKind, kind: string) =>
  [...group.split(".").reverse(), version, kind].join(".")

const meta = (type: string) => `io.k8s.apimachinery.pkg.apis.meta.v1.${type}`

/** The schemas of a custom kind and its list: those of the definition, with apiVersion, kind and metadata. */
function componentsOf(storage: ServerStorage, kind: ServedKind): Record<string, Json> {
  const { group, version, plural, listKind } = kind
  const own = componentName(kind, kind.kind)
  const isOf = (name: string) => ({ "x-kubernetes-group-version-kind": [{ group, version, kind: name }] })
  const items = {
    description: `List of ${plural}. More info: ${conventions}`,
    type: "array",
    items: { $ref: `#/components/schemas/${own}` },
  }
  return {
    [own]: { ...asObject(propsOf(storage, kind)), ...isOf(kind.kind) },
    [componentName(kind, listKind)]: {
      description: `${listKind} is a list of ${kind.kind}`,
      type: "object",
      required: ["items"],
      properties: { ...typeMeta, items, metadata: metadata("ListMeta", "list metadata", "types-kinds") },
      ...isOf(listKind),
    },
  }
}

/** The schema from the definition: the served kind keeps only what decoding and merging need. */
function propsOf(storage: ServerStorage, { group, version, plural }: ServedKind): Json {
  const definitions = storage.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
  const definition = definitions && storage.find(definitions, { name: `${plural}.${group}` })
  const defined = definition?.spec.versions.find(({ name }: Json) => name === version)
  return defined?.schema?.openAPIV3Schema ?? { type: "object" }
}

/** A node that is a whole Kubernetes object. */
function asObject(props: Json): Json {
  const { properties, ...rest } = withEmbedded(props)
  return {
    ...rest,
    properties: { ...properties, ...typeMeta, metadata: metadata("ObjectMeta", "object's metadata", "metadata") },
  }
}

/** Embedded objects have apiVersion, kind and metadata, too. */
function withEmbedded(props: Json): Json {
  const { properties, items, additionalProperties: values } = props
  const inside = (child: Json) => (child["x-kubernetes-embedded-resource"] ? asObject(child) : withEmbedded(child))
  return {
    ...props,
    ...(properties && {
      properties: Object.fromEntries(Object.entries<Json>(properties).map(([name, each]) => [name, inside(each)])),
    }),
    ...(items && { items: inside(items) }),
    ...(values && typeof values === "object" && { additionalProperties: inside(values) }),
  }
}

const conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

const typeMeta = {
  apiVersion: {
    description: `APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: ${conventions}#resources`,
    type: "string",
  },
  kind: {
    description: `Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: ${conventions}#types-kinds`,
    type: "string",
  },
}

const listMeta = {
  description:
    "ListMeta describes metadata that synthetic resources must have, including lists and various status objects. A resource may have only one of {ObjectMeta, ListMeta}.",
  type: "object",
  properties: {
    continue: { type: "string" },
    remainingItemCount: { type: "integer", format: "int64" },
    resourceVersion: { type: "string" },
    selfLink: { type: "string" },
  },
}

const metadata = (type: string, what: string, anchor: string) => ({
  description: `Standard ${what}. More info: ${conventions}#${anchor}`,
  allOf: [{ $ref: `#/components/schemas/${meta(type)}` }],
})

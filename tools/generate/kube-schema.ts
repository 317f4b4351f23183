// `node tools/generate/kube-schema.ts [--check]`: what cluster-sim knows of Kubernetes' own types, taken from Kubernetes.
// It needs the Go modules of the real floor (tools/kube/kubernetes), so it is no part of `npm run generate`;
// test/e2e compares what it makes with what is committed.
import { execFile } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { parseArgs, promisify } from "node:util"
import type { Json } from "../../src/cluster-sim/object.ts"
import type { Schema, SchemaUse } from "../../src/cluster-sim/schema/schema.ts"
import { type GeneratedFile, inRepository } from "./file.ts"
import { type GoField, readGoStructs } from "./kube-structs.ts"

/** The kinds that people and controllers use. Types that they refer to are included. */
const roots: Record<string, string[]> = {
  "api/v1": [
    ...["Pod", "Node", "Namespace", "Service", "ConfigMap", "Secret", "ServiceAccount", "Event", "PodTemplate"],
    ...["Binding", "PersistentVolumeClaim", "PersistentVolume", "Endpoints", "LimitRange", "ResourceQuota"],
    ...["ReplicationController", "TokenRequest", "Eviction"],
  ],
  "apis/apps/v1": ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision", "Scale"],
  "apis/batch/v1": ["Job", "CronJob"],
  "apis/policy/v1": ["PodDisruptionBudget"],
  "apis/autoscaling/v1": ["HorizontalPodAutoscaler"],
  "apis/autoscaling/v2": ["HorizontalPodAutoscaler"],
  "apis/coordination.k8s.io/v1": ["Lease"],
  "apis/discovery.k8s.io/v1": ["EndpointSlice"],
  "apis/events.k8s.io/v1": ["Event"],
  "apis/rbac.authorization.k8s.io/v1": ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
  "apis/apiextensions.k8s.io/v1": ["CustomResourceDefinition"],
  "apis/admissionregistration.k8s.io/v1": [
    ...["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
    ...["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"],
  ],
  "apis/authentication.k8s.io/v1": ["SelfSubjectReview", "TokenReview"],
  "apis/authorization.k8s.io/v1": ["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"],
  "apis/networking.k8s.io/v1": ["NetworkPolicy", "Ingress", "IngressClass"],
  "apis/scheduling.k8s.io/v1": ["PriorityClass"],
  "apis/storage.k8s.io/v1": ["StorageClass"],
}

type OpenApi = Json

export async function kubeSchemaFiles(): Promise<GeneratedFile[]> {
  const modules = ["k8s.io/kubernetes", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver"]
  const { stdout } = await promisify(execFile)("go", ["list", "-m", "-f", "{{.Path}} {{.Dir}}", ...modules], {
    cwd: inRepository("tools/kube/kubernetes"),
  })
  const folders = Object.fromEntries(
    stdout
      .trim()
      .split("\n")
      .map(line => line.split(" ") as [string, string]),
  )
  const definitions: Record<string, OpenApi> = {}
  const names = new Set<string>()
  for (const [path, kinds] of Object.entries(roots)) {
    const file = `${folders["k8s.io/kubernetes"]}/api/openapi-spec/v3/${path.replaceAll("/", "__")}_openapi.json`
    const { components } = JSON.parse(await readFile(file, "utf8"))
    Object.assign(definitions, components.schemas)
    for (const kind of kinds) names.add(definitionOf(components.schemas, { path, kind }))
  }
  for (const name of names) for (const reached of references(definitions[name])) names.add(reached)

  const structs = await readGoStructs(folders)
  const enums = await readEnums(folders["k8s.io/kubernetes"]!)
  const table: Record<string, Json> = {}
  const descriptions: Record<string, Json> = {}
  for (const name of [...names].sort()) {
    const definition = definitions[name]
    const gvk = (definition["x-kubernetes-group-version-kind"] ?? []).map((one: Json) =>
      [one.group, one.version, one.kind].filter(Boolean).join("/"),
    )
    table[name] = { ...schemaOf(definition, structs.get(name)), ...(definition.properties?.metadata && { gvk }) }
    // Text or number, and no format says that it has a canonical form.
    if (name.endsWith(".resource.Quantity")) table[name].format = "quantity"
    descriptions[name] = described(definition, enums.get(name))
  }
  return [file("kubernetes", table), file("descriptions", descriptions)]
}

/** One definition a line: a change of Kubernetes shows as the types it touches. */
const file = (name: string, table: Record<string, Json>): GeneratedFile => ({
  path: inRepository(`src/cluster-sim/schema/${name}.generated.json`),
  content: `{\n${Object.entries(table)
    .map(([type, content]) => `${JSON.stringify(type)}:${JSON.stringify(content)}`)
    .join(",\n")}\n}\n`,
})

function definitionOf(schemas: OpenApi, { path, kind }: { path: string; kind: string }): string {
  const [version, group] = path.split("/").reverse()
  const matches = ({ group: of, version: at, kind: named }: Json) =>
    named === kind && at === version && (of === group || (of === "" && group === "api"))
  const found = Object.keys(schemas).find(
    name => name.endsWith(`.${kind}`) && schemas[name]["x-kubernetes-group-version-kind"]?.some(matches),
  )
  // Scale and Eviction are served under groups that are not their own.
  const other = Object.keys(schemas).find(name => name.endsWith(`.${kind}`))
  if (!found && !other) throw new Error(`${path} has no ${kind}`)
  return (found ?? other)!
}

function references(node: Json): string[] {
  if (node === null || typeof node !== "object") return []
  return Object.entries(node).flatMap(([key, value]) =>
    key === "$ref" && typeof value === "string" ? [referenced(value)] : references(value),
  )
}

const referenced = (ref: string) => ref.slice(ref.lastIndexOf("/") + 1)

/** The node of the table: what the simulator reads, and nothing that only people read. */
function schemaOf(node: OpenApi, struct?: Map<string, GoField>): Schema | SchemaUse {
  const inner = node.allOf?.[0] ?? node
  if (inner.$ref) return { ref: referenced(inner.$ref), ...of(node) }
  const properties =
    node.properties &&
    Object.fromEntries(
      Object.entries(node.properties).map(([name, child]) => [
        name,
        { ...schemaOf(child), ...goOf(child, struct?.get(name)) },
      ]),
    )
  return {
    type: typeOf(node),
    ...(node.format && { format: node.format }),
    ...of(node),
    ...(properties && { properties }),
    ...(node.required && { required: node.required }),
    ...(node.additionalProperties && { additional: schemaOf(node.additionalProperties) }),
    ...(node.items && { items: schemaOf(node.items) }),
  }
}

function typeOf(node: OpenApi): Schema["type"] {
  if (node.format === "int-or-string") return "int-or-string"
  if (node.oneOf || !node.type) return "any"
  return node.type
}

function of(node: OpenApi) {
  const isPlainDefault = node.default === undefined || isZero(node.default)
  return {
    ...(node["x-kubernetes-patch-strategy"] && { patchStrategy: node["x-kubernetes-patch-strategy"] }),
    ...(node["x-kubernetes-patch-merge-key"] && { mergeKey: node["x-kubernetes-patch-merge-key"] }),
    ...(node["x-kubernetes-list-type"] && { listType: node["x-kubernetes-list-type"] }),
    ...(node["x-kubernetes-list-map-keys"] && { listMapKeys: node["x-kubernetes-list-map-keys"] }),
    ...(node["x-kubernetes-map-type"] && { isAtomic: node["x-kubernetes-map-type"] === "atomic" }),
    ...(!isPlainDefault && { default: node.default }),
  }
}

const isZero = (value: Json) =>
  value === "" || value === 0 || value === false || (typeof value === "object" && Object.keys(value).length === 0)

/** What Go adds: whether the field is written when it is empty, and what its type is called in a refusal. */
function goOf(node: OpenApi, field?: GoField) {
  if (!field) return {}
  const { goType } = field
  const isStruct = field.zero !== undefined && field.zero !== null
  const scalar = { string: "", integer: 0, number: 0, boolean: false }[node.type as string]
  if (isStruct && scalar !== undefined) return field.omitsZero ? { goType, omitsZero: true } : { goType, zero: scalar }
  const odd = { Quantity: "0", IntOrString: 0 }[goType.slice(goType.lastIndexOf(".") + 1)]
  if (isStruct) return { goType, zero: odd ?? {} }
  return { goType, ...(field.zero === null && { zero: null }), ...(field.omitsZero && { omitsZero: true }) }
}

/** The text, in the shape of the table: [description, fields]; a field of few values is [description, values]. */
function described(node: OpenApi, enums?: Map<string, Json>): Json {
  const fields = Object.entries<Json>(node.properties ?? {}).map(([name, child]) => [
    name,
    enums?.get(name) ?? child.description ?? "",
  ])
  return [node.description ?? "", Object.fromEntries(fields)]
}

/**
 * The values a server publishes for some fields, and the text that goes with them. They are not in the published
 * files, which are made with that feature switched off, but in the source these come from.
 */
async function readEnums(folder: string): Promise<Map<string, Map<string, Json>>> {
  const source = await readFile(`${folder}/pkg/generated/openapi/zz_generated.openapi.go`, "utf8")
  const all = new Map<string, Map<string, Json>>()
  for (const body of source.split(/^func schema_k8sio_api_/m).slice(1)) {
    const [, group, version, type] = /^(\w+?)_(v\d+\w*?)_(\w+)\(/.exec(body) ?? []
    const fields = [...body.matchAll(/^\t{5}"(\w+)": \{\n(.*?)^\t{5}\},/gms)].flatMap(([, name = "", field = ""]) => {
      const values = /^\t{7}Enum: +\[\]interface\{\}\{(.*)\},$/m.exec(field)?.[1]
      const text = /^\t{7}Description: +(".*"),$/m.exec(field)?.[1]
      return values && text ? [[name, [JSON.parse(text), JSON.parse(`[${values}]`)]] as const] : []
    })
    if (fields.length > 0) all.set(`io.k8s.api.${group}.${version}.${type}`, new Map(fields))
  }
  return all
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: "boolean" } } })
  for (const { path, content } of await kubeSchemaFiles()) {
    const old = await readFile(path, "utf8").catch(() => "")
    if (old === content) continue
    if (values.check)
      throw new Error(`${path} is not what Kubernetes publishes; run node tools/generate/kube-schema.ts`)
    await writeFile(path, content)
    process.stdout.write(`${path}: ${Math.round(content.length / 1024)} kB\n`)
  }
}

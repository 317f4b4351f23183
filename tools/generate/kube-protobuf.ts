// `node tools/generate/kube-protobuf.ts [--check]`: the numbers Kubernetes gives to the fields of its types, and how each
// stands in JSON, so that protobuf is read into the same objects as JSON. It needs the Go modules of the real floor
// (tools/kube/kubernetes).
import { execFile } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { parseArgs, promisify } from "node:util"
import { type GeneratedFile, inRepository } from "./file.ts"

/** The messages bodies are made of, by the proto package they stand in. Messages that they refer to are included. */
const roots: Record<string, string[]> = {
  "k8s.io.api.core.v1": [
    ...["Pod", "Node", "Namespace", "Service", "ConfigMap", "Secret", "ServiceAccount", "Event", "Binding"],
    ...["PersistentVolumeClaim", "PersistentVolume", "LimitRange", "ResourceQuota", "Endpoints"],
  ],
  "k8s.io.api.apps.v1": ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"],
  "k8s.io.api.batch.v1": ["Job", "CronJob"],
  "k8s.io.api.policy.v1": ["PodDisruptionBudget", "Eviction"],
  "k8s.io.api.autoscaling.v1": ["HorizontalPodAutoscaler", "Scale"],
  "k8s.io.api.autoscaling.v2": ["HorizontalPodAutoscaler"],
  "k8s.io.api.coordination.v1": ["Lease"],
  "k8s.io.api.events.v1": ["Event"],
  "k8s.io.api.rbac.v1": ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
  "k8s.io.api.networking.v1": ["NetworkPolicy", "Ingress", "IngressClass"],
  "k8s.io.api.scheduling.v1": ["PriorityClass"],
  "k8s.io.api.storage.v1": ["StorageClass"],
  "k8s.io.api.authentication.v1": ["SelfSubjectReview", "TokenReview", "TokenRequest"],
  "k8s.io.api.authorization.v1": [
    ...["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview", "LocalSubjectAccessReview"],
  ],
  "k8s.io.apimachinery.pkg.apis.meta.v1": ["DeleteOptions", "Status"],
}

/**
 * By number: its name in JSON, its type, and where it is not simply there once: `list`, `map`, `inline` (its fields are
 * among those of the outer object) or `omitted` (not in JSON where it is empty, 0 or false).
 */
export type ProtoField = [name: string, type: string, how?: How]
type How = "list" | "map" | "inline" | "omitted"
export type ProtoTable = Record<string, Record<number, ProtoField>>

const target = "src/lib/kube-protobuf.generated.json"

export async function protobufFiles(): Promise<GeneratedFile[]> {
  const modules = ["k8s.io/api", "k8s.io/apimachinery"]
  const { stdout } = await promisify(execFile)("go", ["list", "-m", "-f", "{{.Path}} {{.Dir}}", ...modules], {
    cwd: inRepository("tools/kube/kubernetes"),
  })
  const folders = Object.fromEntries(
    stdout
      .trim()
      .split("\n")
      .map(line => line.split(" ") as [string, string]),
  )
  const packages = new Set([
    ...Object.keys(roots),
    "k8s.io.apimachinery.pkg.api.resource",
    "k8s.io.apimachinery.pkg.runtime",
    "k8s.io.apimachinery.pkg.util.intstr",
  ])
  const all: ProtoTable = {}
  for (const name of packages) {
    const [, module, rest] = /^k8s\.io\.(api|apimachinery)\.(.*)$/.exec(name) ?? []
    const folder = `${folders[`k8s.io/${module}`]}/${rest?.replaceAll(".", "/")}`
    const tags = tagsIn(await readFile(`${folder}/types.go`, "utf8").catch(() => ""))
    Object.assign(all, messagesIn(name, await readFile(`${folder}/generated.proto`, "utf8"), tags))
  }
  const wanted = new Set(Object.entries(roots).flatMap(([name, kinds]) => kinds.map(kind => `${name}.${kind}`)))
  for (const name of wanted)
    for (const [, type] of Object.values(all[name] ?? missing(name))) if (type.includes(".")) wanted.add(type)
  const table = Object.fromEntries([...wanted].sort().map(name => [short(name), shortened(all[name] ?? missing(name))]))
  const lines = Object.entries(table).map(([name, fields]) => `  ${JSON.stringify(name)}: ${JSON.stringify(fields)}`)
  return [{ path: inRepository(target), content: `{\n${lines.join(",\n")}\n}\n` }]
}

function missing(name: string): never {
  throw new Error(`no generated.proto tells of ${name}`)
}

/** How the field of a Go struct stands in JSON. */
type Tag = { name: string; omits: "empty" | "zero" | undefined }

/** By `Struct 3`: the tags of the field with that number. */
function tagsIn(source: string): Map<string, Tag> {
  const tags = new Map<string, Tag>()
  for (const [, struct, body = ""] of source.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm))
    for (const [, type = "", json = "", number] of body.matchAll(/(\S+)\s+`json:"([^"]*)" protobuf:"\w+,(\d+)/g)) {
      const [name = "", ...options] = json.split(",")
      const isEmptyOmitted = options.includes("omitempty") && !type.startsWith("*")
      const omits = options.includes("omitzero") ? "zero" : isEmptyOmitted ? "empty" : undefined
      tags.set(`${struct} ${number}`, { name, omits })
    }
  return tags
}

function messagesIn(name: string, source: string, tags: ReadonlyMap<string, Tag>): ProtoTable {
  const table: ProtoTable = {}
  for (const [, message = "", body = ""] of source.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)) {
    const fields: Record<number, ProtoField> = {}
    for (const [, label, type = "", field = "", number = ""] of body.matchAll(
      /^ {2}(optional |repeated )?(map<.*?>|[.\w]+) (\w+) = (\d+)/gm,
    )) {
      const value = /^map<string, (.*)>$/.exec(type)?.[1]
      const resolved = fullName(value ?? type, name)
      const tag = tags.get(`${message} ${number}`)
      const how = value ? "map" : label === "repeated " ? "list" : howOf(tag, resolved)
      fields[Number(number)] = how ? [tag?.name || field, resolved, how] : [tag?.name || field, resolved]
    }
    table[`${name}.${message}`] = fields
  }
  return table
}

/** `omitempty` never leaves out a struct, `omitzero` does. */
function howOf(tag: Tag | undefined, type: string): How | undefined {
  if (tag?.name === "") return "inline"
  const isStruct = type.includes(".")
  return tag?.omits === "zero" || (tag?.omits === "empty" && !isStruct) ? "omitted" : undefined
}

const fullName = (type: string, inside: string) =>
  type.startsWith(".") ? type.slice(1) : /^[A-Z]/.test(type) ? `${inside}.${type}` : type

const short = (name: string) => name.replace(/^k8s\.io\.(api\.|apimachinery\.pkg\.(apis\.)?)/, "")

const shortened = (fields: Record<number, ProtoField>) =>
  Object.fromEntries(
    Object.entries(fields).map(([number, [name, type, how]]) => [
      number,
      how ? [name, short(type), how] : [name, short(type)],
    ]),
  )

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: "boolean" } } })
  for (const { path, content } of await protobufFiles()) {
    if (!values.check) await writeFile(path, content)
    else if ((await readFile(path, "utf8")) !== content) {
      console.error(`${target} does not match Kubernetes: run node tools/generate/kube-protobuf.ts`)
      process.exitCode = 1
    }
  }
}

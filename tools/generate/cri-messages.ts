// `node tools/generate/cri-messages.ts [--check]`: the numbers and types of the fields that our client of the container
// runtime uses, from the public proto files. It needs the Go modules of the real floor (tools/kube).
import { execFile } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { parseArgs, promisify } from "node:util"
import { inRepository } from "./file.ts"

type Source = { module: string; folder: string; file: string; service: Record<string, string[]>; enums: string[] }

/** The methods we call, and no others: the client cannot call what is not here. */
const sources: Source[] = [
  {
    module: "k8s.io/cri-api",
    folder: "kubernetes",
    file: "pkg/apis/runtime/v1/api.proto",
    service: {
      RuntimeService: [
        ...["Version", "ListContainers", "ContainerStatus", "StopContainer", "ExecSync", "PodSandboxStatus"],
      ],
      ImageService: ["ListImages", "ImageStatus", "PullImage", "ImageFsInfo"],
    },
    enums: ["ContainerState", "PodSandboxState"],
  },
  {
    module: "github.com/containerd/containerd/api",
    folder: "containerd",
    file: "services/content/v1/content.proto",
    service: { Content: ["ListStatuses"] },
    enums: [],
  },
]

/** Fields that would carry much and of which nothing is read or sent. */
const unused: Record<string, string[]> = {
  VersionRequest: ["version"],
  VersionResponse: ["version", "runtime_api_version"],
  Container: ["image"],
  ContainerFilter: ["state"],
  ContainerStatusRequest: ["verbose"],
  ContainerStatusResponse: ["info"],
  ContainerStatus: ["mounts", "log_path", "resources", "image_id", "user", "stop_signal"],
  ImageSpec: ["annotations", "user_specified_image", "runtime_handler", "image_ref"],
  PodSandboxStatusRequest: ["verbose"],
  PodSandboxStatusResponse: ["info", "containers_statuses", "timestamp"],
  PodSandboxStatus: ["created_at", "linux", "labels", "annotations", "runtime_handler"],
  PodSandboxMetadata: ["attempt"],
  ListImagesRequest: ["filter"],
  Image: ["uid", "username", "spec"],
  ImageStatusRequest: ["verbose"],
  ImageStatusResponse: ["info"],
  PodSandboxConfig: ["metadata", "hostname", "log_directory", "dns_config", "port_mappings", "linux", "windows"],
  AuthConfig: ["auth", "registry_token"],
  ImageFsInfoResponse: ["container_filesystems"],
  FilesystemUsage: ["timestamp", "inodes_used"],
  ListStatusesRequest: ["filters"],
  Status: ["started_at", "updated_at", "expected"],
}

type Field = { number: number; name: string; type: string; many?: "list" | "map" }
type Method = { name: string; path: string; request: string; response: string }

const target = "src/runtime/cri/messages.generated.ts"

async function generated(): Promise<string> {
  const origins: string[] = []
  const methods: Method[] = []
  const messages = new Map<string, Field[]>()
  const enums = new Map<string, string[]>()
  for (const source of sources) {
    const { path, version } = await moduleOf(source)
    origins.push(`${source.file} of the Go module ${source.module} ${version}`)
    read(source, await readFile(`${path}/${source.file}`, "utf8"), { methods, messages, enums })
  }
  const tables = [...messages].map(([name, fields]) => `  ${name}: { ${fields.map(entryOf).join(", ")} },`)
  const types = [...messages].map(
    ([name, fields]) => `  ${name}: ${fields.length > 0 ? `{ ${fields.map(typeOf).join("; ")} }` : "object"}`,
  )
  const lines = [
    "// Written by tools/generate/cri-messages.ts; only names, numbers and types of fields, from",
    ...origins.map(origin => `// ${origin}`),
    'import type { MessageTable } from "#lib/protobuf.ts"',
    "export type Messages = {",
    ...types,
    "}",
    "export const table = {",
    ...tables,
    "} as const satisfies MessageTable",
    "export const methods = {",
    ...methods.map(method => `  ${method.name}: ${JSON.stringify({ ...method, name: undefined })},`),
    "} as const",
    ...[...enums].map(([name, values]) => `export const ${lowered(name)} = ${JSON.stringify(values)} as const`),
  ]
  return await formatted(`${lines.join("\n")}\n`)
}

async function moduleOf({ module, folder }: Source): Promise<{ path: string; version: string }> {
  const cwd = inRepository(`tools/kube/${folder}`)
  // Downloads the module where it is not there yet.
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], { cwd })
  const { Dir, Version } = JSON.parse(stdout)
  return { path: Dir, version: Version }
}

type Found = { methods: Method[]; messages: Map<string, Field[]>; enums: Map<string, string[]> }

/** Adds the methods of one file, the messages that they need, and the enums. */
function read({ service, enums }: Source, text: string, found: Found): void {
  const source = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*$/gm, "")
  const proto = /^package ([\w.]+);/m.exec(source)?.[1]
  for (const [name, wanted] of Object.entries(service))
    for (const method of wanted) {
      const pattern = new RegExp(`rpc ${method}\\((\\w+)\\) returns \\((\\w+)\\)`)
      const [, request = "", response = ""] = pattern.exec(source) ?? missing(method)
      found.methods.push({ name: method, path: `/${proto}.${name}/${method}`, request, response })
      for (const message of [request, response]) addMessage(message, source, found)
    }
  for (const name of enums) found.enums.set(name, valuesOf(name, source))
}

function addMessage(name: string, source: string, found: Found): void {
  if (found.messages.has(name)) return
  const body = new RegExp(`^message ${name}\\s*\\{([\\s\\S]*?)\\}`, "m").exec(source)?.[1] ?? missing(name)
  const fields = fieldsIn(body, source)
  for (const field of unused[name] ?? []) if (!fields.some(each => each.name === field)) missing(`${name}.${field}`)
  const kept = fields.filter(field => !unused[name]?.includes(field.name))
  found.messages.set(name, kept)
  for (const { type } of kept) if (/^[A-Z]/.test(type)) addMessage(type, source, found)
}

function fieldsIn(body: string, source: string): Field[] {
  const pattern = /^\s*(repeated\s+)?(map<.*?>|[.\w]+)\s+(\w+)\s*=\s*(\d+)/gm
  return [...body.matchAll(pattern)].map(([, repeated, type = "", name = "", number]) => {
    const many = type.startsWith("map<") ? "map" : repeated ? "list" : undefined
    const isEnum = new RegExp(`^enum ${type}\\b`, "m").test(source)
    const plain = many === "map" ? "string" : isEnum ? "int32" : type
    return { number: Number(number), name, type: plain, ...(many && { many }) }
  })
}

/** The names of an enum, whose numbers run from 0: the number of a value is its index. */
function valuesOf(name: string, source: string): string[] {
  const body = new RegExp(`^enum ${name}\\s*\\{([\\s\\S]*?)\\}`, "m").exec(source)?.[1] ?? missing(name)
  const values = [...body.matchAll(/(\w+)\s*=\s*(\d+)/g)]
  if (values.some(([, , number], index) => Number(number) !== index)) throw new Error(`enum ${name} has gaps`)
  return values.map(([, value = ""]) => value)
}

function missing(name: string): never {
  throw new Error(`the proto file has no ${name}`)
}

const entryOf = ({ number, name, type, many }: Field) =>
  `${number}: ${JSON.stringify([camel(name), type, ...(many ? [many] : [])])}`

function typeOf({ name, type, many }: Field): string {
  if (many === "map") return `${camel(name)}: Record<string, string>`
  const isMessage = /^[A-Z]/.test(type)
  const one = isMessage ? `Messages["${type}"]` : scalars[type]
  return many
    ? `${camel(name)}: ${one}[]`
    : isMessage
      ? `${camel(name)}?: ${one} | undefined`
      : `${camel(name)}: ${one}`
}

const scalars: Record<string, string> = {
  ...{ string: "string", bytes: "Buffer", bool: "boolean" },
  ...{ int32: "number", uint32: "number", int64: "bigint", uint64: "bigint" },
}

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const lowered = (name: string) => `${name[0]?.toLowerCase()}${name.slice(1)}s`

/** Generated files are left alone by the formatter, so it is given another name. */
async function formatted(text: string): Promise<string> {
  const child = promisify(execFile)(
    inRepository("node_modules/.bin/biome"),
    ["format", `--stdin-file-path=${target.replace(".generated", "")}`],
    {
      cwd: inRepository("."),
    },
  )
  child.child.stdin?.end(text)
  return (await child).stdout
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: "boolean" } } })
  const content = await generated()
  if (!values.check) await writeFile(inRepository(target), content)
  else if ((await readFile(inRepository(target), "utf8")) !== content) {
    console.error(`${target} does not match the proto files: run node tools/generate/cri-messages.ts`)
    process.exitCode = 1
  }
}

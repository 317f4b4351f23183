// `node tools/generate/kube-gateway-api.ts [--check]`: the kinds of the Gateway API and of Contour and Traefik as cluster-sim
// serves them, Istio's VirtualService for tests, and as tests install them on a real server: their CustomResourceDefinitions without the descriptions. It
// needs Go, which fetches the modules and checks them against the sums below, so it is no part of `npm run generate`;
// test/e2e compares.
import { execFile } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { parseArgs, promisify } from "node:util"
import { parse, parseAllDocuments } from "yaml"
import { type GeneratedFile, inRepository } from "./file.ts"

const folderOfKinds = "src/cluster-sim/gateway-api"
const gatewayApi = { name: "sigs.k8s.io/gateway-api@v1.4.0", sum: "h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ=" }
const contour = {
  name: "github.com/projectcontour/contour@v1.33.1",
  sum: "h1:DX3bJqf2glgSvpCSJWZ55kLoDLqp+ehuENXxJj6PYYM=",
}
const traefik = {
  name: "github.com/traefik/traefik/v3@v3.6.15",
  sum: "h1:Tw7HEQnO8iZE5xcZc20ejrU/wcDpaWVjmr7BSYf7ZiI=",
}
const istio = { name: "istio.io/api@v1.28.0", sum: "h1:0fYY9G03CAdFwE/fCkpr0v7kKsy+Hz9OCCjLNBNLbnU=" }
const plurals = ["gatewayclasses", "gateways", "httproutes", "referencegrants"]

type Json = unknown

export async function gatewayFiles(): Promise<GeneratedFile[]> {
  const folder = await folderOf(gatewayApi)
  const ofGateways = await Promise.all(
    plurals.map(async plural =>
      parse(await readFile(`${folder}/config/crd/standard/gateway.networking.k8s.io_${plural}.yaml`, "utf8")),
    ),
  )
  const ofContour = await definitionsIn(contour, "examples/contour/01-crds.yaml", ["httpproxies.projectcontour.io"])
  const ofTraefik = await definitionsIn(
    traefik,
    "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml",
    ["ingressroutes.traefik.io", "traefikservices.traefik.io"],
  )
  const ofIstio = await definitionsIn(istio, "kubernetes/customresourcedefinitions.gen.yaml", [
    "virtualservices.networking.istio.io",
  ])
  return [
    fileOf(`${folderOfKinds}/definitions`, ofGateways),
    fileOf(`${folderOfKinds}/contour-definitions`, ofContour),
    fileOf(`${folderOfKinds}/traefik-definitions`, ofTraefik),
    fileOf("test/support/istio-definitions", ofIstio.map(asStored)),
  ]
}

/** Those of a file with many, by name. */
async function definitionsIn(module: Module, path: string, names: readonly string[]): Promise<Definition[]> {
  const all = parseAllDocuments(await readFile(`${await folderOf(module)}/${path}`, "utf8"))
  return all.map(document => document.toJS()).filter(definition => names.includes(definition?.metadata.name))
}

/** In the version that is stored: the others are the same. */
const asStored = ({ spec, ...definition }: Definition): Definition => ({
  ...definition,
  spec: { ...spec, versions: spec.versions.filter(({ storage }) => storage) },
})

type Module = { name: string; sum: string }

async function folderOf({ name, sum }: Module): Promise<string> {
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", name])
  const { Dir: folder, Sum: found } = JSON.parse(stdout) as { Dir: string; Sum: string }
  if (found !== sum) throw new Error(`${name} has the sum ${found}, not ${sum}`)
  return folder
}

type Definition = { apiVersion: string; kind: string; metadata: { name: string; annotations?: Json }; spec: Spec }
type Spec = { versions: { storage: boolean }[]; [other: string]: Json }

function fileOf(file: string, definitions: readonly Definition[]): GeneratedFile {
  const lines = definitions.map(({ apiVersion, kind, metadata: { name, annotations }, spec }) =>
    JSON.stringify(withoutTexts({ apiVersion, kind, metadata: { name, annotations }, spec })),
  )
  const path = inRepository(`${file}.generated.json`)
  return { path, content: `[\n${lines.map(line => `  ${line}`).join(",\n")}\n]\n` }
}

/** Without descriptions of fields. A field that is itself called `description` stays. */
function withoutTexts(value: Json, holdsFields = false): Json {
  if (Array.isArray(value)) return value.map(each => withoutTexts(each))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, inner]) => holdsFields || name !== "description" || typeof inner !== "string")
      .map(([name, inner]) => [name, withoutTexts(inner, name === "properties" && !holdsFields)]),
  )
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: "boolean" } } })
  for (const { path, content } of await gatewayFiles())
    if (!values.check) await writeFile(path, content)
    else if ((await readFile(path, "utf8")) !== content) {
      console.error(`${path} does not match its module: run node tools/generate/kube-gateway-api.ts`)
      process.exitCode = 1
    }
}

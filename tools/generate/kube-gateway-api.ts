// `node tools/generate/kube-gateway-api.ts [--check]`: the kinds of the Gateway API as cluster-sim serves them, and as
// tests install them on a real server: their CustomResourceDefinitions without the descriptions. It needs Go, which
// fetches the module and checks it against the sum below, so it is no part of `npm run generate`; test/e2e compares.
import { execFile } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { parseArgs, promisify } from "node:util"
import { parse } from "yaml"
import { type GeneratedFile, inRepository } from "./file.ts"

const target = "src/cluster-sim/gateway-api/definitions.generated.json"
const gatewayModule = "sigs.k8s.io/gateway-api@v1.4.0"
const sum = "h1:ZwlNM6zOHq0h3WUX2gfByPs2yAEsy/EenYJB78jpQfQ="
const plurals = ["gatewayclasses", "gateways", "httproutes", "referencegrants"]

type Json = unknown

export async function gatewayApiFile(): Promise<GeneratedFile> {
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", gatewayModule])
  const { Dir: folder, Sum: found } = JSON.parse(stdout) as { Dir: string; Sum: string }
  if (found !== sum) throw new Error(`${gatewayModule} has the sum ${found}, not ${sum}`)
  const lines = await Promise.all(
    plurals.map(async plural => {
      const file = `${folder}/config/crd/standard/gateway.networking.k8s.io_${plural}.yaml`
      const { apiVersion, kind, metadata, spec } = parse(await readFile(file, "utf8"))
      const { name, annotations } = metadata
      return `  ${JSON.stringify(withoutTexts({ apiVersion, kind, metadata: { name, annotations }, spec }))}`
    }),
  )
  return { path: inRepository(target), content: `[\n${lines.join(",\n")}\n]\n` }
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
  const { path, content } = await gatewayApiFile()
  if (!values.check) await writeFile(path, content)
  else if ((await readFile(path, "utf8")) !== content) {
    console.error(`${target} does not match ${gatewayModule}: run node tools/generate/kube-gateway-api.ts`)
    process.exitCode = 1
  }
}

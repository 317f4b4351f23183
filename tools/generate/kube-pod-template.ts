// `node tools/generate/kube-pod-template.ts [--check]`: the Go structs of a pod template, whose printed form Kubernetes
// hashes. It needs Go and the modules of the real floor (tools/kube/kubernetes), and compiles k8s.io/api once, so it is
// no part of `npm run generate`; test/e2e compares what it makes with what is committed.
import { execFile } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { parseArgs, promisify } from "node:util"
import { type GeneratedFile, inRepository } from "./file.ts"

const target = "src/cluster-sim/physics/kube-controllers/pod-template-types.generated.json"
const modules = inRepository("tools/kube/kubernetes")

/** The version of Kubernetes that the real floor is built from, and these types are read from. */
export async function kubernetesVersion(): Promise<string> {
  const [, version] = /^\s*k8s\.io\/kubernetes v(\S+)/m.exec(await readFile(`${modules}/go.mod`, "utf8")) ?? []
  if (!version) throw new Error(`${modules}/go.mod names no version of k8s.io/kubernetes`)
  return version
}

export async function podTemplateFile(): Promise<GeneratedFile> {
  const program = inRepository("tools/generate/pod-template/main.go")
  // With the settings of the floor's own build, which has compiled these packages already.
  const options = { cwd: modules, env: { ...process.env, CGO_ENABLED: "0" } }
  const { stdout } = await promisify(execFile)("go", ["run", "-trimpath", program], options)
  const { structs, named } = JSON.parse(stdout) as { structs: Record<string, string[]>; named: Record<string, string> }
  const content = [
    `  "kubernetes": ${JSON.stringify(await kubernetesVersion())}`,
    `  "structs": {\n${lines(structs)}\n  }`,
    `  "named": {\n${lines(named)}\n  }`,
  ]
  return { path: inRepository(target), content: `{\n${content.join(",\n")}\n}\n` }
}

/** An entry a line: a change of one type is one line of a diff. */
const lines = (table: Record<string, unknown>) =>
  Object.entries(table)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
    .join(",\n")

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: "boolean" } } })
  const { path, content } = await podTemplateFile()
  if (!values.check) await writeFile(path, content)
  else if ((await readFile(path, "utf8")) !== content) {
    console.error(`${target} does not match Kubernetes: run node tools/generate/kube-pod-template.ts`)
    process.exitCode = 1
  }
}

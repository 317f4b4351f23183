import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { findProgram, run } from "./command.ts"
import { cacheFolder } from "./folders.ts"
import { withLock } from "./lock.ts"

/** The Go programs of the floor, in the order they are built: what takes long comes early. */
const programs = [
  { name: "etcd", module: "kubernetes", package: "go.etcd.io/etcd/server/v3" },
  { name: "kube-apiserver", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
  { name: "kube-controller-manager", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
  { name: "kube-scheduler", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
  { name: "kubelet", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kubelet" },
  { name: "kubectl", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kubectl" },
  { name: "kwok", module: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" },
] as const

type Program = (typeof programs)[number]
export type Binaries = Record<Program["name"], string>
type Say = (line: string) => void

const goWanted = [1, 26] as const

/** Gives the path of every program, building those that are missing or were built from something else. */
export async function prepareBinaries(say: Say, signal?: AbortSignal): Promise<Binaries> {
  const version = kubernetesVersion()
  const folder = join(cacheFolder(), "kube", version, "bin")
  const binaries = Object.fromEntries(programs.map(({ name }) => [name, join(folder, name)])) as Binaries
  const missing = () => programs.filter(program => readStamp(folder, program) !== recipeHash(program, version))
  if (missing().length === 0) return binaries

  const onWait = () => say("waiting for another build of the same programs")
  await withLock(join(folder, ".lock"), onWait, async () => {
    const todo = missing()
    if (todo.length === 0) return
    const go = await findGo()
    say(`building ${todo.length} programs of Kubernetes ${version} into ${folder}; the first time takes some minutes`)
    for (const [index, program] of todo.entries()) {
      const started = Date.now()
      const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`
      const title = `${program.name} (${index + 1} of ${todo.length})`
      say(`building ${title}`)
      const ticker = setInterval(() => say(`building ${title}: ${seconds()} so far`), 20_000)
      try {
        await build(go, program, { version, folder, signal })
      } finally {
        clearInterval(ticker)
      }
      say(`built ${title} in ${seconds()}`)
    }
  })
  return binaries
}

/** The version of Kubernetes, from the one place where it is written. */
function kubernetesVersion(): string {
  const version = /^\s*k8s\.io\/kubernetes (v\S+)/m.exec(moduleFile("kubernetes", "go.mod"))?.[1]
  if (!version) throw new Error("tools/kube/kubernetes/go.mod requires no k8s.io/kubernetes")
  return version
}

type BuildOptions = { version: string; folder: string; signal: AbortSignal | undefined }

/** Compiles under another name and renames, so that a program in its place is always whole. */
async function build(go: string, program: Program, { version, folder, signal }: BuildOptions) {
  mkdirSync(folder, { recursive: true })
  const target = join(folder, program.name)
  const unfinished = `${target}.unfinished`
  const child = spawn(go, ["build", ...buildFlags(version), "-o", unfinished, program.package], {
    cwd: join(import.meta.dirname, program.module),
    env: { ...process.env, CGO_ENABLED: "0", GOTOOLCHAIN: "local", GOFLAGS: "", GOWORK: "off" },
    stdio: ["ignore", 2, 2],
    signal,
  })
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve))
  if (code !== 0) throw new Error(`building ${program.name} failed with ${code}; what go said is above`)
  rmSync(stampFile(folder, program), { force: true })
  renameSync(unfinished, target)
  writeFileSync(stampFile(folder, program), recipeHash(program, version))
}

function buildFlags(version: string): string[] {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? []
  const strings = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: "clean" }
  const linked = Object.entries(strings).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
  return ["-mod=readonly", "-trimpath", "-ldflags", ["-s -w", ...linked].join(" ")]
}

/** What a program is built from. When it changes, the stamp beside the program no longer matches. */
function recipeHash(program: Program, version: string): string {
  const parts = [program.package, process.arch, ...buildFlags(version)]
  const files = ["go.mod", "go.sum"].map(file => moduleFile(program.module, file))
  return createHash("sha256")
    .update([...parts, ...files].join("\n"))
    .digest("hex")
}

const moduleFile = (module: string, file: string) => readFileSync(join(import.meta.dirname, module, file), "utf8")
const stampFile = (folder: string, program: Program) => join(folder, `.${basename(program.name)}.stamp`)

function readStamp(folder: string, program: Program): string | undefined {
  const stamp = stampFile(folder, program)
  return existsSync(stamp) && existsSync(join(folder, program.name)) ? readFileSync(stamp, "utf8") : undefined
}

async function findGo(): Promise<string> {
  const wanted = goWanted.join(".")
  const remedy = `install it: curl -L https://go.dev/dl/go${wanted}.0.linux-${process.arch === "x64" ? "amd64" : process.arch}.tar.gz | tar -C /usr/local -xz`
  const go = findProgram("go", ["/usr/local/go/bin"])
  if (!go) throw new Error(`Go ${wanted} or newer is missing; ${remedy}`)
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(await run(go, ["env", "GOVERSION"], { env: localGo() })) ?? []
  if (!isNewEnough(Number(major), Number(minor)))
    throw new Error(`Go ${wanted} or newer is missing (${go} is ${major}.${minor}); ${remedy}`)
  return go
}

const localGo = () => ({ ...process.env, GOTOOLCHAIN: "local" })
const isNewEnough = (major: number, minor: number) => major > goWanted[0] || (major === 1 && minor >= goWanted[1])

import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { findProgram, run } from "./command.ts"
import { cacheFolder } from "./folders.ts"
import { withLock } from "./lock.ts"

/** The Go programs of a cluster, in the order they are built: what takes long comes early. */
const programs = [
  { name: "etcd", module: "kubernetes", package: "go.etcd.io/etcd/server/v3" },
  { name: "kube-apiserver", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
  { name: "kube-controller-manager", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
  { name: "kube-scheduler", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
  { name: "kubelet", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kubelet" },
  { name: "kubectl", module: "kubernetes", package: "k8s.io/kubernetes/cmd/kubectl" },
  { name: "kwok", module: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok" },
] as const

type Program = { name: string; module: string; package: string }
export type Binaries = Record<(typeof programs)[number]["name"], string>
type Say = (line: string) => void

/** Programs of one version, and where they are kept. */
type Suite = {
  title: string
  version: string
  folder: string
  programs: readonly Program[]
  linked: string[]
  tags?: string[]
}

const goWanted = [1, 26] as const

/** Gives the path of every program of a cluster. */
export async function prepareBinaries(say: Say, signal?: AbortSignal): Promise<Binaries> {
  const suite = kubernetes(programs)
  await prepare(suite, say, signal)
  return Object.fromEntries(programs.map(({ name }) => [name, join(suite.folder, name)])) as Binaries
}

/** Gives the path of kube-proxy, which most tests need not: only a cluster that asks for it waits for its build. */
export async function prepareKubeProxy(say: Say, signal?: AbortSignal): Promise<string> {
  const name = "kube-proxy"
  const suite = kubernetes([{ name, module: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-proxy" }])
  await prepare(suite, say, signal)
  return join(suite.folder, name)
}

function kubernetes(programs: readonly Program[]): Suite {
  const version = versionOf("kubernetes", "k8s.io/kubernetes")
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? []
  const strings = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: "clean" }
  const linked = Object.entries(strings).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
  const folder = join(cacheFolder(), "kube", version, "bin")
  return { title: "Kubernetes", version, folder, programs, linked }
}

/** Gives the path of Helm, which is no part of a cluster: only a test that asks for it waits for its build. */
export async function prepareHelm(say: Say, signal?: AbortSignal): Promise<string> {
  const version = versionOf("helm", "helm.sh/helm/v4")
  const folder = join(cacheFolder(), "helm", version, "bin")
  const linked = [`-X helm.sh/helm/v4/internal/version.version=${version}`]
  const programs = [{ name: "helm", module: "helm", package: "helm.sh/helm/v4/cmd/helm" }]
  await prepare({ title: "Helm", version, folder, programs, linked }, say, signal)
  return join(folder, "helm")
}

/** Gives the folder of containerd and its shim, of the one version that is built here: only a test that asks waits. */
export async function prepareContainerd(say: Say, signal?: AbortSignal): Promise<{ version: string; folder: string }> {
  const module = "github.com/containerd/containerd/v2"
  const version = versionOf("containerd", module)
  const folder = join(cacheFolder(), "containerd", version, "bin")
  const programs = ["containerd", "containerd-shim-runc-v2"].map(name => ({
    ...{ name, module: "containerd", package: `${module}/cmd/${name}` },
  }))
  const linked = [`-X ${module}/version.Version=${version}`]
  // Snapshotters that need C libraries or that the floor does not use.
  const tags = ["no_btrfs", "no_devmapper", "no_zfs"]
  await prepare({ title: "containerd", version, folder, programs, linked, tags }, say, signal)
  return { version, folder }
}

/** Gives the path of Contour, and the folder with the CRDs that it reads: Gateway API's and its own. */
export async function prepareContour(say: Say, signal?: AbortSignal): Promise<{ program: string; crds: string }> {
  const module = "github.com/projectcontour/contour"
  const version = versionOf("contour", module)
  const folder = join(cacheFolder(), "contour", version, "bin")
  const programs = [{ name: "contour", module: "contour", package: `${module}/cmd/contour` }]
  const linked = [`-X ${module}/internal/build.Version=${version}`]
  await prepare({ title: "Contour", version, folder, programs, linked }, say, signal)
  const gatewayApi = "sigs.k8s.io/gateway-api"
  const crds = join(dirname(folder), `crds-${versionOf("contour", gatewayApi)}`)
  await copyOnce(crds, async to => {
    for (const [module, path] of [
      [gatewayApi, "config/crd/standard"],
      ["github.com/projectcontour/contour", "examples/contour/01-crds.yaml"],
    ] as const)
      cpSync(join(await moduleFolder("contour", module, signal), path), join(to, basename(path)), { recursive: true })
  })
  return { program: join(folder, "contour"), crds }
}

/** Gives the path of Traefik, and the folder with the CRDs that it reads besides those of the Gateway API. */
export async function prepareTraefik(say: Say, signal?: AbortSignal): Promise<{ program: string; crds: string }> {
  const module = "github.com/traefik/traefik/v3"
  const version = versionOf("traefik", module)
  const folder = join(cacheFolder(), "traefik", version, "bin")
  const programs = [{ name: "traefik", module: "traefik", package: `${module}/cmd/traefik` }]
  const linked = [`-X ${module}/pkg/version.Version=${version}`]
  await prepare({ title: "Traefik", version, folder, programs, linked }, say, signal)
  const gatewayApi = "sigs.k8s.io/gateway-api"
  const crds = join(dirname(folder), `crds-${versionOf("traefik", gatewayApi)}`)
  await copyOnce(crds, async to => {
    for (const [name, path] of [
      [gatewayApi, "config/crd/standard"],
      [module, "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"],
    ] as const)
      cpSync(join(await moduleFolder("traefik", name, signal), path), join(to, basename(path)), { recursive: true })
  })
  return { program: join(folder, "traefik"), crds }
}

/** Gives the folder of the OAM runtime that the guide on OAM is followed with: `bin`, and `crds` with its kinds. */
export async function prepareOamRuntime(say: Say, signal?: AbortSignal): Promise<string> {
  const module = "github.com/crossplane/oam-kubernetes-runtime"
  const version = versionOf("oam", module)
  const folder = join(cacheFolder(), "oam", version)
  const name = "oam-kubernetes-runtime"
  const programs = [{ name, module: "oam", package: `${module}/cmd/${name}` }]
  await prepare({ title: "the OAM runtime", version, folder: join(folder, "bin"), programs, linked: [] }, say, signal)
  await copyOnce(join(folder, "crds"), async to => {
    const from = join(await moduleFolder("oam", module, signal), "charts/oam-kubernetes-runtime/crds")
    cpSync(from, to, { recursive: true })
  })
  return folder
}

/** Gives the folder of Open Cluster Management: `bin`, and `crds` with the kinds of a hub and of a spoke. */
export async function prepareOcm(say: Say, signal?: AbortSignal): Promise<string> {
  const module = "open-cluster-management.io/ocm"
  const version = versionOf("ocm", module)
  const folder = join(cacheFolder(), "ocm", version)
  const programs = ["work", "registration", "placement"].map(name => ({
    ...{ name, module: "ocm", package: `${module}/cmd/${name}` },
  }))
  const title = "Open Cluster Management"
  await prepare({ title, version, folder: join(folder, "bin"), programs, linked: [] }, say, signal)
  await copyOnce(join(folder, "crds"), async to => {
    const from = await moduleFolder("ocm", "open-cluster-management.io/api", signal)
    for (const group of [
      "work/v1",
      "work/v1alpha1",
      "cluster/v1",
      "cluster/v1beta1",
      "cluster/v1beta2",
      "cluster/v1alpha1",
      "addon/v1alpha1",
    ])
      cpSync(join(from, group), join(to, group), { recursive: true, filter: path => !path.endsWith(".go") })
  })
  return folder
}

/** Gives the path of the server in examples/traffic. */
export async function prepareExampleServer(say: Say, signal?: AbortSignal): Promise<string> {
  const folder = join(cacheFolder(), "examples", "bin")
  const programs = [{ name: "traffic", module: "../../examples/traffic", package: "." }]
  await prepare({ title: "examples/traffic", version: "", folder, programs, linked: [] }, say, signal)
  return join(folder, "traffic")
}

/** Fills a folder under another name and renames it, so that a folder in its place is always whole. */
async function copyOnce(folder: string, fill: (to: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return
  const unfinished = mkdtempSync(`${folder}.unfinished-`)
  try {
    await fill(unfinished)
    renameSync(unfinished, folder)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    // Another process was faster, and what it made is the same.
    if (!existsSync(folder)) throw error
  }
}

/** Where the files of a module are, in Go's cache; fetched if they are not. */
async function moduleFolder(folder: string, module: string, signal: AbortSignal | undefined): Promise<string> {
  const cwd = join(import.meta.dirname, folder)
  const told = await run(await findGo(), ["mod", "download", "-json", module], { cwd, env: goEnvironment(), signal })
  return JSON.parse(told).Dir
}

/** Builds those that are missing or were built from something else. */
async function prepare(suite: Suite, say: Say, signal: AbortSignal | undefined): Promise<void> {
  const { folder } = suite
  const name = `${suite.title} ${suite.version}`.trim()
  const missing = () => suite.programs.filter(program => readStamp(folder, program) !== recipeHash(program, suite))
  if (missing().length === 0) return

  const onWait = () => say("waiting for another build of the same programs")
  await withLock(join(folder, ".lock"), onWait, async () => {
    const todo = missing()
    if (todo.length === 0) return
    const go = await findGo()
    const count = todo.length === 1 ? "1 program" : `${todo.length} programs`
    say(`building ${count} of ${name} into ${folder}; the first time takes some minutes`)
    for (const [index, program] of todo.entries()) {
      const started = Date.now()
      const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`
      const title = `${program.name} (${index + 1} of ${todo.length})`
      say(`building ${title}`)
      const ticker = setInterval(() => say(`building ${title}: ${seconds()} so far`), 20_000)
      try {
        await build(go, program, suite, signal)
      } finally {
        clearInterval(ticker)
      }
      say(`built ${title} in ${seconds()}`)
    }
  })
}

/** The version of a module, from the one place where it is written. */
function versionOf(folder: string, module: string): string {
  const required = moduleFile(folder, "go.mod").matchAll(/^\s*(\S+) (v\S+)/gm)
  const version = [...required].find(([, name]) => name === module)?.[2]
  if (!version) throw new Error(`tools/kube/${folder}/go.mod requires no ${module}`)
  return version
}

/** Compiles under another name and renames, so that a program in its place is always whole. */
async function build(go: string, program: Program, suite: Suite, signal: AbortSignal | undefined) {
  mkdirSync(suite.folder, { recursive: true })
  const target = join(suite.folder, program.name)
  const unfinished = `${target}.unfinished`
  const child = spawn(go, ["build", ...buildFlags(suite), "-o", unfinished, program.package], {
    cwd: join(import.meta.dirname, program.module),
    env: goEnvironment(),
    stdio: ["ignore", 2, 2],
    signal,
  })
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve))
  if (code !== 0) throw new Error(`building ${program.name} failed with ${code}; what go said is above`)
  rmSync(stampFile(suite.folder, program), { force: true })
  renameSync(unfinished, target)
  writeFileSync(stampFile(suite.folder, program), recipeHash(program, suite))
}

const buildFlags = ({ linked, tags }: Suite) => [
  ...["-mod=readonly", "-trimpath", "-ldflags", ["-s -w", ...linked].join(" ")],
  ...(tags ? ["-tags", tags.join(",")] : []),
]

/** What a program is built from. When it changes, the stamp beside the program no longer matches. */
function recipeHash(program: Program, suite: Suite): string {
  const parts = [program.package, process.arch, ...buildFlags(suite)]
  const names = readdirSync(join(import.meta.dirname, program.module)).sort()
  const files = names.filter(name => /^go\.(mod|sum)$|\.go$/.test(name)).map(name => moduleFile(program.module, name))
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
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(await run(go, ["env", "GOVERSION"], { env: goEnvironment() })) ?? []
  if (!isNewEnough(Number(major), Number(minor)))
    throw new Error(`Go ${wanted} or newer is missing (${go} is ${major}.${minor}); ${remedy}`)
  return go
}

const goEnvironment = () => ({
  ...process.env,
  ...{ CGO_ENABLED: "0", GOTOOLCHAIN: "local", GOFLAGS: "", GOWORK: "off" },
})
const isNewEnough = (major: number, minor: number) => major > goWanted[0] || (major === 1 && minor >= goWanted[1])

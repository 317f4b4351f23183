import { spawn } from "node:child_process"
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { findProgram } from "./command.ts"
import { cacheFolder } from "./folders.ts"
import { withLock } from "./lock.ts"

/** Debian packages, each with the file that shows it is there, and what needs it if not every cluster does. */
const packages: { name: string; isThere: () => boolean; for?: keyof Needs }[] = [
  { name: "iproute2", isThere: has("ip") },
  { name: "iptables", isThere: has("iptables") },
  { name: "mount", isThere: has("mount") },
  { name: "openssl", isThere: has("openssl") },
  { name: "util-linux", isThere: () => has("unshare")() && has("setpriv")() && has("flock")() },
  { name: "containerd", isThere: has("containerd"), for: "node" },
  { name: "runc", isThere: has("runc"), for: "node" },
  { name: "containernetworking-plugins", isThere: () => existsSync("/usr/lib/cni/bridge"), for: "node" },
  { name: "docker-registry", isThere: has("docker-registry"), for: "node" },
  { name: "skopeo", isThere: has("skopeo"), for: "node" },
  { name: "umoci", isThere: has("umoci"), for: "node" },
  { name: "busybox-static", isThere: hasStaticBusybox, for: "node" },
  { name: "prometheus", isThere: () => has("prometheus")() && has("promtool")(), for: "prometheus" },
  { name: "python3-pip", isThere: () => has("pip3")() && has("python3")(), for: "envoy" },
  { name: "graphite-web", isThere: () => existsSync("/usr/lib/python3/dist-packages/graphite"), for: "graphite" },
  { name: "graphite-carbon", isThere: has("carbon-cache"), for: "graphite" },
  { name: "chromium", isThere: has("chromium"), for: "browser" },
  { name: "fonts-dejavu-core", isThere: () => existsSync("/usr/share/fonts/truetype/dejavu"), for: "browser" },
]

type Say = (line: string) => void
type Needs = { node?: boolean; prometheus?: boolean; envoy?: boolean; graphite?: boolean; browser?: boolean }

/** Makes sure that every program from Debian is there, installing what is missing; fails with the command otherwise. */
export async function preparePackages(options: Needs & { say: Say }): Promise<void> {
  if (missing(options).length === 0) return
  const aptGet = findAptGet(missing(options))
  const onWait = () => options.say("waiting for another installation of packages")
  await withLock(join(cacheFolder(), "packages.lock"), onWait, async () => {
    const names = missing(options)
    if (names.length > 0) await install(aptGet, names, options.say)
    const still = missing(options)
    if (still.length > 0) throw new Error(`still missing after installing them: ${still.join(", ")}`)
  })
}

function missing(needs: Needs): string[] {
  return packages.filter(entry => (!entry.for || needs[entry.for]) && !entry.isThere()).map(({ name }) => name)
}

function findAptGet(names: string[]): string {
  const aptGet = findProgram("apt-get")
  if (!aptGet) throw new Error(`${byHand(names)} (this machine has no apt-get; use what it has instead)`)
  if (process.getuid?.() !== 0) throw new Error(`${byHand(names)} (as root)`)
  return aptGet
}

async function install(aptGet: string, names: string[], say: Say) {
  say(`installing ${names.join(", ")}`)
  await withoutServices(async () => {
    const attempt = () => run(aptGet, installArguments(names))
    // A machine that has never fetched the package lists knows no package: fetch them once and try again.
    const isDone = (await attempt()) || ((await run(aptGet, ["update"])) && (await attempt()))
    if (!isDone) throw new Error(`apt-get failed; what it said is above. ${byHand(names)}`)
  })
}

const installArguments = (names: string[]) => ["install", "--yes", "--no-install-recommends", ...names]
const byHand = (names: string[]) =>
  `these packages are missing: ${names.join(" ")}. To install them: apt-get ${installArguments(names).join(" ")}`

/** Debian starts a service when its package arrives; here they run in the cluster's namespaces or not at all. */
async function withoutServices(work: () => Promise<void>) {
  const policy = "/usr/sbin/policy-rc.d"
  const aside = `${policy}.before-aim`
  // An `aside` from an installation that was killed is the true one; it must not be overwritten by ours.
  if (existsSync(policy) && !existsSync(aside)) renameSync(policy, aside)
  writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 })
  try {
    await work()
  } finally {
    rmSync(policy, { force: true })
    if (existsSync(aside)) renameSync(aside, policy)
  }
}

async function run(aptGet: string, args: string[]): Promise<boolean> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  const child = spawn(aptGet, ["-qq", "-o", "Dpkg::Use-Pty=0", ...args], { env, stdio: ["ignore", 2, 2] })
  return await new Promise((resolve, reject) => child.once("error", reject).once("exit", code => resolve(code === 0)))
}

function has(program: string): () => boolean {
  return () => findProgram(program) !== undefined
}

/** The other busybox package has the same file but needs a C library, which our images do not have. */
function hasStaticBusybox(): boolean {
  const busybox = findProgram("busybox")
  return busybox !== undefined && !readFileSync(busybox).subarray(0, 4096).includes("/ld-")
}

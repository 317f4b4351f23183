// The first program in a cluster's namespaces. It sets them up, starts and stops the cluster's programs as it is told,
// and carries connections in and out. When its parent is gone it ends, and with it, since the process namespace goes,
// everything that was ever started inside: no container or mount can outlive the cluster.
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { connect, createServer, type Server } from "node:net"
import { join } from "node:path"
import { connectBoth } from "./connect.ts"
import { type Hierarchy, type News, network, type Order, type Setup } from "./orders.ts"

const kubeletSettings = {
  "vm/overcommit_memory": "1",
  "vm/panic_on_oom": "0",
  "kernel/panic": "10",
  "kernel/panic_on_oops": "1",
  "kernel/keys/root_maxkeys": "1000000",
  "kernel/keys/root_maxbytes": "25000000",
}

const setup = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as Setup
const programs = new Map<string, ChildProcess>()
const say = (news: News, handle?: Server) => process.send?.(news, handle)

process.on("disconnect", () => process.exit(0))
process.on("message", (order: Order, handle: unknown) => {
  try {
    obey(order, handle as Server | undefined)
  } catch (error) {
    say({ failed: `${order.do}: ${error}` })
  }
})

try {
  makeGroups(setup.hierarchies)
  makeMounts(setup.folder)
  makeNetwork()
  say({ ready: true })
} catch (error) {
  say({ failed: `setting up the namespaces: ${error}` })
}

function obey(order: Order, handle: Server | undefined) {
  switch (order.do) {
    case "start":
      return start(order)
    case "stop":
      programs.get(order.name)?.kill(order.signal)
      return
    case "relay":
      handle?.on("connection", socket => connectBoth(socket, connect(order.port, order.host)))
      return
    case "expose":
      return expose(order.port)
    case "quit":
      process.exit(0)
  }
}

function start({ name, command: [file = "", ...args], log, env }: Order & { do: "start" }) {
  const out = openSync(log, "a")
  const child = spawn(file, args, { stdio: ["ignore", out, out], env: { ...process.env, NODE_CHANNEL_FD: "", ...env } })
  programs.set(name, child)
  child.once("error", error => say({ ended: name, how: error.message }))
  child.once("spawn", () => say({ started: name, pid: child.pid ?? 0 }))
  child.once("exit", (code, signal) => say({ ended: name, how: signal ?? `code ${code}` }))
}

/** The listener is handed to the parent: a socket stays in the network it was made in. */
function expose(port: number) {
  for (const host of ["127.0.0.1", network.address]) {
    const server = createServer({ pauseOnConnect: true }).listen(port, host, () => {
      process.send?.({ exposed: port } satisfies News, server, {}, () => server.close())
    })
    server.once("error", error => say({ failed: `exposing port ${port} on ${host}: ${error.message}` }))
  }
}

/** In a cgroup namespace, a fresh mount shows our group as the root: what runc makes, it makes below it. */
function makeGroups(hierarchies: Hierarchy[]) {
  for (const { type, options, mountPoint } of hierarchies) {
    command("umount", mountPoint)
    command("mount", "-t", type, ...(options ? ["-o", options] : []), type, mountPoint)
  }
  const only = hierarchies.length === 1 ? hierarchies[0] : undefined
  if (only?.type !== "cgroup2") return
  // In a version 2 tree only leaves may hold processes, so the programs that are here already move into one.
  const leaf = join(only.mountPoint, "init")
  mkdirSync(leaf)
  for (const pid of [1, process.pid]) writeFileSync(join(leaf, "cgroup.procs"), String(pid))
  for (const controller of ["cpu", "memory", "pids"])
    writeFileSync(join(only.mountPoint, "cgroup.subtree_control"), `+${controller}`)
}

function makeMounts(folder: string) {
  // Kubelet insists on a few settings of the whole machine. It is shown files that say what it wants, and the rest
  // can only be read, so that the machine stays as it was.
  command("mount", "--bind", "/proc/sys", "/proc/sys")
  for (const [name, value] of Object.entries(kubeletSettings)) {
    const shown = join(folder, name.replaceAll("/", "-"))
    writeFileSync(shown, value)
    command("mount", "--bind", shown, join("/proc/sys", name))
  }
  command("mount", "-o", "remount,bind,ro", "/proc/sys")
  command("mount", "--bind", "/proc/sys/net", "/proc/sys/net")
  command("mount", "-o", "remount,bind,rw", "/proc/sys/net")
  // Sockets, CNI state and pod logs go to well-known places; two clusters must not meet there.
  command("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
  for (const place of ["/var/lib/cni", "/var/log"]) {
    const own = join(folder, place.slice(1).replaceAll("/", "-"))
    mkdirSync(own, { recursive: true })
    mkdirSync(place, { recursive: true })
    command("mount", "--bind", own, place)
  }
  // Volumes mounted by kubelet must be seen by the containers it starts.
  command("mount", "--make-rshared", "/")
}

function makeNetwork() {
  const { bridge, address, prefixLength, serviceRange, apiService, apiPort } = network
  command("hostname", "aim-node")
  command("ip", "link", "set", "lo", "up")
  command("ip", "link", "add", bridge, "type", "bridge")
  command("ip", "address", "add", `${address}/${prefixLength}`, "dev", bridge)
  command("ip", "link", "set", bridge, "up")
  command("ip", "route", "add", serviceRange, "dev", bridge)
  writeFileSync("/proc/sys/net/ipv4/ip_forward", "1")
  // The registry and exposed servers have the number inside that was free outside. Connections made inside take theirs
  // from another range, or one of them would sooner or later sit on it.
  writeFileSync("/proc/sys/net/ipv4/ip_local_port_range", "16000 29999")
  const toApi = ["-d", apiService, "-p", "tcp", "--dport", "443", "-j", "DNAT", "--to", `${address}:${apiPort}`]
  for (const chain of ["PREROUTING", "OUTPUT"]) command("iptables", "-w", "-t", "nat", "-A", chain, ...toApi)
}

function command(file: string, ...args: string[]) {
  execFileSync(file, args, { stdio: ["ignore", "ignore", "pipe"] })
}

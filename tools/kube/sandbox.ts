import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { basename, join } from "node:path"
import { connectBoth } from "./connect.ts"
import type { Hierarchy, News, Order, Setup } from "./orders.ts"
import { startTicks } from "./processes.ts"

/**
 * Namespaces of their own for a cluster: network, mounts, processes, cgroups, host name. Whatever happens inside stays
 * inside, and ends when the sandbox is closed or the process that opened it is gone, however it went.
 */
export type Sandbox = {
  /** Process id, seen from outside, of the first process inside: `nsenter --target PID --all` goes in. */
  pid: number
  start(program: { name: string; command: string[]; log: string; env?: Record<string, string> }): Promise<void>
  /** Ends one program and waits until it is gone. */
  stop(name: string, signal?: NodeJS.Signals): Promise<void>
  /** Gives a loopback port of the machine that leads to `host:port` inside. */
  relay(listener: Server, to: { host: string; port: number }): Promise<void>
  /** Makes a loopback port of the machine reachable inside, under the same number on 127.0.0.1 and the bridge. */
  expose(port: number): Promise<void>
  onEnded(listener: (name: string, how: string) => void): void
  /** Resolves when nothing runs inside any more, wanted or not. */
  ended: Promise<void>
  close(): Promise<void>
}

/** A listener on a free loopback port. The port is taken from now on, so that no other process can get it. */
export async function freePort(): Promise<{ port: number; listener: Server }> {
  const listener = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1")
  await once(listener, "listening")
  return { port: (listener.address() as AddressInfo).port, listener }
}

export async function openSandbox(options: { folder: string; hierarchies: Hierarchy[] }): Promise<Sandbox> {
  const { folder, hierarchies } = options
  makeGroups(hierarchies)
  const setup = join(folder, "sandbox.json")
  writeFileSync(setup, JSON.stringify({ folder, hierarchies } satisfies Setup))
  const inside = [process.execPath, join(import.meta.dirname, "inside.ts"), setup]
  const child = spawn("sh", ["-c", enter, "sh", ...hierarchies.map(({ group }) => group), "--", ...inside], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // Not in the terminal's process group: Ctrl-C is for this process, which then ends the inside cleanly.
    detached: true,
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, HOME: folder, LANG: "C.UTF-8" },
  })
  const pid = child.pid
  if (pid === undefined) throw new Error("starting the sandbox: sh did not start")
  const ended = new Promise<void>(resolve => child.once("exit", () => resolve()))
  const listeners: ((name: string, how: string) => void)[] = []
  const waiting = new Waiting(child, listeners)

  const send = (order: Order, handle?: Server) =>
    new Promise<void>((resolve, reject) =>
      child.send(order, handle, {}, error =>
        error ? reject(new Error(`sandbox: ${order.do}`, { cause: error })) : resolve(),
      ),
    )
  await waiting
    .next(news => "ready" in news)
    .catch(async error => {
      if (child.connected) child.disconnect()
      await ended
      throw error
    })

  return {
    pid: firstChild(pid) ?? pid,
    async start(program) {
      const started = waiting.next(news => "started" in news && news.started === program.name)
      await send({ do: "start", ...program })
      await started
    },
    async stop(name, signal = "SIGTERM") {
      const gone = waiting.next(news => "ended" in news && news.ended === name)
      await send({ do: "stop", name, signal })
      await gone
    },
    async relay(listener, to) {
      await send({ do: "relay", ...to }, listener)
      listener.close()
    },
    async expose(port) {
      let open = 0
      const both = waiting.next(news => "exposed" in news && news.exposed === port && ++open === 2)
      await send({ do: "expose", port })
      await both
    },
    onEnded(listener) {
      listeners.push(listener)
    },
    ended,
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const first = firstChild(pid)
      if (child.connected) await send({ do: "quit" }).catch(() => {})
      const patience = setTimeout(() => kill(first ?? pid), 3_000)
      await ended
      clearTimeout(patience)
    },
  }
}

/**
 * Joins the given cgroups, makes the namespaces, and becomes their keeper. Process 1 is a shell because a first process
 * must collect the orphans of the others, which Node does not do.
 */
const enter = `
while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done
shift
exec setpriv --pdeathsig KILL unshare --cgroup --net --mount --uts --ipc --pid --fork --kill-child --mount-proc \\
  bash -c '"$@"; exit $?' init "$@"
`

/** The cgroup trees of this machine, and for each a group for the cluster below the one we are in ourselves. */
export function planHierarchies(folder: string): Hierarchy[] {
  return parseHierarchies({
    mounts: readFileSync("/proc/self/mountinfo", "utf8"),
    groups: readFileSync("/proc/self/cgroup", "utf8"),
    name: basename(folder),
  })
}

export function parseHierarchies(seen: { mounts: string; groups: string; name: string }): Hierarchy[] {
  const own = seen.groups
    .trim()
    .split("\n")
    .map(line => {
      const [, controllers = "", ...path] = line.split(":")
      return { controllers: controllers.split(",").filter(Boolean), path: path.join(":") }
    })
  return seen.mounts
    .trim()
    .split("\n")
    .flatMap(line => {
      const [before = "", after = ""] = line.split(" - ")
      const mountPoint = before.split(" ")[4] ?? ""
      const [type, , superOptions = ""] = after.split(" ")
      if (type !== "cgroup" && type !== "cgroup2") return []
      const controllers =
        type === "cgroup2" ? [] : superOptions.split(",").filter(option => !/^(rw|ro|xattr)$/.test(option))
      const path = own.find(entry => entry.controllers.join() === controllers.join())?.path
      if (path === undefined) return []
      const named = controllers.some(controller => controller.startsWith("name="))
      const options = [...(named ? ["none"] : []), ...controllers].join(",")
      return [{ type, options, mountPoint, group: join(mountPoint, path, seen.name) }]
    })
}

function makeGroups(hierarchies: Hierarchy[]) {
  for (const { group, options } of hierarchies) {
    mkdirSync(group, { recursive: true })
    if (!options.split(",").includes("cpuset")) continue
    // A fresh cpuset has no processors, and no process can join it before it has.
    for (const file of ["cpuset.cpus", "cpuset.mems"])
      writeFileSync(join(group, file), readFileSync(join(group, "..", file)))
  }
}

/** Messages of the inside, as promises. */
class Waiting {
  #child: ChildProcess
  #troubles = new Set<(error: Error) => void>()

  constructor(child: ChildProcess, onEnded: ((name: string, how: string) => void)[]) {
    this.#child = child
    child.on("message", (news: News, handle: unknown) => {
      if ("exposed" in news) carryOut(handle as Server, news.exposed)
      if ("ended" in news) for (const listener of onEnded) listener(news.ended, news.how)
      if ("failed" in news) this.#fail(new Error(news.failed))
    })
    child.once("error", error => this.#fail(error))
    child.once("exit", (code, signal) => this.#fail(new Error(`the sandbox ended (${signal ?? code})`)))
  }

  next(isIt: (news: News) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = () => {
        this.#child.off("message", look)
        this.#troubles.delete(fail)
      }
      const look = (news: News) => {
        if (!isIt(news)) return
        done()
        resolve()
      }
      const fail = (error: Error) => {
        done()
        reject(error)
      }
      this.#child.on("message", look)
      this.#troubles.add(fail)
    })
  }

  #fail(error: Error) {
    for (const trouble of this.#troubles) trouble(error)
  }
}

function carryOut(server: Server, port: number) {
  server.on("connection", (socket: Socket) => connectBoth(socket, connect(port, "127.0.0.1")))
  server.unref()
}

function firstChild(pid: number): number | undefined {
  try {
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")
    return child ? Number(child) : undefined
  } catch {
    return undefined
  }
}

function kill(pid: number) {
  if (startTicks(pid) !== undefined) process.kill(pid, "SIGKILL")
}

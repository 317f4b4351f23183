import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import type { Clock } from "#runtime/clock.ts"
import { type Dashboard, type DashboardOptions, serveDashboard } from "#web/server.ts"
import { Failure, type World } from "../command.ts"
import type { LocalCluster } from "../local-cluster.ts"
import { pageFolder } from "./page.ts"

export type Served = Pick<DashboardOptions, "viewers" | "clusterNow" | "speed" | "cluster" | "operates"> &
  Partial<Pick<DashboardOptions, "port" | "listen" | "hosts" | "basePath" | "tls">>

/** Starts the server of the dashboard: on loopback, unless it is that of a cluster. */
export async function startDashboard(world: World, served: Served): Promise<Dashboard> {
  const { program, version, clock, random, say } = world
  const folder = await pageFolder(say)
  const { port = 0 } = served
  return serveDashboard({
    ...{ folder, program, version, clock, random, say, port },
    ...{ listen: "127.0.0.1", hosts: ["127.0.0.1", "localhost"], basePath: "" },
    whyNot: `this dashboard is read-only: start it with ${program} dashboard --operate to change something`,
    ...served,
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EADDRINUSE")
      throw new Failure(`--port ${port}: another program listens there; leave it out for any free one`)
    if (error.code === "EACCES")
      throw new Failure(`--port ${port}: this user may not listen there; write one above 1023`)
    throw error
  })
}

/** What a cluster in this process shows of itself. Its time runs faster, and everything may be operated. */
export const dashboardOf = (
  { client }: Pick<LocalCluster, "client">,
  { speed, cluster, clock }: { speed: number; cluster: string; clock: Clock },
): Served => ({
  ...{ speed, cluster, operates: true, clusterNow: () => clock.now() },
  viewers: { by: "Key", viewer: { client, namespace: "default" }, user: "admin" },
})

/** Prints an address, opens it where that is wanted, and prints another one for each Enter. */
export function present(dashboard: Dashboard, world: World, { opens }: { opens: boolean }): () => void {
  const address = dashboard.address()
  world.say(
    `The dashboard is at ${address}\nThe address works once and for a minute; Enter prints another, Ctrl-C ends it.`,
  )
  if (opens) openBrowser(address)
  if (!world.view.isTerminal) return () => {}
  const lines = createInterface({ input: world.stdin })
  lines.on("line", () => world.say(`Another address: ${dashboard.address()}`))
  return () => lines.close()
}

/** As the desktop does it; where there is none, the address is printed anyway. */
function openBrowser(address: string): void {
  const [command, ...words] =
    process.platform === "darwin" ? ["open"] : process.platform === "win32" ? ["cmd", "/c", "start", ""] : ["xdg-open"]
  const child = spawn(command!, [...words, address], { stdio: "ignore", detached: true })
  child.on("error", () => {})
  child.unref()
}

export const untilEnded = ({ signal }: Pick<World, "signal">) =>
  new Promise<void>(done => (signal.aborted ? done() : signal.addEventListener("abort", () => done(), { once: true })))

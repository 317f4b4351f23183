import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { type Fault, type Mortal, mortal, withFaults } from "#cluster-sim/faults/faults.ts"
import { type Cluster, createCluster, type Json, type Part, type PhysicsWorld } from "#cluster-sim/index.ts"
import { parseDuration } from "#lib/duration.ts"
import { type Client, createClient, KubeError, type Transport } from "#runtime/client/index.ts"
import { type Clock, type VirtualClock, virtualClock } from "#runtime/clock.ts"
import type { Controller } from "#runtime/controller.ts"
import { runManager } from "#runtime/manager.ts"
import { seededRandom } from "#runtime/random.ts"
import type { Resource } from "#runtime/resource.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { repository } from "#tools/kube/folders.ts"
import { type Commit, keep, type Run, recordSent, type Sent } from "./record.ts"

/** A whole cluster in virtual time: an hour of it takes milliseconds, and the same seed gives the same hour. */
export type World = {
  readonly seed: number
  readonly clock: VirtualClock
  readonly cluster: Cluster
  /** An administrator's. */
  readonly client: Client
  /** Every committed write since the start. */
  readonly history: readonly Commit[]
  /** The same with what the ServiceImage controllers sent, to be judged. */
  readonly record: Run
  /** Creates or replaces objects as `kubectl apply --server-side` does. */
  apply(...manifests: readonly Json[]): Promise<void>
  get(resource: Resource, name: string, namespace?: string): Promise<Json>
  list(resource: Resource): Promise<Json[]>
  patch(resource: Resource, name: string, body: Json, namespace?: string): Promise<void>
  /** Runs controllers as a process of their own, with what stands between it and the API server. */
  run(controllers: readonly Controller[], options?: ProcessOptions): Process
  advance(duration: string): Promise<void>
  /** Lets time pass until it is so; fails with what the world looks like when it never is. */
  until(what: string, isSo: () => Promise<boolean> | boolean, within?: string): Promise<void>
  /** Lets time pass until nothing but heartbeats has been written for a while. */
  settle(quiet?: string): Promise<void>
}

export type ProcessOptions = {
  faults?: readonly Fault[]
  /** Stands for election, as two processes of one Deployment do. */
  leaderElect?: boolean
  /** With election: keeps its caches open while it stands by. On by default. */
  warm?: boolean
  dies?: Parameters<typeof mortal>[0]
  /** How old the data of its watches may be. */
  seesLateByMs?: number
  /** How much its clock is ahead of that of the cluster. */
  clockAheadMs?: number
}

export type Process = Mortal & {
  /** The exit code, once it ended by itself or was stopped. */
  readonly exitCode: number | undefined
  /** As SIGTERM does: it ends in its own time. */
  terminate(): void
  stop(): Promise<void>
}

export type ScenarioOptions = {
  seed?: number
  parts?: readonly ((world: PhysicsWorld) => Part)[]
  /** Begin where another world stood: `world.cluster.store.dump()`. */
  saved?: ReturnType<Cluster["store"]["dump"]>
  /** Changes kept per kind for watches that come back. */
  keptChanges?: number
}

export async function scenario(options: ScenarioOptions = {}): Promise<World> {
  const { seed = 1 } = options
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const history: Commit[] = []
  const sent: Sent[] = []
  const failovers: Sent[] = []
  const pulls: Sent[] = []
  const updates: Sent[] = []
  const cluster = createCluster({
    ...options,
    clock,
    seed,
    history: entry => history.push({ ...entry, at: clock.now() }),
  })
  cluster.start()
  const random = seededRandom(seed + 1)
  const shared: Transport = { send: cluster.transport.send, close: () => {} }
  const client = createClient({ transport: shared, clock, random })
  let processes = 0
  let lagMs = 0
  const record: Run = {
    seed,
    initial: (options.saved?.objects ?? []).map(({ object }) => object),
    commits: history,
    sent,
    failovers,
    pulls,
    updates,
    calls: [],
    get lagMs() {
      return lagMs
    },
  }
  const isRecorded = keep(record)

  const world: World = {
    seed,
    clock,
    cluster,
    client,
    history,
    record,
    async apply(...manifests) {
      for (const manifest of manifests) {
        const resource = await discover(client, manifest)
        await inTime(
          client.patch(
            resource,
            manifest.metadata,
            { type: "apply", body: manifest, force: true },
            { fieldManager: "test" },
          ),
        )
      }
    },
    get: (resource, name, namespace) => inTime(client.get(resource, { name, namespace })),
    list: async resource => (await inTime(client.list(resource))).items,
    async patch(resource, name, body, namespace) {
      await inTime(client.patch(resource, { name, namespace }, { type: "merge", body }, { fieldManager: "test" }))
    },
    run(controllers, options = {}) {
      const stopping = new AbortController()
      const death = mortal(options.dies)
      let exitCode: number | undefined
      const number = processes++
      const runs = (kind: string) => controllers.some(({ name }) => name === kind)
      const judged: [Sent[], readonly string[]][] = [
        [sent, ["serviceimage"]],
        [failovers, ["alternateimagesource"]],
        [updates, ["in-place"]],
        [pulls, ["imagepulljob", "imagelistpulljob", "nodeimage", "pull"]],
      ]
      const list = judged.find(([, kinds]) => kinds.some(runs))?.[0]
      const { outside, inside } = recordSent(number, list ?? [], () => ({
        at: clock.now(),
        revision: cluster.store.revision,
      }))
      const isJudged = isRecorded && list !== undefined
      const faults = [death.fault, ...(options.faults ?? [])]
      lagMs = Math.max(lagMs, options.seesLateByMs ?? 0)
      const ended = runManager({
        transport: withFaults(shared, ...(isJudged ? [outside, ...faults, inside] : faults)),
        controllers,
        leaderElect: options.leaderElect
          ? { namespace: "kube-system", name: "aim-controller", trustAbsence: true }
          : false,
        warm: options.warm ?? true,
        clock: mortalClock(clock, death, options.clockAheadMs),
        random: seededRandom(seed + 100 + number),
        log: silentLogger,
        signal: stopping.signal,
      }).then(code => {
        exitCode = code
      })
      return {
        ...death,
        fault: death.fault,
        get isDead() {
          return death.isDead
        },
        get exitCode() {
          return exitCode
        },
        terminate: () => stopping.abort(),
        async stop() {
          stopping.abort()
          await world.until("the process to end", () => exitCode !== undefined)
          await ended
        },
      }
    },
    advance: duration => clock.advance(parseDuration(duration)!),
    async until(what, isSo, within = "30m") {
      const deadline = clock.now() + parseDuration(within)!
      for (;;) {
        await clock.advance(0)
        if (await inTime(Promise.resolve(isSo()))) return
        const next = clock.nextAt()
        if (next === undefined || next > deadline)
          throw new Error(`${what}: not within ${within} of virtual time (seed ${seed})`)
        await clock.advance(next - clock.now())
      }
    },
    async settle(quiet = "2m") {
      const quietMs = parseDuration(quiet)!
      let looked = history.length
      let since = clock.now()
      await world.until(
        "the world to settle",
        () => {
          if (history.slice(looked).some(isNews)) since = clock.now()
          looked = history.length
          return clock.now() - since >= quietMs
        },
        "12h",
      )
    },
  }
  return world

  /** Requests in process take no time; but what answers them may wait for a promise or two. */
  async function inTime<T>(promise: Promise<T>): Promise<T> {
    let isDone = false
    const done = promise.finally(() => {
      isDone = true
    })
    done.catch(() => {})
    for (let turn = 0; !isDone && turn < 1000; turn++) await clock.advance(0)
    return done
  }
}

/** Heartbeats of leaders and nodes, and the telling of events, go on for ever. */
const isNews = ({ place }: Commit) => !/leases|events/.test(place)

/** The clock of a process that may die: what it was waiting for never comes. */
function mortalClock(clock: Clock, death: Mortal, aheadMs = 0): Clock {
  return {
    now: () => clock.now() + aheadMs,
    monotonic: clock.monotonic,
    after: (ms, callback) => clock.after(ms, () => !death.isDead && callback()),
  }
}

const found = new WeakMap<Client, Map<string, Resource>>()

async function discover(client: Client, { apiVersion, kind }: Json): Promise<Resource> {
  const known = found.get(client) ?? new Map<string, Resource>()
  found.set(client, known)
  const id = `${apiVersion} ${kind}`
  const resource = known.get(id) ?? (await client.discover(apiVersion, kind))
  if (!resource) throw new KubeError("NotFound", `the cluster does not serve ${id}`)
  known.set(id, resource)
  return resource
}

/** The manifest in a YAML file of this repository. */
export const manifest = (path: string): Json => parse(readFileSync(join(repository, path), "utf8"))

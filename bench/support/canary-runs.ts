import { setTimeout as sleep } from "node:timers/promises"
import { canaries, deployments, pods } from "#controllers/canary/resources.ts"
import { keyOf } from "#runtime/resource.ts"
import { type Json, until } from "#tools/kube/api.ts"
import { type Asked, askedBetween, askedIn, canaryOf, deploymentOf, type Web, websOf } from "./canaries.ts"
import { type Figure, percentile, show } from "./figures.ts"
import type { HollowCluster } from "./in-place-on-real-server.ts"
import { imageOf, setImage } from "./in-place-workloads.ts"

const MiB = 2 ** 20
const replicas = 3
const intervalSeconds = 10

/** Without a gateway: what a route costs is its own, and hollow nodes have no data plane. */
const analysis = { interval: `${intervalSeconds}s`, threshold: 2, iterations: 1 }
const kinds = {
  "without analysis": { skipAnalysis: true, steps: 0 },
  // It is judged before the flip and after it, an interval each.
  "with one iteration": { skipAnalysis: false, steps: 1 },
} as const
const specOf = (own: object) => ({ provider: "kubernetes", analysis, ...own })

/** What a run does not spend by itself. */
type Spent = {
  /** How long one of its pods was starting or ending. */
  readonly pods: number
  /** How long it was judged, an interval each time at the most: what is later is its own. */
  readonly intervals: number
}

type Run = {
  readonly seconds: number
  readonly spent: Spent
  readonly asked: Asked
}

/** Runs of one Canary after the other: what is left of their time without the pods' and the intervals. */
export async function oneByOne(parts: HollowCluster, runs: number): Promise<Figure[]> {
  const { client, progress } = parts
  const web: Web = { name: "one", namespace: "team-0" }
  await client.create(deployments, deploymentOf(web, replicas) as never)
  await areRolledOut(parts, [web])
  const ending = new AbortController()
  const follow = await following(parts, web, ending.signal)
  const figures: Figure[] = []
  try {
    await client.create(canaries, canaryOf(web, specOf({ skipAnalysis: true })) as never)
    await follow.phase("Initialized")
    for (const [name, { skipAnalysis, steps }] of Object.entries(kinds)) {
      await client.patch(canaries, web, { type: "merge", body: { spec: { skipAnalysis } } })
      const count = steps === 0 ? runs : Math.max(2, Math.ceil(runs / 4))
      progress.begin(`${count} runs ${name}`, count)
      const found: Run[] = []
      // The first has compiled everything.
      for (let run = 0; run <= count; run++) {
        await follow.isQuiet()
        await sleep(1000)
        const one = await measured(parts, web, `${steps}-${run}`, follow)
        if (run > 0) found.push(one)
        progress.at(run)
      }
      figures.push(...runFigures(name, found, 18 + 2 * steps))
    }
  } finally {
    ending.abort()
  }
  await client.delete(canaries, web)
  return figures
}

async function measured({ client, manager }: HollowCluster, web: Web, tag: string, follow: Following): Promise<Run> {
  const before = askedIn(await manager.scrape())
  const startedAt = performance.now()
  const spent = follow.spent()
  await setImage(client, { ...web, replicas }, imageOf(tag))
  const endedAt = await follow.phase("Succeeded")
  const { pods, intervals } = follow.spent()
  return {
    seconds: (endedAt - startedAt) / 1000,
    spent: { pods: pods - spent.pods, intervals: intervals - spent.intervals },
    asked: askedBetween(before, askedIn(await manager.scrape())),
  }
}

function runFigures(name: string, runs: readonly Run[], mostWrites: number): Figure[] {
  const own = runs.map(({ seconds, spent: { pods, intervals } }) => seconds - pods - intervals)
  const half = (of: (run: Run) => number) => show(percentile(runs.map(of), 0.5), "s")
  return [
    {
      name: `run ${name}: time beside pods and intervals, p95`,
      measured: percentile(own, 0.95),
      ...{ most: 1, unit: "s" },
      note: `p50 ${show(percentile(own, 0.5), "s")} of ${runs.length}; in all p50 ${half(run => run.seconds)}, intervals ${half(run => run.spent.intervals)}, pods ${half(run => run.spent.pods)}`,
    },
    {
      name: `run ${name}: writes`,
      measured: Math.max(...runs.map(({ asked }) => asked.writes)),
      most: mostWrites,
      note: `refused ones included: at most ${Math.max(...runs.map(({ asked }) => asked.conflicts))} conflicts`,
    },
    { name: `run ${name}: LIST and GET`, measured: Math.max(...runs.map(({ asked }) => asked.reads)), most: 0 },
  ]
}

type Following = {
  /** When the Canary was seen to enter this phase. */
  phase(wanted: string): Promise<number>
  /** In seconds, so far. */
  spent(): Spent
  /** Resolves when no pod is starting or ending. */
  isQuiet(): Promise<unknown>
}

/** Sees a Canary and the pods of its target by watches of its own. */
async function following({ client }: HollowCluster, web: Web, signal: AbortSignal): Promise<Following> {
  const unsettled = new Set<string>()
  const waiting = new Map<string, (at: number) => void>()
  let [since, podMs, phase] = [0, 0, ""]
  let [judgedSince, intervalMs] = [0, 0]
  const settle = (uid: string, isSettled: boolean) => {
    const before = unsettled.size
    if (isSettled) unsettled.delete(uid)
    else unsettled.add(uid)
    if (before === 0 && unsettled.size > 0) since = performance.now()
    if (before > 0 && unsettled.size === 0) podMs += performance.now() - since
  }
  const podSeen = (type: string, { metadata, status }: Json) => {
    const isReady = (status?.conditions ?? []).some((each: Json) => each.type === "Ready" && each.status === "True")
    settle(metadata.uid, type === "DELETED" || (isReady && metadata.deletionTimestamp === undefined))
  }
  const canarySeen = (_: string, { status }: Json) => {
    const now = performance.now()
    if (judgedSince > 0) intervalMs += Math.min(now - judgedSince, intervalSeconds * 1000)
    judgedSince = status?.run?.reason === "Measuring" ? now : 0
    const next = status?.phase ?? ""
    if (next === phase) return
    phase = next
    waiting.get(phase)?.(now)
    waiting.delete(phase)
  }
  const { namespace, name } = web
  const watch = async (resource: typeof pods, options: object, seen: (type: string, object: Json) => void) => {
    const { items, metadata } = await client.list(resource, { namespace, ...options })
    for (const object of items) seen("ADDED", object)
    const from = { namespace, ...options, resourceVersion: metadata.resourceVersion }
    const run = async () => {
      for await (const { type, object } of client.watch(resource, from, signal))
        if (type !== "BOOKMARK") seen(type, object as Json)
    }
    run().catch(error => {
      if (!signal.aborted) throw error
    })
  }
  await watch(pods, { labelSelector: `app=${name}` }, podSeen)
  await watch(canaries, {}, canarySeen)
  return {
    phase: wanted => new Promise(resolve => waiting.set(wanted, resolve)),
    spent: () => ({
      pods: (podMs + (unsettled.size > 0 ? performance.now() - since : 0)) / 1000,
      intervals: intervalMs / 1000,
    }),
    isQuiet: () => until("pods to be settled", async () => unsettled.size === 0),
  }
}

/** Many Deployments are updated at once, by their own controller and then by their Canaries. */
export async function atOnce(parts: HollowCluster, count: number): Promise<Figure[]> {
  const { client, manager, progress } = parts
  const webs = websOf(count)
  progress.begin(`creating ${count * replicas} pods`)
  for (const web of webs) await client.create(deployments, deploymentOf(web, replicas) as never)
  await areRolledOut(parts, webs)
  const update = async (tag: string, isOver: () => Promise<unknown>) => {
    const startedAt = performance.now()
    await Promise.all(webs.map(web => setImage(client, { ...web, replicas }, imageOf(tag))))
    await isOver()
    return (performance.now() - startedAt) / 1000
  }
  progress.begin(`${count} native rolling updates`)
  const native = await update("native", () => areRolledOut(parts, webs))
  progress.begin(`${count} Canaries adopt`)
  for (const web of webs) await client.create(canaries, canaryOf(web, specOf({ skipAnalysis: true })) as never)
  await arePhase(parts, webs, "Initialized")
  progress.begin("a minute of quiet")
  await sleep(60_000)
  const memory = manager.memory()
  const before = askedIn(await manager.scrape())
  progress.begin(`${count} runs at once`)
  const proven = await update("proven", () => areOn(parts, webs, imageOf("proven")))
  await sleep(2000)
  const asked = askedBetween(before, askedIn(await manager.scrape()))
  return [
    {
      name: `${count} runs at once ÷ native rolling updates`,
      ...{ measured: proven / native, most: 3 },
      note: `${show(proven, "s")} beside ${show(native, "s")}`,
    },
    {
      name: `${count} runs at once: writes of a run`,
      ...{ measured: asked.writes / count, most: 18 },
      note: `${asked.conflicts} conflicts`,
    },
    { name: `${count} runs at once: LIST and GET`, measured: asked.reads, most: 0 },
    {
      name: `memory at ${count} Canaries on a real server`,
      ...{ measured: memory.resident / MiB, most: 130, unit: "MiB" },
      note: `${count * replicas} pods; ${show(manager.memory().peak / MiB, "MiB")} at its peak`,
    },
  ]
}

const everyMs = 200

/** Everything that `is` is asked of is listed at once: it costs the server the same on both sides of a comparison. */
const all = (
  { client }: HollowCluster,
  resource: typeof deployments,
  webs: readonly Web[],
  what: string,
  is: (object: Json) => boolean,
) =>
  until(
    what,
    async () => {
      const { items } = await client.list(resource, {})
      const found = new Map((items as Json[]).map(object => [keyOf(object.metadata), object]))
      return webs.every(web => is(found.get(keyOf(web)) ?? {}))
    },
    { withinMs: 600_000, everyMs },
  )

const areRolledOut = (parts: HollowCluster, webs: readonly Web[]) =>
  all(parts, deployments, webs, "Deployments to be rolled out", ({ metadata, status = {} }) => {
    const { observedGeneration = 0, updatedReplicas, availableReplicas, replicas: there } = status
    return (
      observedGeneration >= metadata?.generation &&
      [updatedReplicas, availableReplicas, there].every(each => each === replicas)
    )
  })

const arePhase = (parts: HollowCluster, webs: readonly Web[], phase: string) =>
  all(parts, canaries, webs, `Canaries to be ${phase}`, ({ status }) => status?.phase === phase)

const areOn = (parts: HollowCluster, webs: readonly Web[], image: string) =>
  all(
    parts,
    canaries,
    webs,
    "runs to succeed",
    ({ status }) =>
      status?.phase === "Succeeded" && (status.history ?? []).some((run: Json) => run.target.images?.includes(image)),
  )

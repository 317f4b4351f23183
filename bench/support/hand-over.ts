import { until } from "#tools/kube/api.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import { type AimProcess, type Bundled, startController } from "./controller-process.ts"
import { type Figure, show } from "./figures.ts"
import { type Fleet, holdsAll, watchImages, withFleet } from "./fleet.ts"
import type { Progress } from "./progress.ts"
import { imageOf, list, order } from "./tenants.ts"

export type HandOverOptions = { objects: number; rounds: number }

const MiB = 2 ** 20
const leaseSeconds = 15
/** Slow enough that no round reaches the end of the fleet: twenty objects a second. */
const pace = { podsPerSecond: 60 }

type Parts = {
  aim: Bundled
  fleet: Fleet
  stamps: Stamps
  options: HandOverOptions
  progress: Progress
}

/** A leader is ended in the middle of a rollout, as planned and by a kill: how long nothing is stamped. */
export async function handOvers(aim: Bundled, options: HandOverOptions, progress: Progress): Promise<Figure[]> {
  return withFleet({ objects: options.objects, hasPods: true }, progress, async fleet =>
    measure({ aim, fleet, stamps: await watchStamps(fleet), options, progress }),
  )
}

async function measure(parts: Parts): Promise<Figure[]> {
  const { options, progress } = parts
  const took = { start: [] as number[], planned: [] as number[], killed: [] as number[], cold: [] as number[] }
  const memory = { leader: 0, standby: 0, cold: 0 }
  for (let round = 1; round <= options.rounds; round++) {
    progress.begin(`round ${round}: a start from nothing`)
    const first = await firstStart(parts, `v${round}`, took.start)
    const running = [first]
    try {
      running.push(await warmCandidate(parts))
      const [leader, standby] = running.map(each => each.memory().peak / MiB) as [number, number]
      if (standby / leader > memory.standby / (memory.leader || 1)) Object.assign(memory, { leader, standby })
      progress.begin(`round ${round}: a planned hand-over`)
      took.planned.push(await handOver(parts, first, "SIGTERM"))
      running.push(await warmCandidate(parts))
      progress.begin(`round ${round}: a kill`)
      took.killed.push(await handOver(parts, running[1]!, "SIGKILL"))
      if (round === 1) {
        running.push(await coldCandidate(parts))
        memory.cold = running[3]!.memory().peak / MiB
        progress.begin("a planned hand-over without a warm candidate")
        took.cold.push(await handOver(parts, running[2]!, "SIGTERM"))
      }
    } finally {
      for (const each of running) await each.stop()
    }
  }
  return figures(took, memory, parts)
}

function figures(
  took: Record<"start" | "planned" | "killed" | "cold", readonly number[]>,
  memory: { leader: number; standby: number; cold: number },
  { fleet: { objects, pods } }: Parts,
): Figure[] {
  const all = (samples: readonly number[]) => samples.map(each => show(each, "s")).join(", ")
  const fleet = `${objects} objects, ${pods} pods`
  const worst = (name: string, samples: readonly number[], most: number, note = ""): Figure => ({
    name,
    measured: Math.max(...samples),
    most,
    unit: "s",
    note: `${all(samples)}${note}`,
  })
  return [
    worst("start from nothing to first stamp", took.start, 6, `; ${fleet}`),
    worst("SIGTERM to next stamp", took.planned, 2, `; ${all(took.cold)} with --warm=false`),
    worst("SIGKILL to next stamp", took.killed, leaseSeconds + 2),
    {
      name: "peak memory of the standby ÷ leader",
      measured: memory.standby / memory.leader,
      most: 1,
      note: `${show(memory.standby, "MiB")} beside ${show(memory.leader, "MiB")}; ${show(memory.cold, "MiB")} with --warm=false`,
    },
  ]
}

/** The Lease is free and there is something to do: what is measured is the program and its lists. */
async function firstStart(parts: Parts, tag: string, tookSeconds: number[]): Promise<AimProcess> {
  const { fleet, stamps } = parts
  if (tookSeconds.length === 0) await (await start(parts)).stop() // the first of all creates the Lease
  await order(fleet.client, { defaultImage: imageOf(tag), paused: false, pace })
  const startedAt = performance.now()
  const controller = await start(parts)
  tookSeconds.push(((await stamps.firstAfter(startedAt)) - startedAt) / 1000)
  return controller
}

const start = ({ aim, fleet: { cluster } }: Parts, more: string[] = []) =>
  startController(aim, { kubeconfig: cluster.kubeconfig, more })

async function warmCandidate(parts: Parts): Promise<AimProcess> {
  parts.progress.begin("warming a candidate")
  const candidate = await start(parts)
  const isWarm = async () => {
    const scrape = await candidate.scrape()
    return holdsAll(scrape, parts.fleet) && scrape.sum("aim_standby_warm") === 1
  }
  await until("the candidate to be warm", isWarm, { withinMs: 120_000 })
  return candidate
}

const coldCandidate = (parts: Parts) => start(parts, ["--warm=false"])

/** From the signal to the first stamp after the process has ended: before that they are its own. */
async function handOver({ stamps }: Parts, leader: AimProcess, signal: "SIGTERM" | "SIGKILL") {
  await stamps.firstAfter(performance.now()) // it is at work
  const from = performance.now()
  const endedAt = await leader.kill(signal)
  return ((await stamps.firstAfter(endedAt)) - from) / 1000
}

type Stamps = {
  /** When the first image after this time was written. */
  firstAfter(time: number): Promise<number>
}

async function watchStamps(fleet: Fleet): Promise<Stamps> {
  let lastAt = 0
  const images = new Map((await list(fleet.client, Dicoms)).map(({ spec, metadata }) => [metadata.uid, spec.image]))
  const { next } = await watchImages(fleet, (uid, image) => {
    if (images.get(uid) === image) return
    images.set(uid, image)
    lastAt = performance.now()
  })
  return {
    async firstAfter(time) {
      while (lastAt <= time) await next()
      return lastAt
    },
  }
}

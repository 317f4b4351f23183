import { describe, expect, test } from "vitest"
import {
  answer,
  arriveLate,
  breakWatch,
  cut,
  type Fault,
  isDecision,
  isWatch,
  loseAnswer,
  type Matcher,
  nth,
  recorder,
  silence,
  stale,
} from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { serviceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { quickOperator } from "#test/support/quick-operator.ts"
import { manifest, type ProcessOptions, scenario, type World } from "#test/support/scenario.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"

const [v1, v2] = ["registry.example.com/dicom:v1", "registry.example.com/dicom:v2"]
const tiers = [
  { upgradeTier: "early", priority: 1 },
  { upgradeTier: "", priority: 0, maxConcurrent: 2 },
]

const dicom = (name: string, tier = "", spec: Json = {}): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, namespace: "default", ...(tier && { labels: { "upgrade-tier": tier } }) },
  spec,
})

const serviceImage: Json = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "dicom" },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    defaultImage: v1,
    tiers,
    pace: { podsPerSecond: 0 },
  },
}

/** Two tenants go early, three follow; one more keeps its image. Every run begins with them. */
const baseline = await (async () => {
  const world = await scenario()
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  for (const name of ["early-1", "early-2", "late-1", "late-2", "late-3"])
    await world.apply(dicom(name, name.startsWith("early") ? "early" : ""))
  await world.apply(dicom("pinned", "", { image: "registry.example.com/dicom:own", manuallySpecifiedImage: true }))
  return world.cluster.store.dump()
})()

const begin = (seed = 1) => scenario({ seed, saved: baseline })

/** They are brought to v1, then to v2. */
async function upgrade(world: World, startProcess: () => void): Promise<void> {
  world.run([quickOperator])
  startProcess()
  await world.apply(serviceImage)
  await complete(world, 1)
  await world.patch(serviceImages, "dicom", { spec: { defaultImage: v2 } })
  await complete(world, 2)
  await world.settle()
}

const complete = (world: World, generation: number) =>
  world.until(
    `generation ${generation} to be complete`,
    async () => {
      const { metadata, status } = await world.get(serviceImages, "dicom")
      const condition = status?.conditions.find((each: Json) => each.type === "Complete")
      return (
        metadata.generation === generation &&
        condition?.status === "True" &&
        condition.observedGeneration === generation
      )
    },
    "6h",
  )

/** What remains of a run once the times are taken out: the images of all, and what is said of the rollout. */
async function outcome(world: World): Promise<Json> {
  const images = (await world.list(Dicoms)).map(({ metadata, spec }) => [metadata.name, spec.image])
  const { status } = await world.get(serviceImages, "dicom")
  const tiers = status.tierStatus.map(({ conditions, ...tier }: Json) => ({
    ...tier,
    conditions: conditions.map(({ type, status, reason }: Json) => `${type} ${status} ${reason}`),
  }))
  const { progress, currentPriority, observedGeneration, operation } = status
  return {
    images,
    tiers,
    progress,
    currentPriority,
    observedGeneration,
    operation: operation.id,
    phase: operation.phase,
  }
}

/** How often each object was given each image, over the committed history. */
function stampsOf(world: World): Map<string, number> {
  const stamps = new Map<string, number>()
  for (const { place, before, object } of world.history) {
    if (!place.endsWith("dicoms") || !before || before.spec.image === object.spec.image) continue
    const id = `${object.metadata.name} ${object.spec.image}`
    stamps.set(id, (stamps.get(id) ?? 0) + 1)
  }
  return stamps
}

async function play(options: ProcessOptions, seed = 1): Promise<World> {
  const world = await begin(seed)
  await upgrade(world, () => {
    const process = world.run([serviceImageController], options)
    // Whoever finds the process dead starts another, as a Deployment does.
    const watchOver = () => (process.isDead ? world.run([serviceImageController]) : world.clock.after(1000, watchOver))
    watchOver()
  })
  return world
}

const calm = await (async () => {
  const trace = recorder()
  const world = await play({ faults: [trace.fault] })
  return { writes: trace.sent.length, outcome: await outcome(world), stamps: stampsOf(world) }
})()

const at = (n: number): Matcher => nth(isDecision, n)

/** Each fault at the nth write. */
const faults: Record<string, (n: number, world: () => World["clock"]) => ProcessOptions> = {
  "the process is killed before it": n => ({ dies: { before: at(n) } }),
  "the process is killed after it": n => ({ dies: { after: at(n) } }),
  "the connection breaks before it": n => ({ faults: [cut(at(n))] }),
  "its answer is lost": n => ({ faults: [loseAnswer(at(n))] }),
  "a conflict is the answer": n => ({ faults: [answer(at(n), 409, { reason: "Conflict" })] }),
  "too many requests": n => ({ faults: [answer(at(n), 429, { reason: "TooManyRequests", retryAfterSeconds: 2 })] }),
  "an internal error": n => ({ faults: [answer(at(n), 500, { reason: "InternalError" })] }),
  "forbidden for once": n => ({ faults: [answer(at(n), 403, { reason: "Forbidden" })] }),
}

describe(`a rollout of ${calm.writes} writes ends as it would have without the fault`, () => {
  test("the trace is long enough to mean something", () => expect(calm.writes).toBeGreaterThan(15))
  for (const [name, make] of Object.entries(faults))
    test(`${name}, at each write`, async () => {
      for (let n = 1; n <= calm.writes; n++) {
        const world = await play(make(n, () => world.clock))
        expect(await outcome(world), `${name}, at write ${n}`).toEqual(calm.outcome)
        // Nobody is given an image twice: an answer that was lost is looked up, not repeated.
        expect(Object.fromEntries(stampsOf(world)), `${name}, at write ${n}`).toEqual(Object.fromEntries(calm.stamps))
      }
    })
})

test("where nothing goes wrong, no write is refused: nothing is decided from a copy that our own write has overtaken", async () => {
  const refused: string[] = []
  const listen: Fault = next => ({
    ...next,
    async send(request) {
      const response = await next.send(request)
      if (isDecision(request) && response.status >= 400)
        refused.push(`${response.status} ${request.method} ${request.path}`)
      return response
    },
  })
  await play({ faults: [listen] })
  expect(refused).toEqual([])
})

describe("with a view of the world that is wrong for a while", () => {
  const watches =
    (resource: string): Matcher =>
    request =>
      isWatch(request) && request.path.includes(`/${resource}`)
  const views: Record<string, (world: World) => readonly Fault[]> = {
    "the first watch of Dicoms says nothing": () => [silence(nth(watches("dicoms"), 1))],
    "the first watch of ServiceImages says nothing": () => [silence(nth(watches("serviceimages"), 1))],
    "every watch of Dicoms breaks after a few events": () => [breakWatch(watches("dicoms"), 3)],
    "what watches say comes a minute late": ({ clock }) => [stale(isWatch, clock, 60_000)],
  }
  for (const [name, make] of Object.entries(views))
    test(`it ends as it would have: ${name}`, async () => {
      const world = await begin()
      await upgrade(world, () => world.run([serviceImageController], { faults: make(world) }))
      expect(await outcome(world)).toEqual(calm.outcome)
      expect(Object.fromEntries(stampsOf(world))).toEqual(Object.fromEntries(calm.stamps))
    })

  test("a write that arrives a minute late changes nothing that was decided since", async () => {
    for (let n = 1; n <= calm.writes; n += 3) {
      const world = await begin()
      await upgrade(world, () =>
        world.run([serviceImageController], { faults: [arriveLate(at(n), world.clock, 60_000)] }),
      )
      expect(await outcome(world), `late write ${n}`).toEqual(calm.outcome)
      expect(Object.fromEntries(stampsOf(world)), `late write ${n}`).toEqual(Object.fromEntries(calm.stamps))
    }
  })
})

test("two processes stand for election and one acts: the other takes over when it is cut off", async () => {
  const world = await begin(3)
  let isCutOff = false
  await upgrade(world, () => {
    world.run([serviceImageController], { leaderElect: true, faults: [cut(() => isCutOff)] })
    world.run([serviceImageController], { leaderElect: true })
    world.clock.after(4000, () => {
      isCutOff = true
    })
  })
  expect(await outcome(world)).toEqual(calm.outcome)
  expect(Object.fromEntries(stampsOf(world))).toEqual(Object.fromEntries(calm.stamps))
})

test("the same seed gives the same history", async () => {
  const [one, two] = [await play({}, 7), await play({}, 7)]
  const trace = (world: World) =>
    world.history.map(({ place, object, revision }) => `${revision} ${place} ${object.metadata.name}`)
  expect(trace(one)).toEqual(trace(two))
})

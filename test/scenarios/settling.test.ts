import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { everyPart, type Json, openRegistries, parseRegistries } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { Deployments, deployment } from "#test/support/failover-story.ts"
import { about, type Story } from "#test/support/rollout-story.ts"
import { scenario } from "#test/support/scenario.ts"

// Health that lasts: Deployments without probes, on simulated kubelets. Kubernetes calls their pods available the
// instant they start, whatever happens to them a second later.

const image = (tag: string) => `registry.example.com/web:${tag}`
const registries = parseRegistries(`
registries:
  registry.example.com:
    images:
      web:
        v1: {}
        v2: {}
        crash: { exits: { after: 1s, code: 3 } }
        later: { exits: { after: 15s, code: 4 } }
`)

const [v2, crash, later] = [image("v2"), image("crash"), image("later")]
const threeTiers = [
  { upgradeTier: "early", priority: 2 },
  { upgradeTier: "", priority: 1 },
  { upgradeTier: "late", priority: 0 },
]

type Shop = Story & { tags(): Promise<Record<string, string>>; restart(): void }

/** Two Deployments in each tier, all on v1 and complete. */
async function shop(spec: Json = {}, more: Json = {}): Promise<Shop> {
  const begin = Date.parse("2026-01-01T00:00:00Z")
  const world = await scenario({
    seed: 5,
    parts: everyPart({ nodes: 3, registries: openRegistries(begin, registries) }),
  })
  await world.apply(crdOf(ServiceImage) as Json)
  const names = ["early-1", "early-2", "web-1", "web-2", "late-1", "late-2"]
  for (const name of names) {
    const tier = name.slice(0, -2)
    const labels = tier === "web" ? {} : { "upgrade-tier": tier }
    await world.apply(deployment(name, image("v1"), { metadata: { labels }, spec: { replicas: 1, ...more } }))
  }
  let process = world.run([createServiceImageController()])
  const target = { apiVersion: "apps/v1", kind: "Deployment", image: { container: "basic-demo" } }
  await world.apply({
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "dicom" },
    spec: { target, defaultImage: image("v1"), tiers: threeTiers, pace: { podsPerSecond: 0 }, ...spec },
  })
  const story = about(world, process)
  await story.complete()
  return {
    ...story,
    async tags() {
      const all = await world.list(Deployments)
      const tagOf = (object: Json) => object.spec.template.spec.containers[0].image.split(":")[1]
      return Object.fromEntries(all.map(object => [object.metadata.name, tagOf(object)]))
    },
    restart() {
      process.die()
      process = world.run([createServiceImageController()])
    },
  }
}

const since = (story: Shop, began: number) => (story.world.clock.now() - began) / 1000
const tier = (fields: Json): Json[] => [{ upgradeTier: "", ...fields }]
const generationOf = async ({ world }: Shop) => (await world.get(serviceImages, "dicom")).metadata.generation
const wasComplete = (story: Shop, generation: number) =>
  story.statuses().some(({ observedGeneration, conditions }) => {
    const isComplete = conditions.some(({ type, status }: Json) => type === "Complete" && status === "True")
    return observedGeneration === generation && isComplete
  })

describe("an image that exits a second after its start", () => {
  test("stops at the first tier within seconds, and is reported as a crash loop", async () => {
    const story = await shop()
    const began = story.world.clock.now()
    await story.change({ defaultImage: crash })
    await story.until("Halted", "AllFailed")
    expect(since(story, began)).toBeLessThan(10)
    await story.world.advance("15m")
    expect(await story.tags()).toEqual({ "early-1": "crash", "early-2": "crash", "web-1": "v1", "web-2": "v1", "late-1": "v1", "late-2": "v1" }) // biome-ignore format: a row
    expect((await story.tier("early")).failures).toMatchObject([{ reason: "CrashLoop", scope: "All", count: 2 }])
    expect((await story.condition("Halted"))!.message).toContain(`all 2 objects that started ${crash} crash`)
    expect(wasComplete(story, await generationOf(story))).toBe(false)
    // While halted nothing says that it waits.
    for (const { conditions } of (await story.status()).tierStatus)
      for (const { message } of conditions) expect(message).not.toMatch(/wait|goes on|come first/)
  })

  test("does not settle anew with every restart: the status is not written for it", async () => {
    const story = await shop()
    await story.change({ defaultImage: crash })
    await story.until("Halted", "AllFailed")
    await story.world.advance("1m")
    const { length } = story.statuses()
    await story.world.advance("20m")
    expect(story.statuses().length - length).toBeLessThanOrEqual(2)
  })

  test("is taken back in a step that soaks, where the spec says so", async () => {
    const story = await shop({ onFailure: "Rollback", tiers: [] })
    await story.change({ defaultImage: crash, tiers: tier({ steps: [{ percent: 100, soakSeconds: 60 }] }) })
    await story.until("Complete", "RolledBack")
    expect(new Set(Object.values(await story.tags()))).toEqual(new Set(["v1"]))
  })

  test("goes through where settleSeconds is 0 and the instant is enough: that is what it switches off", async () => {
    const story = await shop({ tiers: tier({ settleSeconds: 0 }) })
    await story.change({ defaultImage: crash })
    await story.until("Ready", "Degraded")
    expect(await story.condition("Complete")).toMatchObject({ status: "True" })
  })
})

describe("a stamped object", () => {
  test("counts as done when it has been up to date for settleSeconds; others settle beside it", async () => {
    const story = await shop()
    const began = story.world.clock.now()
    await story.change({ defaultImage: v2 })
    await story.until("Complete", "Settling")
    expect((await story.condition("Complete"))!.message).toMatch(
      /tier early: 2 of 2 up to date; done when that has lasted 10s/,
    )
    expect((await story.tags())["web-1"]).toBe("v1")
    await story.complete()
    expect(since(story, began)).toBeGreaterThanOrEqual(30)
    expect(since(story, began)).toBeLessThan(45)
  })

  test("costs no writes while it settles", async () => {
    const writes = async (settleSeconds: number) => {
      const story = await shop({ tiers: threeTiers.map(each => ({ ...each, settleSeconds })) })
      const { length } = story.statuses()
      await story.change({ defaultImage: v2 })
      await story.complete()
      return story.statuses().length - length
    }
    expect(await writes(60)).toBeLessThanOrEqual((await writes(0)) + 3) // one word "Settling" a tier
  })

  test("has waited for minReadySeconds already: the two do not add up", async () => {
    const story = await shop({ tiers: tier({ settleSeconds: 30 }) }, { minReadySeconds: 30 })
    const began = story.world.clock.now()
    await story.change({ defaultImage: v2 })
    await story.complete()
    expect(since(story, began)).toBeGreaterThanOrEqual(30)
    expect(since(story, began)).toBeLessThan(45)
  })

  test("does not fail at its deadline while it settles", async () => {
    const story = await shop({ tiers: tier({ settleSeconds: 60, progressDeadlineSeconds: 20 }) })
    await story.change({ defaultImage: v2 })
    await story.complete()
    for (const { operation } of story.statuses()) expect(operation.failed).toBe(0)
  })

  test("frees its place in maxConcurrent when it has settled", async () => {
    const story = await shop({ tiers: tier({ settleSeconds: 20 }) })
    const began = story.world.clock.now()
    await story.change({ defaultImage: v2, tiers: tier({ settleSeconds: 20, maxConcurrent: 2 }) })
    await story.complete()
    expect(since(story, began)).toBeGreaterThanOrEqual(60)
  })

  test("a soak begins when its step has settled", async () => {
    const story = await shop({ tiers: tier({ settleSeconds: 20 }) })
    const began = story.world.clock.now()
    await story.change({
      defaultImage: v2,
      tiers: tier({ settleSeconds: 20, steps: [{ percent: 100, soakSeconds: 30 }] }),
    })
    await story.complete()
    expect(since(story, began)).toBeGreaterThanOrEqual(50)
  })

  test("does not settle anew for a new leader, nor is Complete taken back", async () => {
    const story = await shop({ tiers: tier({ settleSeconds: 60 }) })
    const began = story.world.clock.now()
    await story.change({ defaultImage: v2 })
    await story.until("Complete", "Settling")
    await story.world.advance("50s")
    story.restart()
    await story.complete()
    // The pods say since when they are ready.
    expect(since(story, began)).toBeGreaterThanOrEqual(60)
    expect(since(story, began)).toBeLessThan(80)
    const generation = await generationOf(story)
    story.restart()
    await story.world.advance("5m")
    const after = story.statuses().filter(({ observedGeneration }) => observedGeneration === generation)
    const words = after.map(({ conditions }) => conditions.find(({ type }: Json) => type === "Complete").status)
    expect(words.slice(words.indexOf("True"))).not.toContain("False")
  })

  test("that needed no stamp does not settle: an edit that changes no image leaves everything complete", async () => {
    const story = await shop()
    const { length } = story.statuses()
    await story.change({ tiers: threeTiers.map(each => ({ ...each, settleSeconds: 300 })) })
    await story.complete()
    await story.world.advance("1m")
    for (const { conditions } of story.statuses().slice(length))
      expect(conditions.find(({ type }: Json) => type === "Complete")).toMatchObject({ status: "True" })
  })

  test("goes back without settling", async () => {
    const story = await shop({ tiers: tier({ settleSeconds: 600, progressDeadlineSeconds: 3600 }) })
    await story.change({ defaultImage: v2 })
    await story.until("Complete", "Settling")
    const began = story.world.clock.now()
    const { operation } = await story.status()
    await story.world.patch(serviceImages, "dicom", { metadata: { annotations: { "autoimagemanager.io/rollback": operation.id } } }) // biome-ignore format: a row
    await story.until("Complete", "RolledBack")
    expect(since(story, began)).toBeLessThan(60)
  })
})

describe("an object that regresses after it had settled", () => {
  test("holds back later tiers while the operation goes on, and a crash loop halts it", async () => {
    const story = await shop()
    const began = story.world.clock.now()
    const [first, second, third] = threeTiers
    await story.change({ defaultImage: later, tiers: [first, { ...second, maxConcurrent: 1 }, third] })
    // Their containers exit after fifteen seconds: the tier early has settled, and the next one has begun.
    await story.world.until("the tier early to be complete, and its objects not to be up to date", async () => {
      const { conditions, upToDate } = await story.tier("early")
      return conditions[0].status === "True" && conditions[0].observedGeneration === 2 && upToDate === 0
    })
    const stamped = async () => Object.values(await story.tags()).filter(tag => tag === "later").length
    expect(await stamped()).toBe(3)
    await story.world.advance("8s")
    expect(await stamped()).toBe(3)
    await story.until("Halted", "AllFailed")
    expect(since(story, began)).toBeLessThan(60)
    expect(await story.tags()).toMatchObject({ "late-1": "v1", "late-2": "v1" })
    expect(wasComplete(story, await generationOf(story))).toBe(false)
  })

  test("makes Ready False after the operation, while Complete keeps its word", async () => {
    const story = await shop({ tiers: [] })
    await story.change({ defaultImage: later })
    await story.complete()
    await story.until("Ready", "Degraded")
    await story.world.advance("3m")
    expect(await story.condition("Complete")).toMatchObject({ status: "True", reason: "AllUpToDate" })
    expect((await story.condition("Ready"))!.message).toMatch(/[1-6] of 6 objects lost their health .*CrashLoop/)
    expect((await story.status()).tierStatus[0].regressed).toBeGreaterThan(0)
    expect(await story.events()).toContain("Degraded")
    await story.change({ defaultImage: v2 })
    await story.complete()
    expect(await story.condition("Ready")).toMatchObject({ status: "True" })
  })
})

describe("a target that fits no object", () => {
  test("halts at once, and names the containers there are", async () => {
    const story = await shop()
    const began = story.world.clock.now()
    await story.change({ defaultImage: v2, target: { image: { container: "wbe" } } })
    await story.until("Halted", "WrongTarget")
    expect(since(story, began)).toBeLessThan(5)
    expect((await story.condition("Halted"))!.message).toContain("has no container wbe, only basic-demo")
    await story.change({ target: { image: { container: "basic-demo" } } })
    await story.complete()
  })

  test("halts at once where its health yields no boolean", async () => {
    const story = await shop()
    await story.change({ defaultImage: v2, target: { health: "object.spec.replicas" } })
    await story.until("Halted", "WrongTarget")
    expect((await story.condition("Halted"))!.message).toContain("did not yield true or false")
  })
})

test("a tier that waits for approval is not in progress", async () => {
  const story = await shop({ tiers: tier({ requireApproval: false }) })
  await story.change({ defaultImage: v2, tiers: tier({ requireApproval: true }) })
  await story.until("Complete", "AwaitingApproval")
  const { conditions } = await story.tier("")
  expect(conditions).toMatchObject([
    { type: "Complete", status: "False" },
    { type: "InProgress", status: "False", reason: "AwaitingApproval" },
  ])
})

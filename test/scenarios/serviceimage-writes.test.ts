import { describe, expect, test } from "vitest"
import { alter, answer, type Fault, type Matcher, slow } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import type { Request } from "#runtime/client/index.ts"
import { dicom, image, type Story, serviceImage, tell } from "#test/support/rollout-story.ts"

// How a rollout writes where writes go wrong: one namespace must not hold up another.

const [v1, v2] = [image("v1"), image("v2")]

const isWriteIn =
  (namespace: string): Matcher =>
  ({ method, path }) =>
    method === "PATCH" && path.includes(`/namespaces/${namespace}/dicoms/`)
const isOfFleet: Matcher = ({ method, path }) => method === "PATCH" && path.includes("/dicoms/")

const tenants = (namespace: string, count: number) =>
  Array.from({ length: count }, (_, index) => dicom(`${namespace}-${index}`, { metadata: { namespace } }))

const webhookDown = {
  reason: "InternalError",
  message: `Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: Post "https://127.0.0.1:9/?timeout=10s": dial tcp 127.0.0.1:9: connect: connection refused`,
}

/** `count`: objects in all of these namespaces. */
type Wrong = { namespaces: string[]; count?: number; make: (strikes: Matcher, world: Story["world"]) => Fault[] }

/** A fleet in the namespace `good` and in others; from the upgrade on, something is wrong with those. */
async function upgrade({ namespaces, make, count = 40 }: Wrong) {
  const bad = count / namespaces.length
  let isWrong = false
  const refused: Request[] = []
  const good = 40
  const spaces = [...namespaces, "good"].map(name => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } }))
  const story = await tell([...spaces, ...namespaces.flatMap(each => tenants(each, bad)), ...tenants("good", good)], {
    spec: { tiers: [] },
    process: world => ({
      faults: [
        next => ({
          ...next,
          async send(request) {
            const response = await next.send(request)
            if (isOfFleet(request) && response.status >= 300) refused.push(request)
            return response
          },
        }),
        slow(isOfFleet, world.clock, 5),
        ...make(request => isWrong && namespaces.some(each => isWriteIn(each)(request)), world),
      ],
    }),
  })
  const { world } = story
  isWrong = true
  const from = world.clock.now()
  await story.change({ defaultImage: v2 })
  const images = new Map<string, string>()
  let looked = 0
  const has = (namespace: string, wanted: string) => {
    for (const { place, object } of world.history.slice(looked))
      if (place.endsWith("dicoms"))
        images.set(`${object.metadata.namespace}/${object.metadata.name}`, object.spec.image)
    looked = world.history.length
    return [...images].filter(([key, image]) => key.startsWith(`${namespace}/`) && image === wanted).length
  }
  return {
    ...story,
    refused,
    has,
    /** How long the others took. */
    async goodMs() {
      await world.until("the others to have v2", () => has("good", v2) === good, "10m")
      return world.clock.now() - from
    },
    heal() {
      isWrong = false
    },
  }
}

const wrongs: Record<string, Wrong> = {
  "a webhook that is down": { namespaces: ["bad"], make: strikes => [answer(strikes, 500, webhookDown)] },
  "a webhook that is down, in four namespaces": {
    namespaces: ["bad-1", "bad-2", "bad-3", "bad-4"],
    make: strikes => [answer(strikes, 500, webhookDown)],
  },
  "writes without an answer": {
    namespaces: ["bad"],
    make: strikes => [answer(strikes, 500, { reason: "InternalError" })],
  },
  // More than may be in flight.
  "writes without an answer, in four namespaces": {
    namespaces: ["bad-1", "bad-2", "bad-3", "bad-4"], count: 240,
    make: strikes => [answer(strikes, 504, { reason: "Timeout" })],
  },
  "a webhook that denies with 409": {
    namespaces: ["bad"],
    make: strikes => [answer(strikes, 409, { reason: "Conflict", message: 'admission webhook "x.y.z" denied the request: no' })],
  },
  "a webhook that denies with 429": {
    namespaces: ["bad"],
    make: strikes => [answer(strikes, 429, { reason: "TooManyRequests", message: 'admission webhook "x.y.z" denied the request: no' })],
  },
} // biome-ignore format: rows

describe("the others go on as fast as without: ", () => {
  for (const [name, wrong] of Object.entries(wrongs))
    test(name, async () => {
      const calm = await (await upgrade({ ...wrong, make: () => [] })).goodMs()
      const beside = await upgrade(wrong)
      expect(await beside.goodMs()).toBeLessThanOrEqual(calm * 1.1)
      expect(Math.max(...beside.statuses().map(({ inflight }) => inflight.length))).toBeLessThanOrEqual(200)
    })

  test("also where each of its writes takes ten seconds to fail, but for those that were under way", async () => {
    const beside = await upgrade({
      namespaces: ["bad-1", "bad-2", "bad-3", "bad-4"],
      make: (strikes, { clock }) => [slow(strikes, clock, 10_000), answer(strikes, 500, webhookDown)],
    })
    expect(await beside.goodMs()).toBeLessThan(11_000)
  })
})

describe("what is refused", () => {
  test("is tried once per object and back-off step, and reported with the server's message", async () => {
    const story = await upgrade(wrongs["a webhook that is down"]!)
    await story.goodMs()
    await story.world.advance("1h")
    // One write in each step of the namespace: half a second, one, two … two and a half minutes.
    expect(story.refused.length).toBeLessThan(60)
    const [tier] = (await story.status()).tierStatus
    expect(tier.failures).toMatchObject([{ reason: "WriteFailed", scope: "Partial", count: 40 }])
    expect(tier.failures[0].message).toMatch(/failed calling webhook .* connection refused$/)
    expect(await story.events()).toContain("WriteFailed")
    story.heal()
    await story.world.until("all to have v2", () => story.has("bad", v2) === 40, "6m")
  })

  test("and an object without an answer is touched once per step, and before anything is concluded", async () => {
    const story = await upgrade(wrongs["writes without an answer"]!)
    await story.goodMs()
    await story.world.advance("1h")
    const perObject = Map.groupBy(story.refused, ({ path }) => path)
    // At once, then after 1, 2, 4 … 256 s, and every five minutes.
    for (const writes of perObject.values()) expect(writes.length).toBeLessThan(2 + 9 + 11)
    // Of a namespace that worked until then, what was under way at once; a quarter of the window would be fifty.
    expect(perObject.size).toBeLessThanOrEqual(17)
    expect((await story.status()).inflight.length).toBeGreaterThan(0)
    expect(await story.condition("Complete")).toMatchObject({ status: "False" })
    story.heal()
    await story.complete()
    expect(story.has("bad", v2)).toBe(40)
  })

  test("of one object alone does not stop its neighbours", async () => {
    const story = await upgrade({
      namespaces: ["bad"],
      make: strikes => [answer(request => strikes(request) && /bad-7(\?|$)/.test(request.path), 500, webhookDown)],
    })
    await story.world.until("its neighbours to have v2", () => story.has("bad", v2) === 39, "10s")
  })
})

describe("an admission webhook that changes the image in the same write", () => {
  const putsBack = (text: string) => text.replaceAll(`"image":"${v2}"`, `"image":"${v1}"`)

  test("is named, the object is tried less and less often, and the others go on", async () => {
    const story = await tell([dicom("d1"), dicom("d2")], {
      process: () => ({ faults: [alter(request => request.path.includes("/dicoms/d1"), putsBack)] }),
    })
    await story.change({ defaultImage: v2 })
    await story.until("Complete", "Contested")
    expect((await story.condition("Complete"))!.message).toContain("an admission webhook changes it in the same write")
    expect(await story.images()).toEqual({ d1: "v1", d2: "v2" })
    const stamps = () => story.world.record.sent.filter(({ path }) => path.includes("/dicoms/d1")).length
    const before = stamps()
    await story.world.advance("1h")
    expect(stamps() - before).toBeGreaterThan(5)
    expect(stamps() - before).toBeLessThan(20)
    expect((await story.tier("")).failures).toMatchObject([
      { reason: "Contested", message: "an admission webhook changes it in the same write", examples: ["default/d1"] },
    ])
  })
})

describe("a ServiceImage that was deleted and created again under its name has changed nothing", () => {
  /** What had v1 was brought to v2 by the first; the second finds it there. */
  async function again(spec: Json = {}, more: Json[] = []) {
    const story = await tell([dicom("t0", { tag: "v1" })], { spec: { defaultImage: v2, tiers: [] } })
    await story.world.client.delete(serviceImages, { name: "dicom" })
    await story.world.apply(...more, serviceImage({ defaultImage: v2, tiers: [], ...spec }))
    return story
  }
  const rollBack = (story: Story) =>
    story.world.patch(serviceImages, "dicom", { metadata: { annotations: { "autoimagemanager.io/rollback": "g1" } } })

  test("aim rollback takes nothing back", async () => {
    const story = await again()
    await story.complete()
    await rollBack(story)
    await story.until("Halted", "RolledBack")
    expect(await story.images()).toEqual({ t0: "v2" })
  })

  test("nor while a tier awaits its approval", async () => {
    const tiers = [
      { upgradeTier: "" },
      { upgradeTier: "late", priority: -1, requireApproval: true, image: image("v3") },
    ]
    const story = await again({ tiers }, [dicom("t1", { tier: "late", tag: "v1" })])
    await story.until("Complete", "AwaitingApproval")
    await rollBack(story)
    await story.until("Halted", "RolledBack")
    expect(await story.images()).toEqual({ t0: "v2", t1: "v1" })
  })

  test("nor does onFailure: Rollback", async () => {
    const tiers = [{ upgradeTier: "late", priority: -1, progressDeadlineSeconds: 60, image: image("bad") }]
    const story = await again({ tiers, onFailure: "Rollback" }, [
      dicom("t1", { tier: "late", tag: "v1", spec: { failureHaltsUpdate: true } }),
    ])
    await story.until("Halted", "RolledBack")
    expect(await story.images()).toEqual({ t0: "v2", t1: "v1" })
  })
})

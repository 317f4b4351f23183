import { expect, test } from "vitest"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { answer, arriveLate, isWatch, type Matcher, nth, stale } from "#cluster-sim/faults/faults.ts"
import { everyPart, type Json } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { findProblem } from "#controllers/serviceimage/validate.ts"
import { decisionAnnotation } from "#core/image/record.ts"
import type { Controller } from "#runtime/controller.ts"
import type { Resource } from "#runtime/resource.ts"
import { quickOperator } from "#test/support/quick-operator.ts"
import { about, dicom, early, image, type Story, serviceImage, tell, twoTiers } from "#test/support/rollout-story.ts"
import { manifest, scenario } from "#test/support/scenario.ts"
import { dicomController } from "../../examples/dicom/controller.ts"
import { Deployments } from "../../examples/dicom/deployment.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"

// The forty edge cases of a rollout over tenants, each as a story of what the world looks like in the end.

const [v1, v2, v3] = [image("v1"), image("v2"), image("v3")]
const sick = { labels: { sick: "very" } }
const heal = { metadata: { labels: { sick: null } } }
const moveTo = (tier: string | null) => ({ metadata: { labels: { "upgrade-tier": tier } } })

test("1. an object whose label names no tier goes with the default tier; without one it is left alone, and named", async () => {
  const story = await tell([early("e"), dicom("none"), dicom("empty", { tier: "" }), dicom("odd", { tier: "odd" })], {
    spec: { tiers: [{ upgradeTier: "early", image: v2 }] },
  })
  expect(await story.images()).toEqual({ e: "v2", none: "v1", empty: "v1", odd: "v1" })

  await story.change({ defaultImage: "", tiers: [{ upgradeTier: "early", image: v3 }] })
  await story.world.apply(dicom("late"))
  await story.complete()
  await story.world.settle()
  expect(await story.images()).toEqual({ e: "v3", none: "v1", empty: "v1", odd: "v1", late: "" })
  expect((await story.status()).unmatched).toBe(4)
  expect((await story.condition("Complete"))!.message).toMatch(/4 in no tier are left alone \(default\/empty/)
})

test("2. a move into a finished tier reopens it: lower priorities get nothing new meanwhile, and keep what they have", async () => {
  const story = await tell([early("e"), dicom("d1"), dicom("d2"), dicom("d3"), dicom("d4")])
  await story.change({
    defaultImage: v3,
    tiers: [
      { upgradeTier: "early", priority: 1, image: v2 },
      { upgradeTier: "", maxConcurrent: 1 },
    ],
  })
  await story.world.until("the first of the default tier", async () =>
    Object.values(await story.images()).includes("v3"),
  )
  const [first] = Object.entries(await story.images()).find(([, tag]) => tag === "v3")!
  const [mover] = Object.entries(await story.images()).find(([, tag]) => tag === "v1")!
  await story.tenant(mover, moveTo("early"))
  await story.world.until("the mover to be stamped", async () => (await story.images())[mover] === "v2")
  const stamped = await story.images()
  expect(stamped[first]).toBe("v3")
  await story.world.advance("2900ms") // the mover takes three seconds
  expect(await story.images()).toEqual(stamped)
  const reopened = story
    .statuses()
    .flatMap(({ tierStatus }) => tierStatus.filter((tier: Json) => tier.upgradeTier === "early"))
  expect(
    reopened.some((tier: Json) => tier.conditions[1].status === "True" && tier.conditions[1].reason === "TierReopened"),
  ).toBe(true)
  await story.complete()
  expect(Object.values(await story.images()).sort()).toEqual(["v2", "v2", "v3", "v3", "v3"])
})

test("3. a move into a tier that was not reached keeps the image until its turn, and never goes back in between", async () => {
  const tiers = [{ upgradeTier: "vip", priority: 2 }, ...twoTiers]
  const story = await tell([dicom("vip", { tier: "vip" }), early("e", sick), dicom("d")], {
    spec: { tiers },
    isUnderWay: true,
  })
  await story.tenant("e", heal)
  await story.complete()
  await story.tenant("e", { metadata: { labels: { sick: "very" } } })
  await story.change({ defaultImage: v2 })
  await story.world.until("the early ones' turn", async () => (await story.images()).e === "v2")
  await story.tenant("vip", moveTo("")) // was stamped already
  await story.tenant("d", moveTo("unlisted")) // was not
  await story.world.advance("1m")
  expect(await story.images()).toEqual({ vip: "v2", e: "v2", d: "v1" })
  await story.tenant("e", heal)
  await story.complete()
  expect(story.imagesOver("vip")).toEqual(["", "v1", "v2"])
  expect(story.imagesOver("d")).toEqual(["", "v1", "v2"])
})

test("4. an object that leaves the current tier is no longer waited for", async () => {
  const story = await tell([early("e1"), early("e2"), dicom("d")])
  await story.tenant("e2", { metadata: sick })
  await story.change({ defaultImage: v2 })
  await story.world.advance("1m")
  expect(await story.images()).toEqual({ e1: "v2", e2: "v2", d: "v1" })
  await story.tenant("e2", moveTo(null))
  await story.world.advance("1s")
  expect((await story.tier("early")).conditions[0].status).toBe("True")
  expect(await story.images()).toEqual({ e1: "v2", e2: "v2", d: "v2" })
})

test("5. a label that is removed is a move into the default tier", async () => {
  const story = await tell([early("e1"), early("e2"), dicom("d")], {
    spec: { tiers: [{ upgradeTier: "early", priority: 1, image: v2 }, { upgradeTier: "" }] },
  })
  await story.tenant("e2", moveTo(null))
  await story.world.until("e2 to follow", async () => (await story.images()).e2 === "v1")
  await story.complete()
  expect(await story.images()).toEqual({ e1: "v2", e2: "v1", d: "v1" })
})

test("6. objects of a tier that is removed fall to the default tier, and nothing is said of it any more", async () => {
  const story = await tell([early("e"), dicom("d")], {
    spec: {
      tiers: [
        { upgradeTier: "early", priority: 7, image: v2 },
        { upgradeTier: "", priority: 3 },
      ],
    },
  })
  await story.change({ tiers: [{ upgradeTier: "", priority: 3 }] })
  await story.complete()
  expect(await story.images()).toEqual({ e: "v1", d: "v1" })
  const { tierStatus, currentPriority } = await story.status()
  expect(tierStatus.map((tier: Json) => tier.upgradeTier)).toEqual([""])
  expect(currentPriority).toBe(3)
})

test("7. tiers of one priority go together, and the next one waits for all of them", async () => {
  const tiers = [{ upgradeTier: "a", priority: 1 }, { upgradeTier: "b", priority: 1 }, { upgradeTier: "" }]
  const story = await tell([dicom("a", { tier: "a" }), dicom("b", { tier: "b" }), dicom("d")], { spec: { tiers } })
  await story.tenant("b", { metadata: sick })
  await story.change({ defaultImage: v2 })
  await story.world.advance("1m")
  expect(await story.images()).toEqual({ a: "v2", b: "v2", d: "v1" })
  expect((await story.tier("a")).conditions[0].status).toBe("True")
  await story.tenant("b", heal)
  await story.complete()
  expect(await story.images()).toEqual({ a: "v2", b: "v2", d: "v2" })
})

test("8. the same tier twice is refused by the server; were it stored, nothing would be changed", async () => {
  const story = await tell([dicom("d")])
  const tiers = [
    { upgradeTier: "early", image: v2 },
    { upgradeTier: "early", image: v3 },
  ]
  await expect(story.change({ tiers })).rejects.toThrow(/[Dd]uplicate/)
  const { target } = serviceImage().spec
  expect(findProblem(ServiceImage.spec.parse({ target, tiers }))).toMatchObject({ reason: "InvalidTiers" })
})

test("9. of two ServiceImages the one that stamped an object keeps it, else the older; the other says so", async () => {
  const selecting = (fleet: string) => ({ ...serviceImage().spec.target, selector: { matchLabels: { fleet } } })
  const story = await tell([dicom("a", { labels: { fleet: "a" } }), dicom("b", { labels: { fleet: "b" } })], {
    spec: { target: selecting("a") },
  })
  await story.world.advance("2s") // creation times have seconds
  await story.world.apply(serviceImage({ target: selecting("b"), defaultImage: v2 }, "younger"))
  await story.complete("younger")
  // The older one begins to select what the younger one stamped, and then each selects other objects.
  await story.change({ target: { selector: null } })
  await story.until("Conflict", "ClaimedByAnother")
  await story.change({ target: { selector: null } }, "younger")
  await story.until("Conflict", "ClaimedByAnother", "younger")
  await story.world.apply(dicom("c"))
  await story.world.settle()
  expect(await story.images()).toEqual({ a: "v1", b: "v2", c: "v1" })
  expect([story.imagesOver("a"), story.imagesOver("b")]).toEqual([
    ["", "v1"],
    ["", "v2"],
  ])
  expect(await story.condition("Complete")).toMatchObject({ status: "False" })
  expect((await story.condition("Conflict"))!.message).toMatch(/younger has 1 object /)
  expect((await story.condition("Conflict", "younger"))!.message).toMatch(/dicom has 2 objects /)
})

test("9. two ServiceImages with different containers of one Deployment are in conflict too: it has one last decision", async () => {
  const world = await scenario({ seed: 7 })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"))
  const story = about(world, world.run([createServiceImageController()]))
  const [app, log] = ["app", "log"].map(container => ({
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container } },
  }))
  const both = deployment("web", "")
  both.spec.template.spec.containers.push({ name: "log", image: "log:1" })
  await world.apply(both, serviceImage(app))
  const images = async () =>
    (await world.get(Deployments, "web", "default")).spec.template.spec.containers.map((each: Json) => each.image)
  await world.until("the first to be stamped", async () => (await images())[0] === v1)
  await world.advance("2s") // creation times have seconds
  await world.apply(serviceImage({ ...log, defaultImage: "log:2" }, "log"))
  await story.until("Conflict", "ClaimedByAnother", "log")
  await world.settle()
  expect(await images()).toEqual([v1, "log:1"])
})

test("10. manuallySpecifiedImage is hands off, from the moment it is set until it is taken back", async () => {
  const byHand = { spec: { manuallySpecifiedImage: true } }
  const story = await tell([early("e1"), early("e2"), dicom("d1"), dicom("d2", { tag: "own", ...byHand })])
  expect((await story.tier("")).unmanaged).toBe(1)
  await story.tenant("e2", { metadata: sick })
  await story.change({ defaultImage: v2 })
  await story.world.advance("1m")
  expect(await story.images()).toMatchObject({ e2: "v2", d1: "v1" }) // waits for e2
  await story.tenant("e2", byHand)
  await story.complete()
  expect(await story.images()).toEqual({ e1: "v2", e2: "v2", d1: "v2", d2: "own" })
  await story.tenant("d2", { spec: { manuallySpecifiedImage: false } })
  await story.world.until("d2 to follow", async () => (await story.images()).d2 === "v2")
})

test("10. changed back before its tier's turn, it waits like all others", async () => {
  const story = await tell([early("e"), dicom("d", { tag: "own", spec: { manuallySpecifiedImage: true } })])
  await story.tenant("e", { metadata: sick })
  await story.change({ defaultImage: v2 })
  await story.tenant("d", { spec: { manuallySpecifiedImage: false } })
  await story.world.advance("1m")
  expect(await story.images()).toEqual({ e: "v2", d: "own" })
})

test("11. before its deadline a failing object is waited for; then it halts the rollout, or is ignored, as it says", async () => {
  const story = await tell([early("e1"), early("e2", { spec: { failureHaltsUpdate: true } }), dicom("d")])
  await story.tenant("e2", { metadata: sick })
  await story.change({ defaultImage: v2 })
  await story.world.advance("9m50s")
  expect(await story.condition("Complete")).toMatchObject({ reason: "WaitingForHealth" })
  await story.world.advance("1m")
  expect(await story.condition("Halted")).toMatchObject({ status: "True", reason: "FailureHaltsUpdate" })
  expect((await story.condition("Halted"))!.message).toMatch(/default\/e2.*Timeout/)
  expect(await story.events()).toContain("FailureHaltsUpdate")
  expect(await story.images()).toEqual({ e1: "v2", e2: "v2", d: "v1" })
  // It continues by itself when the flag flips; and the failure is reported, though ignored.
  await story.tenant("e2", { spec: { failureHaltsUpdate: false } })
  await story.complete()
  expect(await story.images()).toEqual({ e1: "v2", e2: "v2", d: "v2" })
  expect((await story.tier("early")).ignoredFailures).toBe(1)
  expect(await story.condition("Halted")).toBeUndefined()
})

const ways: Record<string, (story: Story) => Promise<void>> = {
  recovers: story => story.tenant("e2", heal),
  "is deleted": story => story.world.client.delete(Dicoms, { name: "e2", namespace: "default" }).then(() => {}),
  "need not be there any more, by another spec": story => story.change({ defaultImage: v1 }),
}
for (const [way, mend] of Object.entries(ways))
  test(`11. a halted rollout continues by itself when the object that halted it ${way}`, async () => {
    const story = await tell([early("e1"), early("e2", { spec: { failureHaltsUpdate: true } }), dicom("d")])
    await story.tenant("e2", { metadata: sick })
    await story.change({ defaultImage: v2 })
    await story.until("Halted", "FailureHaltsUpdate")
    if (way.includes("spec")) await story.tenant("e2", heal)
    await mend(story)
    await story.complete()
    expect(await story.condition("Stalled")).toMatchObject({ status: "False" })
  })

test("12. an object created during a rollout gets the last completed image of its tier, and the new one with its tier", async () => {
  const story = await tell([early("e1"), early("e2"), dicom("d")])
  await story.tenant("e2", { metadata: sick })
  await story.change({ defaultImage: v2 })
  await story.world.until("e2 to be stamped", async () => (await story.images()).e2 === "v2")
  const counted = async () => (await story.status()).operation.total
  const before = await counted()
  await story.world.advance("1s") // creation times have seconds
  await story.world.apply(dicom("new"), early("new-early"))
  await story.world.advance("2s")
  expect(await story.images()).toMatchObject({ new: "v1", "new-early": "v2", d: "v1" })
  expect(await counted()).toBe(before)
  await story.world.advance("5s") // they have been deployed, and count like all others
  expect(await counted()).toBe(before + 2)
  await story.tenant("e2", heal)
  await story.complete()
  expect(story.imagesOver("new")).toEqual(["", "v1", "v2"])
  expect(story.imagesOver("new-early")).toEqual(["", "v2"])
})

test("13. an object created during a rollout that never works is stamped, and does not prevent Complete", async () => {
  // The design decides more than the page: objects that existed at the start count, deployed or not. Else a fleet whose first
  // image never starts would be complete at once.
  const story = await tell([dicom("d")])
  await story.change({ defaultImage: v2 })
  await story.world.advance("1s")
  await story.world.apply(dicom("new", sick))
  await story.complete()
  await story.world.until("it to be stamped", async () => (await story.images()).new === "v2")
  expect(await story.images()).toEqual({ d: "v2", new: "v2" })
  expect(await story.condition("Complete")).toMatchObject({ status: "True" })

  const first = await tell([dicom("never", sick)], { isUnderWay: true })
  await first.world.advance("5m")
  expect(await first.condition("Complete")).toMatchObject({ status: "False", reason: "WaitingForHealth" })
})

test("14. up to date counts only for the current generation: no object is next before every pod of the first runs v2", async () => {
  const story = await withPods()
  await story.change({ defaultImage: v2 })
  await story.complete()
  const { history } = story.world
  const at = history.findIndex(
    ({ place, object }) => place.endsWith("dicoms") && object.metadata.name === "d" && object.spec.image === v2,
  )
  const pods = new Map<string, Json>()
  for (const { place, object, type } of history.slice(0, at))
    if (place.endsWith("pods"))
      type === "DELETED" ? pods.delete(object.metadata.name) : pods.set(object.metadata.name, object)
  const running = [...pods.values()].filter(pod => pod.metadata.name.startsWith("e") && !pod.metadata.deletionTimestamp)
  expect(running.map(({ spec, status }) => [spec.containers[0].image, isTrue(status, "Ready")])).toEqual([
    [v2, true],
    [v2, true],
  ])
})

test("15. a copy that is older than our own write changes nothing: each object is stamped once", async () => {
  const watchesDicoms: Matcher = request => isWatch(request) && request.path.includes("/dicoms")
  const story = await tell([early("e1"), early("e2"), dicom("d")], {
    process: ({ clock }) => ({ faults: [stale(watchesDicoms, clock, 5000)] }),
  })
  await story.change({ defaultImage: v2 })
  await story.complete()
  for (const name of ["e1", "e2", "d"]) expect(story.imagesOver(name)).toEqual(["", "v1", "v2"])
  expect((await story.world.list(Dicoms)).map(({ metadata }) => metadata.generation)).toEqual([3, 3, 3])
})

test("16. an edit during a rollout starts again from the highest priority, and skips objects that have the image", async () => {
  const tiers = (...images: string[]) => [
    { upgradeTier: "early", priority: 1, image: images[0] },
    { upgradeTier: "", maxConcurrent: 1, image: images[1] },
  ]
  const story = await tell([early("e"), dicom("d1"), dicom("d2"), dicom("d3")])
  await story.change({ tiers: tiers(v2, v2) })
  const onV2 = async () => Object.entries(await story.images()).filter(([name, tag]) => name !== "e" && tag === "v2")
  await story.world.until("the first of the default tier", async () => (await onV2()).length > 0)
  const [[first]] = (await onV2()) as [[string, string]]
  await story.change({ tiers: tiers(v2, v3) })
  await story.complete()
  expect(story.imagesOver("e")).toEqual(["", "v1", "v2"])
  for (const name of ["d1", "d2", "d3"])
    expect(story.imagesOver(name)).toEqual(name === first ? ["", "v1", "v2", "v3"] : ["", "v1", "v3"])
  expect((await story.status()).history.map(({ id, phase }: Json) => `${id} ${phase}`)).toEqual([
    "g2 Superseded",
    "g1 Complete",
  ])
})

test("17. a new generation and Complete=False are written together, so that no client waits for the past", async () => {
  const story = await tell([early("e"), dicom("d")])
  await story.change({ defaultImage: v2 })
  await story.complete()
  const seen = story.statuses().map(({ observedGeneration, conditions }) => ({
    observedGeneration,
    ...conditions.find((each: Json) => each.type === "Complete"),
    of: conditions.map((each: Json) => each.observedGeneration),
  }))
  for (const each of seen) expect(new Set(each.of)).toEqual(new Set([each.observedGeneration]))
  expect(seen.find(each => each.observedGeneration === 2)).toMatchObject({ type: "Complete", status: "False" })
})

test("18. an edit that changes no image leaves everything complete, and is observed", async () => {
  const story = await tell([early("e"), dicom("d")])
  const { length } = story.world.history
  await story.change({
    pace: { podsPerSecond: 3 },
    tiers: [{ upgradeTier: "early", priority: 5, image: v1 }, { upgradeTier: "" }],
  })
  await story.world.settle()
  const since = story.world.history.slice(length)
  expect(since.filter(({ place }) => place.endsWith("dicoms"))).toEqual([])
  const said = since.filter(
    ({ place, object }) => place.endsWith("serviceimages") && object.status.observedGeneration === 2,
  )
  expect(said.map(({ object }) => isTrue(object.status, "Complete"))).toEqual([true])
  expect((await story.status()).operation.id).toBe("g1")
})

test("19. an older image is an image like any other", async () => {
  const story = await tell([early("e"), dicom("d")])
  for (const to of [v2, v1]) {
    await story.change({ defaultImage: to })
    await story.complete()
  }
  expect(story.imagesOver("e")).toEqual(["", "v1", "v2", "v1"])
  expect(story.imagesOver("d")).toEqual(["", "v1", "v2", "v1"])
})

test("20. images are compared by what they mean and stamped as they are written; of tag and digest the digest counts", async () => {
  const digest = `@sha256:${"a".repeat(64)}`
  const story = await tell(
    [dicom("same", { image: "docker.io/library/web" }), dicom("other", { image: "library/web:1" }), dicom("none")],
    { spec: { defaultImage: "web:latest" } },
  )
  const images = async () => (await story.world.list(Dicoms)).map(({ spec }) => spec.image)
  expect(await images()).toEqual(["web:latest", "web:latest", "docker.io/library/web"])
  await story.change({ defaultImage: `web:1${digest}` })
  await story.complete()
  await story.change({ defaultImage: `docker.io/library/web:2${digest}` })
  await story.complete()
  expect(await images()).toEqual(Array(3).fill(`web:1${digest}`))
})

test("21. a tag that is pushed again during a rollout means the same for every tier", async () => {
  let digest = `sha256:${"a".repeat(64)}`
  const asked: string[] = []
  const registry = {
    resolve: async ({ tag = "" }) => {
      asked.push(tag)
      return { ok: true, digest, mediaType: "" } as const
    },
  }
  const world = await scenario()
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  world.run([quickOperator])
  const story = about(world, world.run([createServiceImageController({ registry })]))
  await world.apply(early("e"), dicom("d"), serviceImage({ resolveDigest: "AtStart" }))
  await world.until("e to be stamped", async () => (await story.images()).e !== "")
  const first = digest
  digest = `sha256:${"b".repeat(64)}`
  await story.complete()
  const images = async () => (await world.list(Dicoms)).map(({ spec }) => spec.image)
  expect(await images()).toEqual([`${v1}@${first}`, `${v1}@${first}`])
  expect(asked).toEqual(["v1"])
})

test("a registry that does not answer holds up those ServiceImages whose digests it is asked for, and no others", async () => {
  const registry = { resolve: () => new Promise<never>(() => {}) }
  const world = await scenario()
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  world.run([quickOperator])
  const story = about(world, world.run([createServiceImageController({ registry })]))
  const other = (name: string) => ({
    ...serviceImage({
      resolveDigest: "AtStart",
      target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom", selector: { matchLabels: { none: name } } },
    }),
    metadata: { name },
  })
  await world.apply(...["a", "b", "c", "d", "e"].map(other))
  await world.advance("1s") // all that have a worker are asking
  await world.apply(dicom("web"), serviceImage())
  await story.complete()
  expect(await story.images()).toEqual({ web: "v1" })
})

test("22. an image that is none is refused, or called invalid, and what was rolled out is left as it is", async () => {
  const story = await tell([early("e"), dicom("d")])
  const bad = ["registry.example.com/Dicom:v2", "dicom v2", "dicom@sha256:12", "a".repeat(64), "dicom:"]
  for (const each of bad) await expect(story.change({ defaultImage: each })).rejects.toThrow(/write an image as/)
  await expect(story.change({ defaultImage: "" })).rejects.toThrow(/image/)
  const before = await story.status()
  // No schema says how long a name may be, so this one is stored; its other half is not carried out either.
  const tiers = [{ upgradeTier: "early", image: v2, priority: 1 }, { upgradeTier: "" }]
  await story.change({ defaultImage: `registry.example.com/${"a".repeat(300)}:v2`, tiers })
  await story.until("Invalid", "InvalidImage")
  await story.world.settle()
  expect(await story.images()).toEqual({ e: "v1", d: "v1" })
  const { tierStatus, operation, observedGeneration } = await story.status()
  expect({ tierStatus, operation }).toEqual({ tierStatus: before.tierStatus, operation: before.operation })
  expect(observedGeneration).toBe(2)
  expect(await story.condition("Stalled")).toMatchObject({ status: "True", reason: "InvalidImage" })
  await story.change({ defaultImage: v1 })
  await story.complete()
  expect(await story.images()).toEqual({ e: "v2", d: "v1" })
})

test("23. priorities are plain numbers, higher first, and the current one is the lowest in the end", async () => {
  const [most, least] = [2 ** 31 - 1, -(2 ** 31)]
  const tiers = [
    { upgradeTier: "c", priority: least },
    { upgradeTier: "b", priority: -1 },
    { upgradeTier: "a", priority: most },
    { upgradeTier: "", priority: -1 },
  ]
  const story = await tell(
    [dicom("c", { tier: "c" }), dicom("b", { tier: "b" }), dicom("a", { tier: "a" }), dicom("d")],
    { spec: { tiers } },
  )
  await story.change({ defaultImage: v2 })
  await story.complete()
  const stamped = story.world.history
    .filter(
      ({ place, before, object }) => place.endsWith("dicoms") && object.spec.image === v2 && before?.spec.image === v1,
    )
    .map(({ object }) => object.metadata.name)
  expect([stamped[0], stamped.slice(1, 3).sort(), stamped[3]]).toEqual(["a", ["b", "d"], "c"])
  expect((await story.status()).currentPriority).toBe(least)
  const bare = await tell([dicom("d")], { spec: { tiers: [] } })
  expect((await bare.status()).currentPriority).toBe(0)
})

test("24. a tier without objects is complete at once, without soak and without approval", async () => {
  const tiers = [
    { upgradeTier: "early", priority: 1, requireApproval: true, steps: [{ percent: 10, soakSeconds: 3600 }] },
    { upgradeTier: "", settleSeconds: 0 },
  ]
  const story = await tell([dicom("d")], { spec: { tiers }, isUnderWay: true })
  await story.world.advance("10s")
  expect(await story.images()).toEqual({ d: "v1" })
  expect((await story.tier("early")).conditions[0]).toMatchObject({ status: "True", reason: "NoObjects" })
  expect(await story.condition("Complete")).toMatchObject({ status: "True" })
})

test("25. an object that is being deleted is neither stamped nor waited for", async () => {
  const story = await tell([early("e", { metadata: { finalizers: ["example.com/slow"] } }), dicom("d")])
  await story.world.client.delete(Dicoms, { name: "e", namespace: "default" })
  await story.change({ defaultImage: v2 })
  await story.complete()
  expect(await story.images()).toEqual({ e: "v1", d: "v2" })
  expect((await story.tier("early")).total).toBe(0)
})

test("26. a deleted ServiceImage is gone at once, and all objects keep their images", async () => {
  const story = await tell([early("e"), dicom("d")])
  expect((await story.world.get(serviceImages, "dicom")).metadata.finalizers ?? []).toEqual([])
  const { length } = story.world.history
  await story.world.client.delete(serviceImages, { name: "dicom" })
  await story.world.apply(dicom("new"))
  await story.world.settle()
  expect(await story.world.list(serviceImages)).toEqual([])
  expect(await story.images()).toEqual({ e: "v1", d: "v1", new: "" })
  const written = story.world.history.slice(length).filter(({ place }) => place.endsWith("dicoms"))
  expect(written.map(({ object }) => object.metadata.name)).toEqual(["new"])
})

const definitions: Resource = {
  group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions", kind: "CustomResourceDefinition", namespaced: false,
} // biome-ignore format: a row

/** A kind of its own that does not follow the contract, in whatever shape and scope. */
const gadgetKind = (scope: string, served: "v1" | "v2" = "v1"): Json => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "gadgets.example.com" },
  spec: {
    group: "example.com",
    scope,
    names: { kind: "Gadget", plural: "gadgets", singular: "gadget", listKind: "GadgetList" },
    // What was stored in v1 may still be, so v1 stays in the list.
    versions: ["v1", served].slice(served === "v1" ? 1 : 0).map(name => ({
      name,
      served: name === served,
      storage: name === served,
      schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
    })),
  },
})
const gadgets = (namespaced: boolean): Resource => ({
  group: "example.com",
  version: "v1",
  plural: "gadgets",
  kind: "Gadget",
  namespaced,
})
const gadget = (name: string, spec: Json, more: Json = {}): Json => ({
  apiVersion: "example.com/v1",
  kind: "Gadget",
  metadata: { name, ...more },
  spec,
})
const gadgetTarget = { apiVersion: "example.com/v1", kind: "Gadget" }

test("27. a kind that is missing is waited for, and others go on; one that goes or changes its version is followed", async () => {
  const story = await tell([dicom("d")])
  await story.world.apply(serviceImage({ target: { ...gadgetTarget, health: "true" } }, "gadget"))
  await story.until("TargetKindMissing", "KindNotFound", "gadget")
  await story.change({ defaultImage: v2 })
  await story.complete()

  await story.world.apply(gadgetKind("Namespaced"), gadget("g", {}, { namespace: "default" }))
  await story.complete("gadget")
  const imageOf = async () => (await story.world.get(gadgets(true), "g", "default")).spec.image
  expect(await imageOf()).toBe(v1)
  expect(await story.condition("TargetKindMissing", "gadget")).toBeUndefined()

  await story.world.apply(gadgetKind("Namespaced", "v2"))
  await story.until("TargetKindMissing", "KindNotFound", "gadget")
  await story.change({ defaultImage: v2, target: { apiVersion: "example.com/v2" } }, "gadget")
  await story.complete("gadget")
  expect((await story.world.get({ ...gadgets(true), version: "v2" }, "g", "default")).spec.image).toBe(v2)

  await story.world.client.delete(definitions, { name: "gadgets.example.com" })
  await story.until("TargetKindMissing", "KindNotFound", "gadget")
  expect(story.process.exitCode).toBeUndefined()
})

test("28. a Deployment's health is its replicas, of the present generation; a kind of its own is read by an expression", async () => {
  const world = await scenario({ seed: 7, parts: everyPart({ nodes: 2 }) })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), gadgetKind("Namespaced"))
  const story = about(world, world.run([createServiceImageController()]))
  const target = { apiVersion: "apps/v1", kind: "Deployment", image: { container: "app" } }
  await world.apply(deployment("first", "early"), deployment("second", ""), serviceImage({ target }))
  await story.complete()
  await story.change({ defaultImage: v2 })
  await story.complete()
  const { history } = world
  const at = history.findIndex(
    ({ place, object }) => place.endsWith("deployments") && object.metadata.name === "second" && imageOf(object) === v2,
  )
  const first = history
    .slice(0, at)
    .findLast(({ place, object }) => place.endsWith("deployments") && object.metadata.name === "first")!.object
  expect(first.status).toMatchObject({
    observedGeneration: first.metadata.generation,
    replicas: 2,
    updatedReplicas: 2,
    availableReplicas: 2,
  })

  const health = "object.status.phase == 'Running'"
  await world.apply(
    gadget("g", {}, { namespace: "default" }),
    serviceImage({ target: { ...gadgetTarget, health } }, "gadget"),
  )
  await world.advance("1m") // without a status it is not known to be well
  expect(await story.condition("Complete", "gadget")).toMatchObject({ status: "False", reason: "WaitingForHealth" })
  await world.patch(gadgets(true), "g", { status: { phase: "Running" } }, "default")
  await story.complete("gadget")
})

test("29. a kind of the whole cluster is as good as one of a namespace", async () => {
  const story = await tell([])
  await story.world.apply(gadgetKind("Cluster"), gadget("g", { image: "old:1" }))
  await story.world.apply(
    serviceImage({ target: { ...gadgetTarget, health: "true", namespaceSelector: {} } }, "gadget"),
  )
  await story.complete("gadget")
  expect((await story.world.get(gadgets(false), "g")).spec.image).toBe(v1)
  expect((await story.status("gadget")).progress).toBe("1/1")
})

const patches =
  (name: string): Matcher =>
  ({ method, path }) =>
    method === "PATCH" && path.includes(`/dicoms/${name}`)

test("30. a conflict is looked at again; one object that is refused does not keep the others; a failed list concludes nothing", async () => {
  let isDenied = false
  const story = await tell([early("e"), dicom("d1"), dicom("d2")], {
    process: () => ({
      faults: [
        answer(nth(patches("e"), 2), 409, { reason: "Conflict" }),
        answer(request => isDenied && patches("d1")(request), 422, { reason: "Invalid" }),
      ],
    }),
  })
  isDenied = true
  await story.change({ defaultImage: v2 })
  await story.world.advance("1m")
  expect(await story.images()).toEqual({ e: "v2", d1: "v1", d2: "v2" })
  expect((await story.tier("")).failures).toMatchObject([
    { reason: "AdmissionDenied", scope: "Partial", count: 1, examples: ["default/d1"] },
  ])
  await story.complete() // it counts as failed at its deadline, and does not halt
  expect((await story.tier("")).ignoredFailures).toBe(1)
  isDenied = false
  await story.world.until("d1 to be stamped", async () => (await story.images()).d1 === "v2")

  let mayList = false
  const blind = await tell([dicom("d")], {
    isUnderWay: true,
    process: () => ({
      faults: [answer(({ path }) => !mayList && /\/dicoms\?/.test(path), 403, { reason: "Forbidden" })],
    }),
  })
  await blind.until("Complete", "ListFailed")
  expect(await blind.condition("Complete")).toMatchObject({ status: "False" })
  const { length } = blind.statuses()
  await blind.world.advance("10m") // it is tried again and again, and said once
  expect(blind.statuses()).toHaveLength(length)
  mayList = true
  await blind.complete()
})

test("31. before the first list is in, nothing is said", async () => {
  const story = await tell([early("e"), dicom("d")])
  await story.process.stop()
  await story.change({ defaultImage: v2 })
  const { length } = story.statuses()
  const watchesDicoms: Matcher = request => isWatch(request) && request.path.includes("/dicoms")
  story.world.run([createServiceImageController()], { faults: [stale(watchesDicoms, story.world.clock, 60_000)] })
  await story.world.advance("59s")
  const untouched = story
    .statuses()
    .slice(length)
    .filter(each => each.observedGeneration === 2)
  expect(untouched).toEqual([])
  await story.complete()
  expect(await story.images()).toEqual({ e: "v2", d: "v2" })
})

test("32. what a deposed leader sent arrives too late to be carried out", async () => {
  const story = await tell([dicom("d1"), dicom("d2")], {
    process: ({ clock }) => ({ leaderElect: true, faults: [arriveLate(nth(patches("d1"), 2), clock, 300_000)] }),
  })
  await story.change({ defaultImage: v2 })
  await story.world.until("d2 to be stamped, d1 being on its way", async () => (await story.images()).d2 === "v2")
  story.process.die()
  await story.change({ defaultImage: v1 }) // the user takes it back
  story.world.run([createServiceImageController()], { leaderElect: true })
  await story.complete()
  expect(await story.images()).toEqual({ d1: "v1", d2: "v1" })
  await story.world.advance("10m")
  expect(story.imagesOver("d1")).toEqual(["", "v1"])
  const ids = [...new Set(story.statuses().map(each => each.electionID))]
  expect(ids).toHaveLength(2)
})

/** Puts one image back, each time it changes. */
const gitOps = (name: string, wanted: string, isAtWork: () => boolean): Controller => ({
  name: "git-ops",
  permissions: [],
  setup({ watch, enqueue, client }) {
    const dicoms = watch(Dicoms, {
      project: object => ({
        resourceVersion: object.metadata.resourceVersion ?? "",
        image: (object as Json).spec.image as string,
      }),
    })
    dicoms.subscribe(({ key }) => enqueue(key))
    return {
      async reconcile(key) {
        if (key !== `default/${name}` || !isAtWork() || dicoms.get(key)?.image === wanted) return
        const body = { spec: { image: wanted } }
        await client.patch(Dicoms, { name, namespace: "default" }, { type: "merge", body }, { fieldManager: "argocd" })
      },
    }
  },
})

test("33. a writer that puts another image back is answered at growing intervals, and named", async () => {
  let isAtWork = true
  const story = await tell([dicom("d1"), dicom("d2")], {
    controllers: [quickOperator, gitOps("d1", v1, () => isAtWork)],
  })
  await story.change({ defaultImage: v2 })
  await story.until("Complete", "Contested")
  expect((await story.condition("Complete"))!.message).toMatch(/argocd puts another image back on 1/)
  expect((await story.tier("")).failures).toMatchObject([{ reason: "Contested", examples: ["default/d1"] }])
  await story.world.advance("1h")
  const stamps = story.imagesOver("d1").filter(tag => tag === "v2").length
  expect(stamps).toBeGreaterThan(3)
  expect(stamps).toBeLessThan(25)
  isAtWork = false
  await story.world.until("the other to have given up", async () => (await story.images()).d1 === "v2")
  await story.complete()
  await story.world.settle()
  expect((await story.tier("")).failures).toEqual([])
})

test("34. lost health is counted and rewinds nothing; a wrong image opens the tier again", async () => {
  const story = await withPods()
  await story.tenant("e", { spec: { placement: { nodeSelector: { disk: "gold" } } } })
  await story.world.until("the loss to be told", async () => (await story.tier("early")).regressed === 1)
  await story.world.advance("20m")
  expect(await story.condition("Complete")).toMatchObject({ status: "True" })
  await story.tenant("e", { spec: { placement: null } })
  await story.world.until("the loss to be over", async () => (await story.tier("early")).regressed === 0)

  await story.tenant("e", { spec: { image: v3 } })
  await story.world.until("it to be put right", async () => (await story.images()).e === "v1")
  await story.complete()
  expect(story.statuses().some(({ tierStatus }) => tierStatus[0].conditions[0].reason === "TierReopened")).toBe(true)
})

test("35. of many that fail a few are named, and no second sees more stamps than the pace", async () => {
  const many = Array.from({ length: 60 }, (_, index) => dicom(`d${index}`))
  const story = await tell(many)
  await story.change({ defaultImage: image("bad"), pace: { podsPerSecond: 10 } })
  await story.until("Halted", "AllFailed")
  const [failure] = (await story.tier("")).failures
  expect(failure).toMatchObject({ reason: "Timeout", scope: "All", count: 60 })
  expect(failure.examples).toHaveLength(10)
  expect((await story.events()).length).toBeLessThan(10) // a story, not one event per object
  const times = story.world.history
    .filter(
      ({ place, before, object }) => place.endsWith("dicoms") && before?.spec.image === v1 && object.spec.image !== v1,
    )
    .map(({ object }) => Date.parse(JSON.parse(object.metadata.annotations![decisionAnnotation]!).at))
  expect(times).toHaveLength(60)
  for (const from of times) expect(times.filter(at => at >= from && at < from + 1000).length).toBeLessThanOrEqual(10)
})

test("36. a paused rollout reports so for the observed generation, and stamps nothing", async () => {
  const story = await tell([early("e"), dicom("d")])
  await story.change({ defaultImage: v2, paused: true })
  await story.until("Paused", "Paused")
  await story.world.apply(dicom("new"))
  await story.world.settle()
  expect(await story.images()).toEqual({ e: "v1", d: "v1", new: "" })
  expect((await story.status()).observedGeneration).toBe(2)
  for (const type of ["Complete", "InProgress", "Ready", "Stalled"])
    expect(await story.condition(type)).toMatchObject({ status: "False", observedGeneration: 2 })
  await story.change({ paused: false })
  await story.complete()
  expect(await story.images()).toEqual({ e: "v2", d: "v2", new: "v2" })
})

test("37. soaks and deadlines survive a restart, and wake the rollout", async () => {
  const tiers = [{ upgradeTier: "", settleSeconds: 0, steps: [{ percent: 50, soakSeconds: 600 }] }]
  const tenants = Array.from({ length: 8 }, (_, index) => dicom(`d${index}`))
  const story = await tell(tenants, { spec: { tiers: [] } })
  await story.change({ defaultImage: v2, tiers })
  await story.until("Complete", "Soaking")
  const onV2 = async () => Object.values(await story.images()).filter(tag => tag === "v2").length
  const share = await onV2()
  expect(share).toBeGreaterThan(0)
  expect(share).toBeLessThan(8)
  const began = story.world.clock.now()
  await story.world.advance("5m")
  story.process.die()
  story.world.run([createServiceImageController()])
  await story.world.advance("4m50s")
  expect(await onV2()).toBe(share)
  await story.complete()
  // From then on it takes what the rest takes to become up to date.
  expect(story.world.clock.now() - began).toBeGreaterThanOrEqual(600_000)
  expect(story.world.clock.now() - began).toBeLessThan(606_000)
})

test("37. a deadline counts from the stamp, whichever process leads", async () => {
  const story = await tell([dicom("d1", { spec: { failureHaltsUpdate: true } }), dicom("d2")])
  await story.tenant("d1", { metadata: sick })
  await story.change({ defaultImage: v2 })
  const began = story.world.clock.now()
  await story.world.advance("5m")
  story.process.die()
  story.world.run([createServiceImageController()])
  await story.until("Halted", "FailureHaltsUpdate")
  expect(Math.abs(story.world.clock.now() - began - 600_000)).toBeLessThan(5000)
})

test("38. all the paths that are named get the image, and no other", async () => {
  const story = await tell([])
  const paths = ["spec.image", "spec.sidecar.image"]
  const old = { image: "old:1", sidecar: { image: "old:2", port: 80 }, other: { image: "mine:1" } }
  await story.world.apply(gadgetKind("Namespaced"), gadget("g", old, { namespace: "default" }))
  await story.world.apply(serviceImage({ target: { ...gadgetTarget, image: { paths }, health: "true" } }, "gadget"))
  await story.complete("gadget")
  expect((await story.world.get(gadgets(true), "g", "default")).spec).toEqual({
    image: v1, sidecar: { image: v1, port: 80 }, other: { image: "mine:1" },
  }) // biome-ignore format: a row
})

test("39. a condition's time moves when its status does, and at rest nothing is written", async () => {
  const story = await tell([early("e"), dicom("d")])
  await story.change({ defaultImage: v2 })
  await story.complete()
  await story.world.settle()
  const statuses = story.statuses()
  for (const [index, { conditions }] of statuses.entries())
    for (const { type, status, lastTransitionTime } of conditions) {
      const before = statuses[index - 1]?.conditions.find((each: Json) => each.type === type)
      if (before?.status === status) expect(lastTransitionTime).toBe(before.lastTransitionTime)
    }
  await story.world.advance("1h")
  expect(story.statuses()).toHaveLength(statuses.length)
})

test("40. objects that are unmanaged or claimed by another take no place in maxConcurrent, and none in the budget", async () => {
  const selecting = (fleet: string) => ({ ...serviceImage().spec.target, selector: { matchLabels: { fleet } } })
  const labels = { fleet: "a" }
  const story = await tell([dicom("theirs", { labels: { ...labels, sick: "very" } })], {
    spec: { target: selecting("a") },
    isUnderWay: true,
  })
  await story.world.until("theirs to be taken", async () => (await story.images()).theirs === "v1")
  await story.world.advance("2s")
  await story.world.apply(
    dicom("by-hand", { tag: "v1", labels: { sick: "very" }, spec: { manuallySpecifiedImage: true } }),
    dicom("m1", { tag: "v1" }), dicom("m2", { tag: "v1" }),
    serviceImage({ defaultImage: v2, tiers: [{ upgradeTier: "", maxConcurrent: 1, failureBudget: 0, progressDeadlineSeconds: 60 }] }, "mine"),
  ) // biome-ignore format: a row
  await story.world.until(
    "mine to be stamped",
    async () => (await story.images()).m2 === "v2" && (await story.images()).m1 === "v2",
  )
  await story.world.advance("20m")
  expect(await story.images()).toEqual({ theirs: "v1", "by-hand": "v1", m1: "v2", m2: "v2" })
  expect(await story.condition("Halted", "mine")).toBeUndefined()
  expect(await story.condition("Conflict", "mine")).toMatchObject({ status: "True" })
  // And one by one, as if they were the only ones.
  const [first, second] = ["m1", "m2"]
    .map(name =>
      story.world.history.find(
        ({ place, object }) => place.endsWith("dicoms") && object.metadata.name === name && object.spec.image === v2,
      ),
    )
    .map(entry => story.world.history.indexOf(entry!))
    .sort((a, b) => a - b)
  const between = story.world.history
    .slice(first, second)
    .filter(({ object }) => object.kind === "Dicom" && isTrue(object.status, "UpToDate"))
  expect(between.length).toBeGreaterThan(0)
})

/** The real operator of Dicoms, with nodes and pods: two tenants of two pods each, on v1. */
async function withPods(): Promise<Story> {
  const world = await scenario({ seed: 7, parts: everyPart({ nodes: 2 }) })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  const two = { spec: { replicas: 2 } }
  return tell([early("e", two), dicom("d", two)], { world, controllers: [dicomController()] })
}

const isTrue = (status: Json | undefined, type: string): boolean =>
  status?.conditions?.some((each: Json) => each.type === type && each.status === "True") ?? false
const imageOf = (workload: Json): string => workload.spec.template.spec.containers[0].image

const deployment = (name: string, tier: string): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace: "default", labels: { "upgrade-tier": tier } },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "app", image: image("v0") }] } },
  },
})

test("37. an object that was up to date and is scaled hours later gets a fresh deadline, before and after a restart", async () => {
  const tiers = [{ upgradeTier: "", failureBudget: 0, steps: [{ percent: 50, soakSeconds: 7200 }] }]
  const story = await tell([dicom("d1"), dicom("d2"), dicom("d3")], { spec: { tiers: [] } })
  await story.change({ defaultImage: v2, tiers, onFailure: "Rollback" })
  await story.until("Complete", "Soaking")
  const [stamped] = Object.entries(await story.images()).find(([, tag]) => tag === "v2")!
  await story.world.advance("1h")
  await story.tenant(stamped, { spec: { replicas: 2 } })
  await story.world.advance("1h")
  // It ails for five of its ten minutes, and a new process takes over in between.
  await story.tenant(stamped, { metadata: sick, spec: { replicas: 3 } })
  await story.world.advance("2m")
  story.process.die()
  story.world.run([createServiceImageController()])
  await story.world.advance("3m")
  expect((await story.condition("Complete"))!.reason).toBe("WaitingForHealth")
  await story.tenant(stamped, heal)
  await story.complete()
  expect(await story.images()).toEqual({ d1: "v2", d2: "v2", d3: "v2" })
  expect([...new Set(story.statuses().map(({ operation }) => operation?.phase))]).toEqual(["InProgress", "Complete"])

  // An object that stays unhealthy for longer has failed.
  await story.change({ defaultImage: v3 })
  await story.until("Complete", "Soaking")
  const [first] = Object.entries(await story.images()).find(([, tag]) => tag === "v3")!
  await story.world.advance("1h")
  await story.tenant(first, { metadata: sick, spec: { replicas: 4 } })
  const began = story.world.clock.now()
  await story.world.until("the rollback", async () => (await story.status()).operation.phase === "RollingBack")
  expect(Math.abs(story.world.clock.now() - began - 600_000)).toBeLessThan(5000)
})

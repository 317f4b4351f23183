import { beforeAll, describe, expect, test } from "vitest"
import {
  complete,
  conditionOf,
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  isComplete,
  isTrue,
  isUpToDateNow,
  keepController,
  type Moment,
  quickTiers,
  recorded,
  recordHistory,
  serviceImagePath,
  startController,
  startDicomController,
} from "#test/support/fleet.ts"
import { floor, floorWithFaults, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import { runProgram } from "#test/support/program.ts"

/** Twelve tenants in three tiers, on the real node; `early` before the default tier before `late`. */
const tiers = ["early", "", "late"]
const priorities: Record<string, number> = { early: 2, "": 1, late: 0 }
const tierSpecs = (more: Json = {}) =>
  quickTiers(
    tiers.map(upgradeTier => ({
      upgradeTier,
      priority: priorities[upgradeTier],
      progressDeadlineSeconds: 120,
      ...more,
    })),
  )

let images: { v1: string; v2: string; v3: string }

beforeAll(async () => {
  await installKinds()
  const [v1, v2, v3] = await Promise.all(
    ["v1", "v2", "v3"].map(async tag => (await floor().pushImage(`dicom-service:${tag}`)).reference),
  )
  images = { v1: v1!, v2: v2!, v3: v3! }
})

async function createFleet(namespace: string, fleet: string, perTier = 4): Promise<void> {
  const { api } = floor()
  for (const tier of tiers)
    for (let index = 0; index < perTier; index++)
      await api.create(dicomsPath(namespace), dicom(`${tier || "default"}-${index}`, tier, {}, { fleet }))
}

const listDicoms = async (namespace: string): Promise<Json[]> => (await floor().api.get(dicomsPath(namespace))).items
const getServiceImage = (name: string): Promise<Json> => floor().api.get(serviceImagePath(name))

/** No object of a lower priority gets `image` before all objects of a higher one run it. */
function expectTierByTier(history: readonly Moment[], image: string, count: Record<string, number>) {
  const upToDate = new Map<string, Set<string>>(tiers.map(tier => [tier, new Set()]))
  const stamped = new Map<string, Set<string>>(tiers.map(tier => [tier, new Set()]))
  for (const { tier, key, image: has, isUpToDate } of history) {
    if (has !== image) continue
    if (!stamped.get(tier)!.has(key)) {
      stamped.get(tier)!.add(key)
      for (const higher of tiers.filter(each => priorities[each]! > priorities[tier]!))
        expect(upToDate.get(higher)!.size, `${higher} up to date when ${key} was stamped`).toBeGreaterThanOrEqual(
          count[higher]!,
        )
    }
    if (isUpToDate) upToDate.get(tier)!.add(key)
  }
  for (const tier of tiers) expect(upToDate.get(tier)!.size).toBeGreaterThanOrEqual(count[tier]!)
}

/** What really runs: the image of every container on the node, by tenant. */
async function runningPods(namespace: string): Promise<{ tenant: string; image: string }[]> {
  const { items } = await floor().api.get(`/api/v1/namespaces/${namespace}/pods`)
  const isUp = (pod: Json) => !pod.metadata.deletionTimestamp && pod.status.phase === "Running"
  return items.filter(isUp).map((pod: Json) => ({
    tenant: pod.metadata.ownerReferences[0].name.replace(/-[^-]+$/, ""),
    image: pod.status.containerStatuses[0].image,
  }))
}

describe("a fleet of twelve on a real node, the controller beside the cluster", () => {
  test("goes from v1 to v2 tier by tier, and kubectl wait returns at the right time", async () => {
    const namespace = await uniqueNamespace()
    const fleet = namespace
    await createFleet(namespace, fleet)
    await createServiceImage(fleet, { defaultImage: images.v1, tiers: tierSpecs() })
    startDicomController(floor().kubeconfig)
    keepController(floor().kubeconfig)
    await complete(fleet)
    expect((await listDicoms(namespace)).map(each => each.spec.image)).toEqual(Array(12).fill(images.v1))

    const history = await recordHistory(fleet)
    const { api, kubectlRun } = floor()
    await api.patch(serviceImagePath(fleet), { spec: { defaultImage: images.v2 } })
    // The condition of generation 1 still says True at this moment; kubectl must not take it for an answer.
    const waited = kubectlRun("wait", "--for=condition=complete", `si/${fleet}`, "--timeout=240s")

    // A tenant signs up while the first tier is under way: its tier has not been reached.
    await until("the first tier to begin", async () => history.some(each => each.image === images.v2))
    await api.create(dicomsPath(namespace), dicom("newcomer", "late", {}, { fleet }))
    await until("the newcomer's first image", async () =>
      history.some(each => each.key.endsWith("/newcomer") && each.image),
    )
    const first = history.find(each => each.key.endsWith("/newcomer") && each.image)!
    const hadStarted = history.some(
      each => each.tier === "late" && each.image === images.v2 && !each.key.endsWith("/newcomer"),
    )
    if (!hadStarted) expect(first.image).toBe(images.v1)

    await waited
    const now = await getServiceImage(fleet)
    expect(isComplete(now)).toBe(true)
    expect(now.status.observedGeneration).toBe(2)
    const all = await listDicoms(namespace)
    await recorded(history, all)
    expect(
      all
        .filter(each => each.metadata.name !== "newcomer")
        .every(each => each.spec.image === images.v2 && isUpToDateNow(each)),
    ).toBe(true)
    expectTierByTier(
      history.filter(each => !each.key.endsWith("/newcomer")),
      images.v2,
      { early: 4, "": 4, late: 4 },
    )

    // It may still be up to date with the image that it had before.
    await until("the newcomer to follow its tier", async () => {
      const newcomer = await api.get(dicomsPath(namespace, "newcomer"))
      return newcomer.spec.image === images.v2 && isUpToDateNow(newcomer)
    })
    const running = await runningPods(namespace)
    expect(new Set(running.map(each => each.tenant)).size).toBe(13)
    expect(new Set(running.map(each => each.image))).toEqual(new Set([images.v2]))
  })

  test("a bad image halts at the right tier and harms no later tier", async () => {
    const namespace = await uniqueNamespace()
    const fleet = namespace
    const { api } = floor()
    await createFleet(namespace, fleet, 2)
    await api.patch(dicomsPath(namespace, "default-0"), { spec: { failureHaltsUpdate: true } })
    await createServiceImage(fleet, { defaultImage: images.v1, tiers: tierSpecs() })
    startDicomController(floor().kubeconfig)
    keepController(floor().kubeconfig)
    await complete(fleet)

    // v2 is fine for the first tier; the second gets an image that was never pushed.
    const bad = images.v2.replace(/:v2$/, ":never-pushed")
    const broken = tierSpecs({ image: images.v2 }).map(tier =>
      tier.upgradeTier === "" ? { ...tier, image: bad, progressDeadlineSeconds: 8 } : tier,
    )
    await api.patch(serviceImagePath(fleet), { spec: { tiers: broken } })
    const halted = await until("the rollout to halt", async () => {
      const now = await getServiceImage(fleet)
      return isTrue(now, "Halted") && now
    })
    expect(halted.status.currentPriority).toBe(1)
    expect(conditionOf(halted, "Halted").reason).toMatch(/FailureHaltsUpdate|AllFailed/)
    expect(isTrue(halted, "Stalled") && !isTrue(halted, "Complete")).toBe(true)
    const imagesOf = async (prefix: string) =>
      (await listDicoms(namespace)).filter(each => each.metadata.name.startsWith(prefix)).map(each => each.spec.image)
    expect(await imagesOf("early")).toEqual([images.v2, images.v2])
    expect(await imagesOf("late")).toEqual([images.v1, images.v1])
    const { code, output } = await runProgram("bin/aim", [
      "wait",
      `si/${fleet}`,
      "--timeout",
      "30s",
      "--kubeconfig",
      floor().kubeconfig,
    ])
    expect(code, output).toBe(1)
    expect(output).toContain("default tier")

    // The fix: the rollout goes on by itself and ends.
    await api.patch(serviceImagePath(fleet), { spec: { tiers: tierSpecs({ image: images.v2 }) } })
    await complete(fleet)
    expect(new Set((await listDicoms(namespace)).map(each => each.spec.image))).toEqual(new Set([images.v2]))
  })

  test("a controller killed at any point is followed by one that finishes", async () => {
    const namespace = await uniqueNamespace()
    const fleet = namespace
    await createFleet(namespace, fleet, 2)
    await createServiceImage(fleet, { defaultImage: images.v2, tiers: tierSpecs() })
    startDicomController(floor().kubeconfig)
    const first = startController(floor().kubeconfig)
    await complete(fleet)

    const history = await recordHistory(fleet)
    await floor().api.patch(serviceImagePath(fleet), { spec: { defaultImage: images.v3 } })
    await until("the first stamp", async () => history.some(each => each.image === images.v3))
    first.kill("SIGKILL")
    expect(await first.ended).toBe("SIGKILL")
    const stampedByFirst = (await listDicoms(namespace)).filter(each => each.spec.image === images.v3)
    const proxy = await floorWithFaults()
    keepController(proxy.kubeconfig)
    await complete(fleet)
    await recorded(history, await listDicoms(namespace))
    expectTierByTier(history, images.v3, { early: 2, "": 2, late: 2 })
    // The second does not stamp again what the first stamped; what the first had declared it touches once.
    const patched = (isStamp: boolean) =>
      proxy
        .writes(/\/dicoms\//)
        .filter(each => each.status === 200 && (JSON.parse(each.body).spec !== undefined) === isStamp)
        .map(each => new URL(each.path, proxy.server).pathname.split("/").at(-1)!)
    for (const names of [patched(true), patched(false)]) expect(new Set(names).size).toBe(names.length)
    for (const { metadata } of stampedByFirst) expect(patched(true)).not.toContain(metadata.name)
  })
})

import { beforeAll, expect, test } from "vitest"
import {
  conditionOf,
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  isTrue,
  serviceImagePath,
  startController,
  startDicomController,
} from "#test/support/fleet.ts"
import { floor, floorWithFaults, type Json, onKwok, uniqueNamespace, until } from "#test/support/floor.ts"

const count = 1000
const tiers = ["early", "", "late"]

beforeAll(installKinds)

test("a thousand tenants cost a thousand patches and a bounded number of status writes", async () => {
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const { api, kubeconfig } = floor()
  const placed = { placement: onKwok }
  for (let index = 0; index < count; index += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, offset) => {
        const tier = tiers[(index + offset) % tiers.length]!
        return api.create(dicomsPath(namespace), dicom(`tenant-${index + offset}`, tier, placed, { fleet }))
      }),
    )
  startDicomController(kubeconfig)
  const proxy = await floorWithFaults()
  startController(proxy.kubeconfig)

  // The first image: objects without one have no pods to disturb, so no pace holds them back.
  await createServiceImage(fleet, {
    defaultImage: "registry.example.com/dicom-service:v1",
    tiers: tiers.map((upgradeTier, index) => ({
      upgradeTier,
      priority: -index,
      progressDeadlineSeconds: 1200,
      settleSeconds: 0,
    })),
    pace: { podsPerSecond: 0 },
  })
  const first = await rolledOut(fleet)
  expect(first.status.progress).toBe(`${count}/${count}`)
  const stamps = () => proxy.writes(/\/dicoms\//)
  const reports = () => proxy.writes(new RegExp(`/serviceimages/${fleet}/status`))
  expect(stamps().filter(each => each.status === 200)).toHaveLength(count)

  proxy.forget()
  await api.patch(serviceImagePath(fleet), { spec: { defaultImage: "registry.example.com/dicom-service:v2" } })
  const second = await rolledOut(fleet)
  expect(second.status.progress).toBe(`${count}/${count}`)
  expect(second.status.tierStatus.map((tier: Json) => tier.upToDate)).toEqual([334, 333, 333])
  const images = (await api.get(dicomsPath(namespace))).items.map((each: Json) => each.spec.image)
  expect(new Set(images)).toEqual(new Set(["registry.example.com/dicom-service:v2"]))

  // One patch each, none twice. A conflict is no stamp: it is a write that was refused because the object had moved.
  const written = stamps().filter(each => each.status === 200)
  expect(written).toHaveLength(count)
  expect(new Set(written.map(each => each.path)).size).toBe(count)
  const refused = stamps().length - written.length
  expect(refused).toBeLessThan(count / 10)
  const seconds = (Date.parse(second.status.completedAt) - Date.parse(second.status.startedAt)) / 1000
  // A tier's objects are declared a hundred at a time, each once, or once more after a conflict: the next while the last are written.
  const declared = declarations(reports().map(each => JSON.parse(each.body).status.inflight))
  expect(declared.reduce((sum, keys) => sum + keys.length, 0)).toBeLessThanOrEqual(count + refused)
  expect(declared.length).toBeLessThanOrEqual(tiers.length * Math.ceil(count / tiers.length / 100) + refused)
  // Further status writes: the end of each tier, which is the end of all for the last, and counts every two seconds.
  const told = reports().length - declared.length
  expect(told).toBeLessThanOrEqual(tiers.length + 2 + seconds / 2)
  process.stderr.write(
    `thousand: ${seconds} s, ${written.length} patches, ${refused} conflicts, ${declared.length} declarations, ${told} reports\n`,
  )
}, 900_000)

/** Of each status that declares intents, those that the one before did not have. */
function declarations(inflight: readonly string[][]): string[][] {
  const fresh = inflight.map((keys, index) => {
    const before = new Set(inflight[index - 1])
    return keys.filter(key => !before.has(key))
  })
  return fresh.filter(keys => keys.length > 0)
}

async function rolledOut(name: string): Promise<Json> {
  return until(
    `${name} to be complete`,
    async () => {
      const now = await floor().api.get(serviceImagePath(name))
      const isCurrent = conditionOf(now, "Complete")?.observedGeneration === now.metadata.generation
      return isCurrent && isTrue(now, "Complete") && now
    },
    { withinMs: 600_000, everyMs: 500 },
  )
}

import { beforeAll, expect, test } from "vitest"
import { fenceAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import {
  complete,
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  isComplete,
  recorded,
  recordHistory,
  serviceImagePath,
  startController,
  startDicomController,
} from "#test/support/fleet.ts"
import { floor, floorWithFaults, type Json, onKwok, uniqueNamespace, until } from "#test/support/floor.ts"

// "Complete" on a real server with real processes: what docs/decisions/0007-the-fence.md promises.

const image = (tag: string) => `registry.example.com/dicom-service:${tag}`
const [v1, v2] = [image("v1"), image("v2")]

beforeAll(installKinds)

/** Three tenants at v1, led by a controller whose talk with the server can be disturbed. */
async function ledFleet() {
  const namespace = await uniqueNamespace()
  const { api, kubeconfig } = floor()
  for (const name of ["a", "b", "c"])
    await api.create(dicomsPath(namespace), dicom(name, "", { placement: onKwok }, { fleet: namespace }))
  // Without a pace all of them are written at once.
  await createServiceImage(namespace, { defaultImage: v1, pace: { podsPerSecond: 0 } })
  startDicomController(kubeconfig)
  const proxy = await floorWithFaults()
  const leader = startController(proxy.kubeconfig)
  const { status } = await complete(namespace)
  proxy.forget()
  return {
    fleet: namespace,
    proxy,
    leader,
    electionID: status.electionID as string,
    history: await recordHistory(namespace),
    stamps: () => proxy.writes(/\/dicoms\//).filter(each => JSON.parse(each.body).spec),
    touches: () => proxy.writes(/\/dicoms\//).filter(each => !JSON.parse(each.body).spec),
    objects: async (): Promise<Json[]> => (await api.get(dicomsPath(namespace))).items,
    setImage: (defaultImage: string) => api.patch(serviceImagePath(namespace), { spec: { defaultImage } }),
    /** The user has changed the spec back, and another process has led since. */
    async completedBySuccessor() {
      const now = await complete(namespace)
      expect(now.status.electionID).not.toBe(status.electionID)
      expect(now.status.inflight ?? []).toEqual([])
      return now
    },
  }
}

const versions = (objects: Json[]) => objects.map(({ metadata }) => metadata.resourceVersion)
const fences = (objects: Json[]) => objects.map(({ metadata }) => metadata.annotations[fenceAnnotation])
const images = (objects: Json[]) => objects.map(({ spec }) => spec.image)

test("a leader stopped before it writes finds, when it goes on, that its own client lets nothing out", async () => {
  const { fleet, proxy, leader, history, objects, setImage, completedBySuccessor } = await ledFleet()
  startController(floor().kubeconfig)
  // Its intent stands in the status, and the answer that it waits for before it stamps comes when it no longer runs.
  const declared = proxy.fault({
    match: { method: "PUT", path: /\/serviceimages\/.+\/status/, body: /"inflight":\["/ },
    do: { do: "holdAnswer" },
  })
  await setImage(v2)
  await declared.struck
  leader.kill("SIGSTOP")
  declared.release()
  expect((await floor().api.get(serviceImagePath(fleet))).status.inflight).toHaveLength(3)

  await setImage(v1)
  const { status } = await completedBySuccessor()
  const before = await objects()
  expect(fences(before)).toEqual(Array(3).fill(`${status.electionID}.1`))

  leader.kill("SIGCONT")
  expect(await leader.ended).toBe(1)
  expect(leader.output).toContain("no longer allowed to write")
  expect(proxy.writes(/\/dicoms\//)).toEqual([])
  const after = await objects()
  expect(versions(after)).toEqual(versions(before))
  expect(images(after)).toEqual([v1, v1, v1])
  expect(history.map(each => each.image)).not.toContain(v2)
  expect(isComplete(await floor().api.get(serviceImagePath(fleet)))).toBe(true)
})

test("a write that arrives after its sender's successor has said Complete is refused by the server", async () => {
  const { fleet, proxy, leader, history, objects, stamps, setImage, completedBySuccessor } = await ledFleet()
  const held = proxy.fault({ match: { method: "PATCH", path: /\/dicoms\// }, do: { do: "hold" } })
  const decidedFrom = versions(await objects())
  await setImage(v2)
  await until("three stamps to be on their way", async () => held.hits === 3)
  leader.kill("SIGKILL")
  expect(await leader.ended).toBe("SIGKILL")
  startController(floor().kubeconfig)

  await setImage(v1)
  const { status } = await completedBySuccessor()
  const before = await objects()
  expect(fences(before)).toEqual(Array(3).fill(`${status.electionID}.1`))
  // They would have matched: nothing but the touch has moved the objects since they were decided.
  const carried = stamps().map(each => JSON.parse(each.body))
  expect(carried.map(({ spec }) => spec.image)).toEqual([v2, v2, v2])
  expect(carried.map(({ metadata }) => metadata.resourceVersion).sort()).toEqual(decidedFrom.sort())

  held.release()
  await until("the server's answers", async () => stamps().every(each => each.status !== undefined))
  expect(stamps().map(each => each.status)).toEqual([409, 409, 409])
  const after = await objects()
  expect(versions(after)).toEqual(versions(before))
  expect(images(after)).toEqual([v1, v1, v1])
  expect(history.map(each => each.image)).not.toContain(v2)
  expect(isComplete(await floor().api.get(serviceImagePath(fleet)))).toBe(true)
})

test("what became of a write without an answer is not believed before the object was touched", async () => {
  const { fleet, proxy, electionID, history, objects, stamps, touches, setImage } = await ledFleet()
  const stamp = { method: "PATCH", path: /\/dicoms\//, body: /"spec":/ }
  // One was carried out and one never arrived; the client cannot know which.
  const done = proxy.fault({ match: { ...stamp, nth: 1 }, do: { do: "swallow" } })
  const lost = proxy.fault({ match: { ...stamp, nth: 1 }, do: { do: "cut" } })
  await setImage(v2)
  const { status } = await complete(fleet)
  expect([done.hits, lost.hits, status.electionID]).toEqual([1, 1, electionID])
  const now = await objects()
  expect(images(now)).toEqual([v2, v2, v2])
  await recorded(history, now)

  const pathOf = (fault: string) => stamps().find(each => each.fault === fault)!.path
  expect(
    touches()
      .map(each => each.path)
      .sort(),
  ).toEqual([pathOf("swallow"), pathOf("cut")].sort())
  const written = stamps().filter(each => each.status === 200)
  expect(new Set(written.map(each => each.path)).size).toBe(3)
  expect(written).toHaveLength(3)
  const order = proxy.requests.filter(each => each.method !== "GET")
  // What was complete before may be said once more before the first stamp.
  const firstStamp = order.indexOf(stamps()[0]!)
  const saysComplete = order.findIndex(
    ({ body }, index) => index > firstStamp && /"type":"Complete","status":"True"/.test(body),
  )
  for (const touch of touches()) expect(order.indexOf(touch)).toBeLessThan(saysComplete)
  const again = stamps().filter(each => each.path === pathOf("cut"))[1]!
  expect(order.indexOf(again)).toBeGreaterThan(order.indexOf(touches().find(each => each.path === again.path)!))

  // Each became v2 once, and stayed.
  for (const key of new Set(history.map(each => each.key))) {
    const seen = history.filter(each => each.key === key).map(each => each.image)
    expect(seen.filter((each, index) => each !== seen[index - 1])).toEqual(seen[0] === v1 ? [v1, v2] : [v2])
  }
})

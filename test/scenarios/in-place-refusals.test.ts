import { describe, expect, test } from "vitest"
import { answer, type Matcher } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { pods as podResource } from "#controllers/in-place/resources.ts"
import { inPlaceAnnotation, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { type InPlaceOptions, type InPlaceStory, imageOf, inPlaceStory, v2, v3 } from "#test/support/in-place-story.ts"

// A write that is refused is the reason of the update: named, written once, and gone when the write is allowed.

const isPodPatch: Matcher = ({ method, path }) => method === "PATCH" && path.includes("/pods/")

/** Counts what was tried, and refuses it while `isOn`. */
function refusing(matches: Matcher, status: number, message: string) {
  const state = { isOn: true, tries: 0 }
  const strikes: Matcher = request => {
    if (!matches(request)) return false
    state.tries++
    return state.isOn
  }
  return { state, fault: answer(strikes, status, { reason: status === 403 ? "Forbidden" : "Invalid", message }) }
}

async function begin(refused: ReturnType<typeof refusing>, options: InPlaceOptions = {}) {
  const story = await inPlaceStory({ ...options, isAlone: true })
  const process = story.update({ faults: [refused.fault] })
  return { story, process, world: story.world }
}

/** The reason of each record that was written on the workload. */
function said({ world }: InPlaceStory, from: number): string[] {
  const texts = world.history
    .slice(from)
    .filter(({ object }) => object.kind === "Deployment")
    .flatMap(({ object }) => object.metadata.annotations?.[inPlaceAnnotation] ?? [])
  return texts.filter((text, index) => text !== texts[index - 1]).map(text => JSON.parse(text).reason)
}

const denied = 'pods "web" is forbidden: ValidatingAdmissionPolicy "signed-images" denied request: not signed'
const ungranted = 'pods "web" is forbidden: User "aim" cannot patch resource "pods" in API group ""'

describe("a write to a pod is refused", () => {
  for (const [status, message, reason] of [
    [403, denied, "Refused"],
    [422, "Pod is invalid: spec: not so", "Refused"],
    [403, ungranted, "Forbidden"],
  ] as const)
    test(`with ${status}, ${message.slice(0, 40)}: the reason is ${reason}, and names the pod`, async () => {
      const refused = refusing(isPodPatch, status, message)
      const { story, world } = await begin(refused)
      const from = world.history.length
      await story.setImage({ web: v2 })
      const note = await story.says(reason)
      expect(note.message).toMatch(/pod web-\S+: /)
      expect(note.message).toContain(message)
      await world.advance("30m")
      // It is tried at growing intervals, and written once.
      expect(refused.state.tries).toBeLessThan(15)
      expect(said(story, from).at(-1)).toBe(reason)
      expect(said(story, from).filter(each => each === reason)).toHaveLength(1)
      refused.state.isOn = false
      await story.free()
      expect(said(story, from).at(-1)).toBe("Completed")
    })

  test("a process that takes over leaves what is written", async () => {
    const refused = refusing(isPodPatch, 403, denied)
    const { story, process, world } = await begin(refused)
    await story.setImage({ web: v2 })
    await story.says("Refused")
    await process.stop()
    const from = world.history.length
    story.update({ faults: [refused.fault] })
    await world.advance("10m")
    expect(said(story, from).filter(each => each !== "Refused")).toEqual([])
  })

  test("another image, which is allowed, is taken up at once", async () => {
    const isOfV2: Matcher = request => isPodPatch(request) && request.body?.includes(`"${v2}"`) === true
    const { story, world } = await begin(refusing(isOfV2, 403, denied))
    await story.setImage({ web: v2 })
    await story.says("Refused")
    await world.advance("30m")
    await story.setImage({ web: v3 })
    await story.free("1m")
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v3, v3, v3])
  })

  test("its owner gives the update up: it is released at once", async () => {
    const { story, world } = await begin(refusing(isPodPatch, 403, denied))
    await story.setImage({ web: v2 })
    await story.says("Refused")
    await world.advance("30m")
    await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
    await story.free("30s")
  })

  test("a drained pod that cannot be changed serves again, and is tried at growing intervals", async () => {
    const isImage: Matcher = request => isPodPatch(request) && !request.path.includes("/status")
    const refused = refusing(isImage, 403, denied)
    const annotations = { [settingAnnotations.graceSeconds]: "5" }
    const { story, world } = await begin(refused, { hasGate: true, annotations })
    const from = world.history.length
    await story.setImage({ web: v2 })
    await story.says("Refused")
    await world.advance("30m")
    const isDrained = ({ status }: Json) => status.conditions.some(({ reason }: Json) => reason === "InPlaceUpdate")
    const drained = new Map<string, number>()
    let longest = 0
    for (const { object, at } of world.history.slice(from)) {
      if (object.kind !== "Pod") continue
      const { uid } = object.metadata
      if (isDrained(object)) drained.set(uid, drained.get(uid) ?? at)
      else if (drained.has(uid)) {
        longest = Math.max(longest, at - drained.get(uid)!)
        drained.delete(uid)
      }
    }
    expect(longest).toBeGreaterThan(0)
    expect(longest).toBeLessThan(15_000)
    expect(refused.state.tries).toBeLessThan(15)
    expect(said(story, from).filter(each => each === "Refused")).toHaveLength(1)
    refused.state.isOn = false
    await story.free("30m")
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v2, v2, v2])
  })

  test("the ReplicaSet may not be changed: the reason says so once all pods are done", async () => {
    const isFlip: Matcher = ({ method, path }) => method === "PATCH" && path.includes("/replicasets/")
    const refused = refusing(isFlip, 403, 'replicasets.apps "web" is forbidden: denied')
    const { story } = await begin(refused)
    await story.setImage({ web: v2 })
    expect((await story.says("Refused")).message).toContain('replicasets.apps "web"')
    refused.state.isOn = false
    await story.free()
  })

  test("the record itself may not be written: it is tried at growing intervals", async () => {
    const isWorkload: Matcher = ({ method, path }) => method === "PATCH" && path.includes("/deployments/")
    const refused = refusing(isWorkload, 403, 'deployments.apps "web" is forbidden: denied')
    const { story, world } = await begin(refused)
    await story.setImage({ web: v2 })
    await world.advance("30m")
    expect(refused.state.tries).toBeLessThan(15)
    refused.state.isOn = false
    await story.free()
  })
})

describe("an eviction is refused", () => {
  const budget = (name: string): Json => ({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace: "default" },
    spec: { maxUnavailable: 1, selector: { matchLabels: { app: "web" } } },
  })

  test("because two budgets cover the pod: what the server says is the reason, until one is gone", async () => {
    const story = await inPlaceStory()
    const { world } = story
    await world.apply(budget("one"), budget("two"))
    await world.settle("10s")
    const from = world.history.length
    await story.setImage({ web: v2 })
    const { message } = await story.says("BudgetSpent")
    expect(message).toMatch(/pod web-\S+: .*more than one PodDisruptionBudget/)
    await world.advance("10m")
    expect(said(story, from).filter(each => each === "BudgetSpent")).toHaveLength(1)
    const policies = { ...podResource, group: "policy", plural: "poddisruptionbudgets", kind: "PodDisruptionBudget" }
    await world.client.delete(policies, { name: "two", namespace: "default" })
    await story.free()
  })

  test("a budget that lags behind each pod is not written about", async () => {
    const story = await inPlaceStory({ replicas: 6 })
    const { world } = story
    await world.apply(budget("one"))
    await world.settle("10s")
    const from = world.history.length
    await story.setImage({ web: v2 })
    await story.free()
    expect(said(story, from)).not.toContain("BudgetSpent")
  })
})

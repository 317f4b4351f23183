import { describe, expect, test } from "vitest"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { configMaps } from "#controllers/canary/configs.ts"
import { canaries } from "#controllers/canary/resources.ts"
import { type CanaryStory, canaryStory, uidsOf, v1, v2 } from "#test/support/canary-story.ts"
import { faults, keepAlive } from "./fates.ts"

// Every fault at every write of a run: it ends as without a fault, the pods that were tested are the pods that stay, and
// no other pod was ever made.

/** Of a run with two weights that is promoted, from the adoption on. */
const writes = 60

const imageOf = (pod: Json) => pod.spec.containers[0].image as string

async function expectPromoted(story: CanaryStory, what: string): Promise<void> {
  const { world } = story
  await world.settle("2m")
  const pods = await story.pods()
  const deployment = await story.deployment()
  const { status } = await story.canary()
  expect([what, pods.map(imageOf)]).toEqual([what, [v2, v2, v2]])
  const ever = (kind: string) =>
    new Set(world.history.flatMap(({ object }) => (object.kind === kind ? [object.metadata.uid as string] : [])))
  // Three that ran and three that were tested.
  expect([what, ever("Pod").size, ever("ReplicaSet").size]).toEqual([what, 6, 2])
  expect([what, deployment.status.updatedReplicas, deployment.status.replicas]).toEqual([what, 3, 3])
  expect([what, status.phase, status.canaryWeight, status.run]).toEqual([what, "Succeeded", 0, undefined])
  expect([what, status.history.map(({ result }: Json) => result)]).toEqual([what, ["Promoted"]])
  expect([what, story.weights()]).toEqual([what, [0, 34, 67, 100, 0]])
}

describe("a fault at each write of a run that is promoted", () => {
  const every = process.env.AIM_RUNS === undefined ? 15 : 1
  for (const [index, [name, make]] of Object.entries(faults).entries())
    test(name, async () => {
      const isKill = name === "the process is killed after it"
      const step = isKill ? (process.env.AIM_RUNS === undefined ? 5 : 1) : every
      for (let at = 1 + (index % step); at <= writes; at += step) {
        const story = await canaryStory({ isAlone: true })
        const fate = make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1))
        keepAlive(story.world.clock, given => story.run(given), fate)
        await story.until("Initialized", "1h")
        await story.setImage(v2)
        await story.until("Succeeded", "2h")
        await expectPromoted(story, `${name}: ${at}`)
      }
    })
})

describe("a fault at each write of a deletion in the middle of a run", () => {
  const every = process.env.AIM_RUNS === undefined ? 15 : 1
  for (const [index, [name, make]] of Object.entries(faults).entries())
    test(name, async () => {
      for (let at = 20 + (index % every); at <= 50; at += every) {
        const story = await canaryStory({ isAlone: true })
        const { world } = story
        const fate = make(nth(isDecision, at), world.clock, nth(isDecision, at + 1))
        keepAlive(world.clock, given => story.run(given), fate)
        await story.until("Initialized", "1h")
        const before = uidsOf(await story.pods())
        await story.setImage(v2)
        await world.until("the weight", () => story.weights().includes(34), "1h")
        await story.remove()
        const what = `${name}: ${at}`
        await world.until(`${what}: the Canary is gone`, async () => !(await world.list(canaries)).length, "2h")
        await world.settle("2m")
        const { spec, metadata } = await story.deployment()
        expect([what, uidsOf(await story.pods())]).toEqual([what, before])
        expect([what, imageOf({ spec: spec.template.spec }), spec.paused ?? false]).toEqual([what, v1, false])
        expect([what, Object.keys(metadata.annotations).filter(key => key.startsWith("autoimage"))]).toEqual([what, []])
      }
    })
})

describe("a fault at each write of a run for a change of configuration", () => {
  const settings = (color: string): Json => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings", namespace: "default" },
    data: { color },
  })
  const every = process.env.AIM_RUNS === undefined ? 15 : 1
  for (const [index, [name, make]] of Object.entries(faults).entries())
    test(name, async () => {
      for (let at = 1 + (index % every); at <= 45; at += every) {
        const story = await canaryStory({
          isAlone: true,
          hasPolicy: true,
          container: { envFrom: [{ configMapRef: { name: "settings" } }] },
          objects: [settings("red")],
        })
        const { world } = story
        const fate = make(nth(isDecision, at), world.clock, nth(isDecision, at + 1))
        keepAlive(world.clock, given => story.run(given), fate)
        await story.until("Initialized", "1h")
        await world.settle("1m")
        await world.apply(settings("blue"))
        await story.until("Succeeded", "2h")
        await world.settle("2m")
        const what = `${name}: ${at}`
        const [snapshot, ...others] = (await world.list(configMaps)).filter(({ immutable }) => immutable)
        expect([what, snapshot?.data, others]).toEqual([what, { color: "blue" }, []])
        const read = (await story.pods()).map(({ spec }) => spec.containers[0].envFrom[0].configMapRef.name)
        expect([what, read]).toEqual([what, Array(3).fill(snapshot?.metadata.name)])
        const { status } = await story.canary()
        expect([what, status.history.map(({ result }: Json) => result)]).toEqual([what, ["Promoted"]])
      }
    })
})

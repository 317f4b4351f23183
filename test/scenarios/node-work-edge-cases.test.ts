import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { nodeImages } from "#controllers/imagepulljob/resources.ts"
import { mirrorMark } from "#core/pods/left-alone.ts"
import { core } from "#runtime/resource.ts"
import { host, pullStory } from "#test/support/pull-story.ts"
import { podOf, type Restarts, restarts } from "#test/support/restart-story.ts"

// Edge cases of restarts and pulls, by the numbers of the list that the kinds were designed from.

const pods = core("pods", "Pod")
const readyOf = ({ status }: Json) => status?.conditions?.find(({ type }: Json) => type === "Ready")
const image = `${host}/team/app:v2`
const hourMs = 3_600_000

async function begin(...options: Parameters<typeof restarts>): Promise<Restarts> {
  const story = await restarts(...options)
  story.manager()
  story.agent()
  return story
}

/** A request that is answered within a second, and for which no container is ever stopped. */
async function expectRefused(story: Restarts, podName: string, reason: string, message: string) {
  await story.request("restart", { podName })
  await story.advance("1s")
  expect(readyOf(await story.of("restart"))).toMatchObject({ status: "False", reason, message })
  await story.advance("10m")
  expect(story.stopped()).toEqual([])
}

describe("17. a pod that is terminating", () => {
  const slowEnd = { containers: { app: { isStubborn: true } }, graceSeconds: 60 }
  const remove = ({ client }: Restarts) => client.delete(pods, { name: "web-0", namespace: "default" })

  test("is left alone: its containers are the kubelet's to stop", async () => {
    const story = await begin(slowEnd)
    await remove(story)
    await story.advance("1s")
    await expectRefused(story, "web-0", "PodTerminating", "pod web-0 is being deleted")
  })

  test("ends a request that drains it, and no container is stopped by the agent", async () => {
    const story = await begin({ ...slowEnd, hasGate: true })
    await story.request("restart", { strategy: { unreadyGracePeriodSeconds: 30 } })
    await story.advance("5s")
    await remove(story)
    await story.advance("1s")
    expect(readyOf(await story.of("restart"))).toMatchObject({ status: "False", reason: "PodGone" })
    await story.advance("10m")
    expect(story.stopped()).toEqual([])
  })
})

describe("38. clocks of two machines are never compared", () => {
  for (const [name, clockAheadMs] of Object.entries({ behind: -hourMs, ahead: hourMs })) {
    test(`an agent an hour ${name}: a restart takes as long, and its deadline and its time to live are the manager's`, async () => {
      const story = await restarts({ containers: { app: { isStubborn: true } }, graceSeconds: 10 })
      story.manager()
      story.agent({ clockAheadMs })
      const before = story.clock.now()
      await story.request("restart", { activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 60 })
      expect(readyOf(await story.completed("restart", "30s"))).toMatchObject({ status: "True", reason: "Succeeded" })
      expect(story.clock.now() - before).toBeGreaterThanOrEqual(10_000)
      expect(story.calls).toEqual(["stopContainer app-0 10"])
      await story.advance("55s")
      expect((await story.of("restart")).status.phase).toBe("Completed")
      await story.advance("10s")
      await expect(story.of("restart")).rejects.toThrow("not found")
    })

    test(`an agent an hour ${name}, killed during the stop: the next one gives what is left of the grace period`, async () => {
      const story = await restarts({ containers: { app: { isStubborn: true } }, graceSeconds: 30 })
      story.manager()
      const first = story.agent({ clockAheadMs })
      await story.request("restart")
      await story.until("the stop", () => story.stopped().length === 1)
      await story.advance("10s")
      first.die()
      await story.advance("5s")
      story.agent({ clockAheadMs })
      expect(readyOf(await story.completed("restart")).reason).toBe("Succeeded")
      expect(story.calls).toEqual(["stopContainer app-0 30", "stopContainer app-0 15"])
    })

    test(`an agent an hour ${name}: a pull is waited for and tried again as by any other`, async () => {
      const story = await pullStory({ nodes: 0 })
      await story.addNode("node-0", { agent: false })
      story.runAgent("node-0", { clockAheadMs })
      const before = story.world.clock.now()
      const completionPolicy = { activeDeadlineSeconds: 120 }
      const pullPolicy = { timeoutSeconds: 60, backoffLimit: 3 }
      await story.job("app", { image, pullPolicy, completionPolicy })
      // The image comes after two attempts have failed; the third waits two seconds.
      await story.world.until("two attempts", () => story.pullsOn("node-0").length === 2, "10s")
      story.push(image, { takesMs: 20_000 })
      await story.until("app", "Completed", "1m")
      expect(story.world.clock.now() - before).toBeLessThan(40_000)
      expect(story.tagsOn("node-0")).toEqual([image])
    })
  }
})

test("41. a static pod is refused: its file on the node is what starts it", async () => {
  const story = await begin()
  const pod = podOf({ name: "static-0", containers: { app: {} } })
  await story.apply({ ...pod, metadata: { ...pod.metadata, annotations: { [mirrorMark]: "hash" } } })
  await story.until("it runs", async () => (await story.pod("static-0")).status?.phase === "Running")
  const message = "pod static-0 is static: change or touch its file on the node instead"
  await expectRefused(story, "static-0", "StaticPod", message)
})

describe("42. Windows", () => {
  test("a pod for Windows is refused", async () => {
    const story = await begin()
    const pod = podOf({ name: "win-0", containers: { app: {} } })
    await story.apply({ ...pod, spec: { ...pod.spec, os: { name: "windows" } } })
    await expectRefused(story, "win-0", "WindowsPod", "pod win-0 is for Windows, where no agent runs")
  })

  test("a Windows node gets no NodeImage and no image: it is left out, and named where it was asked for", async () => {
    const story = await pullStory({ nodes: 2 })
    await story.addNode("win-0", { labels: { "kubernetes.io/os": "windows" }, agent: false })
    story.push(image)
    await story.job("all", { image, parallelism: "100%" })
    await story.until("all", "Completed", "10s")
    expect(await story.statusOf("all")).toMatchObject({ desired: 2, succeeded: 2 })
    await story.job("named", { image, selector: { names: ["node-0", "win-0"] } })
    await story.until("named", "NodeUnknown", "10s")
    expect((await story.statusOf("named")).message).toContain("not a Linux node of this cluster: win-0")
    expect((await story.world.list(nodeImages)).map(({ metadata }) => metadata.name)).toEqual(["node-0", "node-1"])
  })
})

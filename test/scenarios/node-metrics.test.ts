import { expect, test } from "vitest"
import { agentControllers } from "#agent/index.ts"
import { crdOf } from "#api/crd.ts"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { createImageListPullJobController } from "#controllers/imagelistpulljob/controller.ts"
import { createImagePullJobController } from "#controllers/imagepulljob/controller.ts"
import { imagePullJobs, nodeImages } from "#controllers/imagepulljob/resources.ts"
import { createNodeImageController } from "#controllers/nodeimage/controller.ts"
import { measured } from "#test/support/measured.ts"
import { type PullStory, pullStory } from "#test/support/pull-story.ts"
import { requests, restarts } from "#test/support/restart-story.ts"

// What the manager and the agents export on /metrics while they work.

async function restartsMeasured(stopsPerMinute = 10) {
  const story = await restarts()
  const manager = measured(story, [createContainerRecreateRequestController()])
  story.run(manager.controllers)
  const agent = measured(
    story,
    agentControllers({ name: "node-a", runtime: story.runtime.connectMounted() }, { stopsPerMinute }),
  )
  return { story, manager, agent, runAgent: () => story.run(agent.controllers) }
}

const both = { containers: [{ name: "app" }, { name: "sidecar" }] }

test("restarts: what is open and waits for the limit, what was stopped, and how requests ended", async () => {
  const { story, manager, agent, runAgent } = await restartsMeasured(1)
  runAgent()
  const before = story.clock.now() / 1000
  await story.request("restart", both)
  await story.advance("10s")
  expect(await agent.shown("agent_stops")).toEqual(["agent_stops_waiting 1", "agent_stops_total{result=Stopped} 1"])
  const [open, oldest, ...more] = await manager.shown("containerrecreaterequest")
  expect(open).toBe("containerrecreaterequest_open{namespace=default,reason=WaitingForLimit} 1")
  expect(oldest).toContain("containerrecreaterequest_oldest_open_timestamp_seconds{namespace=default}")
  expect(Number(oldest!.split(" ")[1])).toBeGreaterThanOrEqual(before)
  expect(more).toEqual([])

  await story.completed("restart")
  await story.advance("1s")
  expect(await agent.shown("agent_stops")).toEqual(["agent_stops_total{result=Stopped} 2"])
  expect(await manager.shown("containerrecreaterequest")).toEqual([
    "containerrecreaterequest_completed_total{reason=Succeeded} 1",
  ])
  expect(await manager.has("containerrecreaterequest_open{")).toBe(false)
})

test("restarts: a missing agent is counted, and a deleted request ends its series", async () => {
  const { story, manager } = await restartsMeasured()
  await story.request("missing")
  await story.completed("missing", "2m")
  await story.request("deleted")
  await story.advance("1s")
  expect(await manager.has("containerrecreaterequest_open{")).toBe(true)
  await story.client.delete(requests, { name: "deleted", namespace: "default" })
  await story.advance("1s")
  expect(await manager.shown("containerrecreaterequest")).toEqual([
    "containerrecreaterequest_completed_total{reason=AgentMissing} 1",
  ])
  expect(await manager.has("containerrecreaterequest_open{")).toBe(false)
  expect(await manager.has("containerrecreaterequest_oldest_open_timestamp_seconds{")).toBe(false)
})

async function pullsMeasured() {
  const story = await pullStory({ nodes: 0 })
  await story.manager.stop()
  await story.world.apply(crdOf(ImageListPullJob) as never)
  const manager = measured(story.world, [
    createImagePullJobController(),
    createNodeImageController(),
    createImageListPullJobController(),
  ])
  const process = story.world.run(manager.controllers)
  return { story, manager, process }
}

function measuredAgent({ world, runtime }: PullStory, name: string) {
  const simulated = runtime(name)
  const disk = async () => simulated.images.disk.statfs()
  const agent = measured(world, agentControllers({ name, runtime: simulated.connectMounted(), disk }))
  world.run(agent.controllers)
  return agent
}

const image = "registry.example.com/team/app:v2"

test("pulls: nodes by state while a job runs, attempts by result, bytes, and how jobs ended", async () => {
  const { story, manager } = await pullsMeasured()
  await story.addNode("node-0", { agent: false })
  const agent = measuredAgent(story, "node-0")
  story.push(image, { takesMs: 20_000 })
  await story.job("app", { image })
  await story.world.advance("10s")
  expect(await agent.shown("agent_")).toEqual(["agent_pulls_in_progress 1", "agent_images{phase=Pulling} 1"])
  expect(await manager.shown("imagepulljob")).toEqual([
    "imagepulljob_jobs{namespace=default,reason=Pulling} 1",
    "imagepulljob_nodes{namespace=default,state=Active} 1",
  ])
  expect(await manager.shown("registry")).toEqual(["registry_pulls_in_flight{registry=registry.example.com} 1"])

  await story.until("app", "Completed")
  await story.world.advance("1s")
  expect(await agent.shown("agent_")).toEqual([
    "agent_pulls_total{result=Present} 1",
    "agent_pulled_bytes_total 20000000",
    "agent_images{phase=Succeeded} 1",
  ])
  expect(await manager.shown("imagepulljob")).toEqual(["imagepulljob_completed_total{reason=Completed} 1"])
  expect(await manager.has("imagepulljob_nodes{")).toBe(false)

  await story.job("absent", { image: "registry.example.com/team/none:1", pullPolicy: { backoffLimit: 1 } })
  await story.until("absent", "BackoffLimitExceeded")
  expect(await agent.shown("agent_pulls_total")).toEqual([
    "agent_pulls_total{result=Present} 1",
    "agent_pulls_total{result=NotFound} 2",
  ])
})

test("pulls: an agent whose NodeImage is gone counts no images", async () => {
  const { story, process } = await pullsMeasured()
  await story.addNode("node-0", { agent: false })
  const agent = measuredAgent(story, "node-0")
  story.push(image)
  await story.job("app", { image })
  await story.until("app", "Completed")
  await story.world.advance("1s")
  expect(await agent.shown("agent_images")).toEqual(["agent_images{phase=Succeeded} 1"])
  process.die()
  await story.world.client.delete(nodeImages, { name: "node-0" })
  await story.world.advance("1s")
  expect(await agent.shown("agent_images")).toEqual([])
  expect(await agent.has("agent_images{")).toBe(true)
})

test("pulls: a missing agent is counted, a deleted job ends its series, and so does a list", async () => {
  const { story, manager } = await pullsMeasured()
  story.push(image)
  await story.addNode("node-0", { agent: false })
  const { apiVersion, kind } = ImageListPullJob
  const metadata = { name: "list", namespace: "default" }
  await story.world.apply({ apiVersion, kind, metadata, spec: { images: [image] } })
  await story.world.advance("30s")
  expect(await manager.shown("imagelistpulljob")).toEqual([
    "imagelistpulljob_lists{namespace=default,reason=Pulling} 1",
  ])
  await story.world.advance("1m")
  expect(await manager.shown("image")).toEqual([
    "imagepulljob_completed_total{reason=BackoffLimitExceeded} 1",
    "imagepulljob_agents_missing_total 1",
    "imagelistpulljob_completed_total{reason=ImagesFailed} 1",
  ])

  await story.job("paused", { image, parallelism: 0 })
  await story.until("paused", "Paused")
  expect(await manager.shown("imagepulljob_jobs")).toEqual(["imagepulljob_jobs{namespace=default,reason=Paused} 1"])
  await story.world.client.delete(imagePullJobs, { name: "paused", namespace: "default" })
  await story.world.advance("1s")
  expect(await manager.has("imagepulljob_jobs{")).toBe(false)
  expect(await manager.has("imagepulljob_nodes{")).toBe(false)
})

import { expect, test } from "vitest"
import { agentControllers, usualLimits } from "#agent/index.ts"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { everyPart, type Json, openRegistries } from "#cluster-sim/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { core, resourceOf } from "#runtime/resource.ts"
import { deployment } from "#test/support/failover-story.ts"
import { about, type Story } from "#test/support/rollout-story.ts"
import { scenario } from "#test/support/scenario.ts"

// Containers that are restarted by request while their tier settles. The image ignores SIGTERM, so each ends with 137.

const host = "registry.example.com"
const image = (tag: string) => `${host}/web:${tag}`
const pods = core("pods", "Pod")
const requests = resourceOf(ContainerRecreateRequest)
const target = { apiVersion: "apps/v1", kind: "Deployment", image: { container: "basic-demo" } }
const settleSeconds = 60

type Shop = Story & { pod(): Promise<Json>; restart(name: string): Promise<void> }

/** One Deployment that was just brought to v2 and settles. */
async function settling({ hasKind = true } = {}): Promise<Shop> {
  const registries = openRegistries(0)
  for (const tag of ["v1", "v2"]) registries.push(image(tag), { ignoresTerm: true })
  registries.push(image("crash"), { exits: { afterMs: 1000, exitCode: 137 } })
  const world = await scenario({ parts: everyPart({ nodes: [{ name: "node-a" }], registries }) })
  await world.apply(crdOf(ServiceImage) as Json)
  if (hasKind) await world.apply(crdOf(ContainerRecreateRequest) as Json)
  await world.advance("1s")
  const pod = { terminationGracePeriodSeconds: 2 }
  await world.apply(deployment("web-1", image("v1"), { spec: { replicas: 1 }, pod }))
  const { runtime } = world.cluster.node("node-a")!
  if (hasKind) {
    world.run([createContainerRecreateRequestController()])
    const node = { name: "node-a", runtime: runtime.connectMounted() }
    world.run(agentControllers(node, { stopsPerMinute: usualLimits.stopsPerMinute }))
  }
  const process = world.run([createServiceImageController()])
  const tiers = [{ upgradeTier: "", settleSeconds }]
  await world.apply({
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "dicom" },
    spec: { target, defaultImage: image("v1"), tiers, pace: { podsPerSecond: 0 } },
  })
  const story = about(world, process)
  await story.complete()
  await story.change({ defaultImage: image("v2") })
  await story.until("Complete", "Settling")
  const alive = async () =>
    (await world.list(pods)).filter(({ metadata, status }) => !metadata.deletionTimestamp && status.phase === "Running")
  return {
    ...story,
    pod: async () => (await alive())[0]!,
    async restart(name) {
      const { metadata } = (await alive())[0]!
      const spec = { podName: metadata.name, containers: [{ name: "basic-demo" }] }
      const { apiVersion, kind } = ContainerRecreateRequest
      await world.apply({ apiVersion, kind, metadata: { name, namespace: metadata.namespace }, spec })
      const isComplete = async () => (await world.get(requests, name, metadata.namespace)).status?.phase === "Completed"
      await world.until(`request ${name} to be complete`, isComplete, "10m")
    },
  }
}

const failuresEver = (story: Shop) =>
  story.statuses().flatMap(({ tierStatus = [] }) => tierStatus.flatMap(({ failures }: Json) => failures))

test("a container that is restarted by request three times while its tier settles does not fail it", async () => {
  const story = await settling()
  for (const name of ["one", "two", "three"]) await story.restart(name)
  const [container] = (await story.pod()).status.containerStatuses
  expect(container).toMatchObject({ restartCount: 3, lastState: { terminated: { exitCode: 137 } } })
  await story.complete()
  expect(failuresEver(story)).toEqual([])
  expect(await story.events()).not.toContain("AllFailed")
})

test("a container that exits with the same code by itself fails it, with and without the kind of requests", async () => {
  for (const hasKind of [true, false]) {
    const story = await settling({ hasKind })
    await story.change({ defaultImage: image("crash") })
    await story.until("Halted", "AllFailed")
    expect((await story.tier("")).failures).toMatchObject([{ reason: "CrashLoop", count: 1 }])
  }
})

test("a crash loop after a requested restart is one", async () => {
  const story = await settling()
  await story.restart("one")
  const { runtime } = story.world.cluster.node("node-a")!
  const isHalted = async () => (await story.condition("Halted")) !== undefined
  // Its containers are killed outside of Kubernetes, as a lack of memory does it.
  for (let kills = 0; kills < 3 && !(await isHalted()); kills++) {
    const before = (await story.pod()).status.containerStatuses[0].restartCount
    const [running] = [...runtime.containers.all()].filter(({ state }) => state === "running")
    await runtime.connectMounted().stopContainer(running!.id, { graceSeconds: 0 })
    const hasEnded = async () => {
      const { restartCount, state } = (await story.pod()).status.containerStatuses[0]
      return (await isHalted()) || (restartCount > before && state.running)
    }
    await story.world.until("its end is seen", hasEnded, "10m")
  }
  expect(await story.condition("Halted")).toMatchObject({ reason: "AllFailed" })
})

import { expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { canaryController } from "#controllers/canary/controller.ts"
import { canaries, deployments, pods, services } from "#controllers/canary/resources.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import { uidsOf } from "#test/support/canary-story.ts"
import { application, service, throughGateway, trafficStory } from "#test/support/traffic.ts"

// A Canary whose target is a Service: its owner runs both versions, and a change of what the Service selects is proven.

const image = (version: number) => `registry.example.com/web:${version}`

/** A Deployment whose pods have a label that tells the version. */
function versionOf(version: number): Json {
  const labels = { app: "web", version: `v${version}` }
  const made = application(`web-v${version}`, { image: image(version), replicas: 2 })
  const { spec } = made
  return {
    ...made,
    spec: { ...spec, selector: { matchLabels: labels }, template: { ...spec.template, metadata: { labels } } },
  }
}

async function story(spec: Partial<CanarySpecInput> & Json = {}) {
  const told = await trafficStory({ versions: {} })
  const { world } = told
  await world.apply(crdOf(Canary) as Json, versionOf(1), versionOf(2), service("web", { app: "web", version: "v1" }))
  const areReady = async () => (await world.list(deployments)).every(({ status }) => status?.availableReplicas === 2)
  await world.until("pods are ready", areReady, "5m")
  const says = { isGood: true }
  const verdict = () =>
    says.isGood
      ? { name: "rate", verdict: "Good" as const, value: 100 }
      : { name: "rate", verdict: "Bad" as const, value: 1, why: "1 is below 99" }
  world.run([canaryController({ routerOf, measuring: () => ({ checksOf: () => [verdict()] }) })])
  await world.apply({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "web", namespace: "default" },
    spec: {
      targetRef: { apiVersion: "v1", kind: "Service", name: "web" },
      provider: "gatewayapi:v1",
      service: { port: 80, hosts: ["web.example.com"], gatewayRefs: [{ name: "gateway", namespace: "default" }] },
      analysis: { interval: "1m", threshold: 2, stepWeights: [20, 50], metrics: [{ name: "rate", query: "1" }] },
      ...spec,
    },
  })
  const canary = () => world.get(canaries, "web", "default")
  const until = (phase: string) =>
    world
      .until(`the Canary is ${phase}`, async () => (await canary()).status?.phase === phase, "30m")
      .catch(async error => {
        throw new Error(`${error.message}; it is ${JSON.stringify((await canary()).status)}`)
      })
  const select = (version: number) =>
    world.patch(services, "web", { spec: { selector: { app: "web", version: `v${version}` } } }, "default")
  const selectorOf = async (name: string) => (await world.get(services, name, "default")).spec.selector.version
  return { ...told, says, canary, until, select, selectorOf }
}

/** The shares of the target that the route ever had, in order. */
function weightsIn(history: readonly { object: Json }[]): number[] {
  const all = history.flatMap(({ object }) => {
    if (object.kind !== "HTTPRoute") return []
    const backends = object.spec.rules.flatMap(({ backendRefs = [] }: Json) => backendRefs)
    return [backends.findLast(({ name }: Json) => name === "web-canary")?.weight ?? 0]
  })
  return all.filter((weight, index) => weight !== all[index - 1])
}

test("a change of the selector gets requests step by step, no request fails, and no pod is touched", async () => {
  const { world, traffic, until, select, selectorOf, canary } = await story()
  await until("Initialized")
  const before = uidsOf(await world.list(pods))
  await world.settle("10s")
  expect([await selectorOf("web-primary"), await selectorOf("web-canary")]).toEqual(["v1", "v1"])
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await world.advance("30s")
  await select(2)
  await world.until("a fifth", async () => (await canary()).status.canaryWeight === 20, "5m")
  expect([await selectorOf("web-primary"), await selectorOf("web-canary")]).toEqual(["v1", "v2"])
  await until("Succeeded")
  await world.advance("1m")
  const { failures, errors } = clients.record()
  expect({ failures, errors }).toEqual({ failures: [], errors: 0 })
  expect(weightsIn(world.history)).toEqual([0, 20, 50, 100, 0])
  expect([await selectorOf("web-primary"), await selectorOf("web-canary")]).toEqual(["v2", "v2"])
  expect((await canary()).status.history[0]).toMatchObject({ result: "Promoted" })
  expect(uidsOf(await world.list(pods))).toEqual(before)
})

test("a bad one is caught: requests go back to what was promoted, and the Service stays as its owner wrote it", async () => {
  const { world, traffic, says, until, select, selectorOf, canary } = await story()
  await until("Initialized")
  await world.settle("10s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  says.isGood = false
  await select(2)
  await until("Failed")
  await world.advance("2m")
  expect(clients.record().failures).toEqual([])
  expect(weightsIn(world.history)).toEqual([0, 20, 0])
  expect(await Promise.all(["web", "web-primary", "web-canary"].map(selectorOf))).toEqual(["v2", "v1", "v1"])
  const stalled = (await canary()).status.conditions.find(({ type }: Json) => type === "Stalled")
  expect(stalled.reason).toBe("Rejected")
  // Back to what runs, and then good.
  await select(1)
  await world.settle("1m")
  says.isGood = true
  await select(2)
  await world.settle("1m")
  expect((await canary()).status.phase).toBe("Failed")
})

test("changed in the middle of a run: the run ends, and nothing is left of it", async () => {
  const { world, until, select, selectorOf, canary } = await story()
  await until("Initialized")
  await select(2)
  await world.until("a fifth", async () => (await canary()).status.canaryWeight === 20, "5m")
  await select(1)
  await until("Initialized")
  await world.settle("1m")
  expect(weightsIn(world.history)).toEqual([0, 20, 0])
  expect((await canary()).status.history[0]).toMatchObject({ result: "Cancelled", reason: "Reverted" })
  expect(await selectorOf("web-canary")).toBe("v1")
})

for (const revertOnDeletion of [false, true])
  for (const at of [20, 100])
    test(`deleted at weight ${at}${revertOnDeletion ? ", with revertOnDeletion" : ""}: no request fails`, async () => {
      const { world, traffic, until, select, selectorOf, canary } = await story({ revertOnDeletion })
      await until("Initialized")
      await world.settle("10s")
      const clients = traffic.send({ perSecond: 20, through: throughGateway })
      await select(2)
      await world.until("the weight", async () => weightsIn(world.history).includes(at), "10m")
      const { uid } = (await canary()).metadata
      const gone = world.client.delete(canaries, { name: "web", namespace: "default" }, { uid })
      await world.until("the Canary is gone", async () => !(await world.list(canaries)).length, "10m")
      await gone
      // With the route gone, its clients have no way.
      const { failures } = clients.record()
      clients.stop()
      await world.settle("1m")
      const names = (await world.list(services)).map(({ metadata }) => metadata.name).filter(each => /^web/.test(each))
      if (revertOnDeletion) expect(names).toEqual(["web"])
      else {
        expect(failures).toEqual([])
        expect(weightsIn(world.history).at(-1)).toBe(0)
        expect(names.sort()).toEqual(["web", "web-canary", "web-primary"])
        expect(await selectorOf("web-primary")).toMatch(at === 20 ? /^v1$/ : /^v[12]$/)
      }
      expect(await selectorOf("web")).toBe("v2")
    })

test("a Service alone cannot divide its own requests: the Canary says what to write", async () => {
  const { world, canary } = await story({ provider: "kubernetes", service: { port: 80 } })
  const stalled = async () => (await canary()).status?.conditions?.find(({ type }: Json) => type === "Stalled")
  await world.until("it is refused", async () => (await stalled())?.reason === "NotSupported", "1m")
  expect((await stalled()).message).toContain("gatewayapi:v1")
})

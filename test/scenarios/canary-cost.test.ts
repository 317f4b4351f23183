import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createCanaryController } from "#controllers/canary/controller.ts"
import { canaries, deployments } from "#controllers/canary/resources.ts"
import { canaryHold } from "#policies/canary-hold.ts"
import { countRequests } from "#test/support/counted-requests.ts"
import { application, trafficStory } from "#test/support/traffic.ts"

// What a Canary asks of the server, as `aim controller` makes it: with its own routers, and the policy that holds.

const v1 = "registry.example.com/web:1"
const v2 = "registry.example.com/web:2"

async function story(spec: Partial<CanarySpecInput>, { hasPolicy = true } = {}) {
  const { world } = await trafficStory()
  await world.apply(...[Canary, MetricTemplate, AlertProvider].map(kind => crdOf(kind) as Json))
  if (hasPolicy) await world.apply(...(policyManifests(canaryHold) as Json[]))
  await world.apply(application("web", { image: v1, replicas: 3 }))
  const requests = countRequests()
  world.run([createCanaryController({})], { leaderElect: true, faults: [requests.fault] })
  await world.apply({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "web", namespace: "default" },
    spec: {
      targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      provider: "gatewayapi:v1",
      service: { port: 80, targetPort: 8080, hosts: ["web.example.com"], gatewayRefs: [{ name: "gateway" }] },
      ...spec,
    },
  })
  const until = (phase: string) =>
    world.until(
      `the Canary is ${phase}`,
      async () => (await world.get(canaries, "web", "default")).status?.phase === phase,
    )
  await until("Initialized")
  await world.settle("1m")
  requests.taken()
  return {
    world,
    requests,
    /** A run, and what it asked for until nothing moves any more. */
    async promoted() {
      const template = { spec: { containers: [{ name: "web", image: v2 }] } }
      await world.patch(deployments, "web", { spec: { template } }, "default")
      await until("Succeeded")
      await world.settle("1m")
      return requests.taken()
    },
  }
}

const minute = { interval: "1m", threshold: 2 }

describe("a run", () => {
  type Case = { spec: Partial<CanarySpecInput>; steps: number; hasPolicy?: boolean }
  const cases: Record<string, Case> = {
    "by weights": { spec: { analysis: { ...minute, stepWeights: [20, 50] } }, steps: 2 },
    "by weights, where no policy holds": {
      spec: { analysis: { ...minute, stepWeights: [20, 50] } },
      steps: 2,
      hasPolicy: false,
    },
    "by five weights": { spec: { analysis: { ...minute, stepWeight: 10, maxWeight: 50 } }, steps: 5 },
    "by one iteration": { spec: { analysis: { ...minute, iterations: 1 } }, steps: 1 },
    "without analysis": { spec: { analysis: { ...minute, iterations: 1 }, skipAnalysis: true }, steps: 0 },
    "without a gateway": {
      spec: { provider: "kubernetes", service: { port: 80 }, analysis: { ...minute, iterations: 1 } },
      steps: 1,
    },
  }
  for (const [name, { spec, steps, hasPolicy }] of Object.entries(cases))
    test(`${name}: 18 writes and 2 for each step, and nothing is read`, async () => {
      const { promoted } = await story(spec, { ...(hasPolicy !== undefined && { hasPolicy }) })
      const { writes, reads } = await promoted()
      expect(reads).toEqual([])
      expect({ writes, most: writes.length <= 18 + 2 * steps }).toMatchObject({ most: true })
    })
})

test("a Canary at rest asks for nothing but its watches, when they end", async () => {
  const { world, requests, promoted } = await story({ analysis: { ...minute, stepWeights: [20, 50] } })
  await promoted()
  await world.advance("20m")
  const { writes, reads, watches } = requests.taken()
  expect({ writes, reads }).toEqual({ writes: [], reads: [] })
  // Each is opened again within ten minutes.
  expect(watches).toBeGreaterThan(20)
})

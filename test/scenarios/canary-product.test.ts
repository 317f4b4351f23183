import { expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { gatewayApiDefinitions } from "#cluster-sim/gateway-api/definitions.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createCanaryController } from "#controllers/canary/controller.ts"
import { canaries, deployments } from "#controllers/canary/resources.ts"
import { host, pullStory } from "#test/support/pull-story.ts"
import { application } from "#test/support/traffic.ts"

// The controller of a Canary as `aim controller` makes it, with its real routers and its own way out.

test("a cluster without HTTPRoutes is reported and not asked for them; once it serves them, the Canary goes on", async () => {
  const { world, push } = await pullStory({ nodes: 2 })
  const image = `${host}/web:1`
  push(image)
  await world.apply(...[Canary, MetricTemplate, AlertProvider].map(kind => crdOf(kind) as Json))
  await world.apply(application("web", { image, replicas: 2 }))
  const web = () => world.get(deployments, "web", "default")
  await world.until("pods are ready", async () => (await web()).status?.availableReplicas === 2, "5m")
  const asked: string[] = []
  world.run([createCanaryController({})], {
    faults: [
      next => ({
        ...next,
        send(request) {
          if (request.path.includes("/httproutes")) asked.push(request.path)
          return next.send(request)
        },
      }),
    ],
  })
  await world.apply({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "web", namespace: "default" },
    spec: {
      targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      service: { port: 80, targetPort: 8080, hosts: ["web.example.com"], gatewayRefs: [{ name: "gateway" }] },
      analysis: { interval: "1m", threshold: 2, stepWeight: 20 },
    },
  })
  const condition = async (wanted: string) => {
    const { status } = await world.get(canaries, "web", "default")
    return (status?.conditions ?? []).find(({ type }: Json) => type === wanted) ?? {}
  }
  await world.until("it is reported", async () => (await condition("Stalled")).reason === "RouteMissing", "1m")
  expect((await condition("Stalled")).message).toContain("does not serve HTTPRoute of gateway.networking.k8s.io/v1")
  await world.settle("1m")
  expect(asked).toEqual([])

  await world.apply(...gatewayApiDefinitions)
  // There is no gateway that would accept the route: so far, and no further.
  await world.until("it goes on", async () => (await condition("Ready")).reason === "NotAccepted", "2m")
  expect(await condition("Stalled")).toMatchObject({ status: "False" })
})

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { conditionOf, createServiceImage, installKinds, isComplete, serviceImagePath } from "#test/support/fleet.ts"
import { floor, type Json, onRealNode, quickEnd, realNode, until } from "#test/support/floor.ts"
import { beginPulls, nodeAnswer, startAgent, startRollouts } from "#test/support/real-pulls.ts"
import { type Registry, startRegistry } from "#test/support/registries.ts"

// A tier waits on the real node: the test asks containerd itself whether the image is there, and the kubelet's own event
// says that it had nothing to pull.

let registry: Registry

beforeAll(async () => {
  await installKinds()
  registry = await startRegistry()
})
afterAll(async () => {
  await floor().kubectlRun("delete", "nodeimages", "--all")
  await registry?.close()
})

test("a Deployment is stamped when its image is on the real node; an image that is missing holds it", async () => {
  const { api, kubectlRun } = floor()
  const { namespace } = await beginPulls()
  await startAgent(namespace)
  await startRollouts(namespace)
  const image = (tag: string) => `${registry.address}/${namespace}/app:${tag}`
  await registry.push(`${namespace}/app:1`)
  await registry.push(`${namespace}/app:2`, { paddingBytes: 2_000_000 })
  const labels = { app: "web", fleet: namespace }
  await api.create(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
    metadata: { name: "web", labels },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { ...onRealNode, ...quickEnd, containers: [{ name: "app", image: image("1") }] },
      },
    },
  })
  const imageNow = async () => {
    const { spec } = await api.get(`/apis/apps/v1/namespaces/${namespace}/deployments/web`)
    return spec.template.spec.containers[0].image
  }
  await createServiceImage(namespace, {
    target: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      selector: { matchLabels: { fleet: namespace } },
      image: { container: "app" },
    },
    defaultImage: image("1"),
    preCache: "BeforeTier",
    preCacheTimeoutSeconds: 300,
  })
  const serviceImage = (): Promise<Json> => api.get(serviceImagePath(namespace))
  const change = (spec: Json) => api.patch(serviceImagePath(namespace), { spec })
  /** Waits until a condition has this reason and a message with these words, and returns the message. */
  const says = (type: string, reason: string, words = ""): Promise<string> =>
    until(`${type} says ${reason}: ${words}`, async () => {
      const condition = conditionOf(await serviceImage(), type)
      return condition?.reason === reason && condition.message.includes(words) && condition.message
    })
  const complete = () => until("it is complete", async () => isComplete(await serviceImage()))
  await complete()

  const release = registry.holdLayers()
  onTestFinished(release)
  await change({ defaultImage: image("2") })
  expect(await says("Complete", "PreCaching", "Pulling")).toBe(
    `default tier: 1 image on 0 of 1 node; ${realNode} (Pulling)`,
  )
  expect([await imageNow(), await nodeAnswer(image("2"))]).toEqual([image("1"), undefined])
  release()
  await until("it is stamped", async () => (await imageNow()) === image("2"))
  expect(await nodeAnswer(image("2"))).toBeDefined()
  await complete()
  const told = await until("the kubelet's event", async () => {
    const printed = await kubectlRun("get", "events", "-n", namespace, "-o", "jsonpath={.items[*].message}")
    return printed.includes(`image "${image("2")}"`) && printed
  })
  expect(told).toContain(`Container image "${image("2")}" already present on machine`)

  await change({ defaultImage: image("3"), preCacheTimeoutSeconds: 5 })
  expect(await says("Halted", "PreCacheIncomplete", "NotFound")).toBe(
    `default tier: ${image("3")} is not on 1 of 1 node: ${realNode} (NotFound), after 5s`,
  )
  expect(conditionOf(await serviceImage(), "Stalled")).toMatchObject({ status: "True", reason: "PreCacheIncomplete" })
  expect([await imageNow(), await nodeAnswer(image("3"))]).toEqual([image("2"), undefined])
  // It heals by itself: the node tries again.
  await registry.push(`${namespace}/app:3`)
  await complete()
  expect(await imageNow()).toBe(image("3"))
  const jobs = `/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/imagepulljobs`
  await until("its jobs are gone", async () => (await api.get(jobs)).items.length === 0)
})

import { expect, test } from "vitest"
import { countRequests } from "#test/support/counted-requests.ts"
import { deployments, judgedTierStory, v1, v3 } from "#test/support/judged-tier-story.ts"
import { application } from "#test/support/traffic.ts"

// What Complete says of Services that still lead to an old image.

test("Complete names a Service that leads to another version, and takes it back when it no longer does", async () => {
  const counted = countRequests()
  const { world, setImage, is, condition, get } = await judgedTierStory({
    tier: { analysis: undefined },
    spec: {
      target: {
        apiVersion: "apps/v1",
        kind: "Deployment",
        image: { container: "web" },
        selector: { matchExpressions: [{ key: "upgrade-tier", operator: "Exists" }] },
      },
    },
    isUsed: false,
    faults: [counted.fault],
  })
  const listed = () => counted.taken().reads.filter(each => each.includes("endpointslices"))
  await world.advance("10m")
  // One look at a rollout that is well.
  expect(listed()).toEqual(["GET endpointslices"])
  expect((await get()).status).not.toHaveProperty("oldEndpoints")

  // A Deployment that no ServiceImage selects, behind the Service of one that it does.
  const leftover = application("late-1", { image: v1, replicas: 1 })
  leftover.metadata.name = "leftover"
  leftover.spec.selector.matchLabels.leftover = "yes"
  leftover.spec.template.metadata.labels.leftover = "yes"
  await world.apply(leftover)
  await setImage(v3)
  await world.until("v3 everywhere", is("Complete"), "10m")
  const says = async () => (await condition("Complete")).message
  await world.until("it is said", async () => (await says()).includes("Service"), "1m")
  expect(await says()).toMatch(
    /^4 of 4 objects are up to date; a Service leads to 1 pod with another version \(default\/late-1 to default\/leftover-\S+ with \S+web:1\) at 2026-\S+Z$/,
  )
  expect((await get()).status.oldEndpoints).toMatchObject({ pods: 1 })
  expect(await condition("Ready")).toMatchObject({ status: "True" })

  await world.client.delete(deployments, { name: "leftover", namespace: "default" })
  await world.until("it is taken back", async () => !(await says()).includes("Service"), "1h")
  expect((await get()).status).not.toHaveProperty("oldEndpoints")
  listed()
  await world.advance("2h")
  expect(listed()).toEqual([])
})

test("where it stays, it is looked at less and less, and not for ever", async () => {
  const counted = countRequests()
  const { world, condition } = await judgedTierStory({
    tier: { analysis: undefined, image: v3 },
    isUsed: false,
    faults: [counted.fault],
  })
  const names = { name: "late-1", namespace: "default" }
  const manual = { metadata: { annotations: { "autoimagemanager.io/manually-specified-image": "true" } } }
  await world.patch(deployments, names.name, manual, names.namespace)
  const image = { name: "web", image: "registry.example.com/web:0" }
  await world.patch(deployments, names.name, { spec: { template: { spec: { containers: [image] } } } }, names.namespace)
  await world.advance("1s")
  counted.taken()
  await world.patch(deployments, "late-2", { metadata: { labels: { "upgrade-tier": "early" } } }, "default")
  await world.until("it is said", async () => (await condition("Complete")).message.includes("Service"), "10m")
  await world.advance("9h")
  const reads = counted.taken().reads.filter(each => each.includes("endpointslices"))
  expect(reads.length).toBeGreaterThan(3)
  expect(reads.length).toBeLessThan(15)
  expect((await condition("Complete")).message).toContain("with another version")
})

import { expect, test } from "vitest"
import { answer, type Fault, isWatch } from "#cluster-sim/faults/faults.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import type { Request } from "#runtime/client/transport.ts"
import { deployment, failover, hub, pushEverywhere, quay, source } from "#test/support/failover-story.ts"

// What is read of a cluster so that registries may fail, and when.

/** The resources that are being watched. */
function watched() {
  const watches: Request[] = []
  const fault: Fault = next => ({
    ...next,
    send(request) {
      if (isWatch(request)) watches.push(request)
      return next.send(request)
    },
  })
  const now = () =>
    [
      ...new Set(watches.filter(({ signal }) => !signal.aborted).map(({ path }) => path.replace(/\?.*|.*\//g, ""))),
    ].sort()
  return { fault, now }
}

const always = ["alternateimagesources", "clusterrolebindings", "rolebindings"]
const withSources = ["cronjobs", "daemonsets", "deployments", "jobs", "pods", "replicasets", "statefulsets"]

test("without an AlternateImageSource, workloads and pods are not watched", async () => {
  const { world, controller, untilRunning } = await failover({
    isIdle: true,
    description: "registries: {quay.io: {fault: refused}}",
  })
  const { fault, now } = watched()
  world.run([controller()], { faults: [fault] })
  await world.advance("10s")
  expect(now()).toEqual(always)

  await world.apply(source(), deployment("web", `${quay}:1`))
  expect(await untilRunning(3)).toEqual([`${hub}:1`, `${hub}:1`, `${hub}:1`])
  expect(now()).toEqual([...always, ...withSources].sort())

  await world.client.delete(alternateImageSources, { name: "demo", namespace: "default" })
  await world.advance("10s")
  expect(now()).toEqual(always)

  await world.apply(source({}, { name: "again" }), deployment("more", `${quay}:1`))
  await untilRunning(6)
  expect(now()).toEqual([...always, ...withSources].sort())
})

test("what may not be listed is said, and forgotten when it may", async () => {
  const { world, controller, registries, untilRunning, untilReason, condition, status } = await failover({
    isIdle: true,
  })
  pushEverywhere(registries, "1")
  let isRefused = true
  const isPodList = ({ method, path }: Request) => method === "GET" && path.startsWith("/api/v1/pods")
  const refuse = answer(request => isRefused && isPodList(request), 403, { reason: "Forbidden" })
  world.run([controller()], { faults: [refuse] })
  await world.apply(source(), deployment("web", `${quay}:1`))
  await untilReason("ListFailed")
  expect(await condition("Ready")).toMatchObject({ status: "False", message: expect.stringContaining("pods") })
  expect(await condition("Stalled")).toMatchObject({ status: "True", reason: "ListFailed" })
  const { resourceVersion } = await world.get(alternateImageSources, "demo", "default").then(({ metadata }) => metadata)
  await world.advance("10m")
  expect((await world.get(alternateImageSources, "demo", "default")).metadata.resourceVersion).toBe(resourceVersion)

  isRefused = false
  await untilRunning(3)
  await untilReason("Watching")
  expect(await condition("Stalled")).toMatchObject({ status: "False", reason: "NothingToDo" })
  expect((await status()).targets).toBe(1)
})

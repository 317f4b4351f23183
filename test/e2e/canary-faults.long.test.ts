import { describe, expect, test } from "vitest"
import { expectHandOversHarmless } from "#test/support/canary-stall.ts"
import { useAddOns } from "#test/support/data-planes.ts"
import { floor, type Json, until } from "#test/support/floor.ts"
import {
  byRoute,
  expectAnswered,
  openShop,
  pushVersion,
  successRate,
  uidsOf,
  useCanaries,
  versionsIn,
} from "#test/support/real-canary.ts"

// What goes wrong during a run, and what changes: requests are answered all the same.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

const metrics = [successRate]
const byWeights = (weights: number[]) => byRoute({ stepWeights: weights, metrics })

describe.concurrent("a version that is no good", () => {
  const bad: Record<string, { env: Record<string, string>; reason: string; metrics?: object[] }> = {
    "ends again and again": { env: { CRASH_AFTER: "1s", START_DELAY: "1m" }, reason: "CrashLoop" },
    "is slow": {
      env: { LATENCY: "800ms" },
      reason: "AnalysisFailed",
      metrics: [{ name: "request-duration", thresholdRange: { max: 500 } }],
    },
  }
  for (const [name, { env, reason, metrics: own }] of Object.entries(bad))
    test(`${name}: requests stay with the one that runs`, async ({ onTestFinished }) => {
      const shop = await openShop(onTestFinished, { isRouted: true })
      const spec = own ? byRoute({ stepWeights: [20], metrics: own as never }) : byWeights([20])
      await shop.create(spec)
      await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
      const before = uidsOf(await shop.pods())
      const clients = shop.clients()
      await clients.more()
      const tag = name.replaceAll(" ", "-")
      const reference = await pushVersion(tag, env)
      await shop.kubectl("set", "image", "deploy/shop", `shop=${reference}`)
      expect(await shop.untilEnded(0)).toMatchObject({ result: "RolledBack", reason })
      await until("its pods are gone", async () => (await shop.pods()).length === 2)
      expect(uidsOf(await shop.pods())).toEqual(before)
      await clients.more()
      expectAnswered(await clients.stop())
    })
})

describe.concurrent("the target changes", () => {
  test("during the run, and while it is promoted: the last change is what runs", async ({ onTestFinished }) => {
    const shop = await openShop(onTestFinished, { isRouted: true })
    await shop.create(byWeights([20]))
    await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
    const clients = shop.clients()
    await clients.more()
    await shop.setVersion("v2")
    await shop.until("v2 has requests", ({ status }) => status.run?.weight === 20)
    await shop.setVersion("v3")
    expect(await shop.untilStarted(1)).toMatchObject({ result: "Superseded", reason: "Restarted" })
    await shop.until("v3 is promoted", ({ status }) => status.phase === "Promoting" || status.phase === "Finalising")
    await shop.setVersion("v2")
    await shop.until("the last is promoted", async ({ status }) => {
      const [pod] = await shop.pods()
      return status.phase === "Succeeded" && !status.run && pod?.spec.containers[0].image.endsWith(":v2")
    })
    await until("all others are gone", async () => (await shop.pods()).length === 2)
    await clients.more()
    const results = await clients.stop()
    expectAnswered(results)
    expect(versionsIn(results)).toEqual(["v1", "v2", "v3"])
    expect(await shop.kubectl("rollout", "status", "deploy/shop", "--timeout=60s")).toContain("successfully")
  })
})

test.concurrent("an autoscaler wants more pods during the run: both revisions get them, and it is as before afterwards", async ({
  onTestFinished,
}) => {
  const shop = await openShop(onTestFinished, { isRouted: true })
  const { api } = floor()
  const scalers = `/apis/autoscaling/v2/namespaces/${shop.namespace}/horizontalpodautoscalers`
  const cpu = { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 99 } } }
  const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "shop" }
  // Nothing measures CPU here. What the bounds say, the autoscaler does all the same.
  const before = { scaleTargetRef, minReplicas: 2, maxReplicas: 6, metrics: [cpu] }
  await api.create(scalers, { metadata: { name: "shop" }, spec: before })
  await shop.create(byRoute({ stepWeights: [20], metrics }, { requireApproval: ["Promotion"] }))
  await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
  const clients = shop.clients()
  await clients.more()
  await shop.setVersion("v2")
  await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
  await api.patch(`${scalers}/shop`, { spec: { minReplicas: 3 } })
  await until("the version that runs has three pods", async () => {
    const pods = await shop.pods()
    return pods.filter(pod => pod.spec.containers[0].image.endsWith(":v1")).length === 3
  })
  await shop.approve("Promotion")
  expect(await shop.untilEnded(0)).toMatchObject({ result: "Promoted" })
  await until("three pods of v2 are left", async () => {
    const images = (await shop.pods()).map(pod => pod.spec.containers[0].image)
    return images.length === 3 && images.every(image => image.endsWith(":v2"))
  })
  const after = await until("it is as before", async () => {
    const { metadata, spec } = await api.get(`${scalers}/shop`)
    return !JSON.stringify(metadata.annotations ?? {}).includes("autoimagemanager.io") && spec
  })
  expect(after).toEqual({ ...before, minReplicas: 3 })
  await clients.more()
  expectAnswered(await clients.stop())
})

test.concurrent("its configuration changes: it is proven as an image is, and a bad one stays with the pods that tried it", async ({
  onTestFinished,
}) => {
  const shop = await openShop(onTestFinished, { isRouted: true })
  const { api } = floor()
  const settings = `/api/v1/namespaces/${shop.namespace}/configmaps/settings`
  await shop.kubectl("create", "configmap", "settings", "--from-literal=VERSION=v1", "--from-literal=ERROR_RATE=0")
  await shop.kubectl("set", "env", "deploy/shop", "--from=configmap/settings")
  await shop.kubectl("rollout", "status", "deploy/shop", "--timeout=120s")
  await until("the pods of before are gone", async () => (await shop.pods()).length === 2)
  await shop.create(byWeights([20]))
  await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
  const clients = shop.clients()
  await clients.more()

  await api.patch(settings, { data: { VERSION: "v2" } })
  const tested = uidsOf(await shop.tested())
  expect(await shop.untilEnded(0)).toMatchObject({ result: "Promoted" })
  const promoted = uidsOf(await shop.pods())
  expect(promoted).toEqual(expect.arrayContaining(tested))

  await api.patch(settings, { data: { VERSION: "bad", ERROR_RATE: "0.5" } })
  expect(await shop.untilEnded(1)).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  await until("its pods are gone", async () => (await shop.pods()).length === 2)
  expect(uidsOf(await shop.pods())).toEqual(promoted)

  // A pod that is made now has the configuration that was proven.
  const lost = (await shop.pods())[0]!
  await shop.kubectl("delete", "pod", lost.metadata.name, "--wait=false")
  await until("another pod is there", async () => {
    const pods = await shop.pods()
    return (
      pods.length === 2 && pods.every(({ metadata, status }) => metadata.name !== lost.metadata.name && isReady(status))
    )
  })
  await clients.more(100)
  const results = await clients.stop()
  expectAnswered(results, "bad")
  const [made] = (await shop.pods()).filter(({ metadata }) => !promoted.includes(metadata.uid))
  const answers = results.flatMap(each => each.answers).filter(({ pod }) => pod === made!.metadata.name)
  expect(answers.map(({ version }) => version)).toContain("v2")
  expect(answers.map(({ version }) => version)).not.toContain("bad")
})

const isReady = ({ conditions = [] }: Json): boolean =>
  conditions.some(({ type, status }: Json) => type === "Ready" && status === "True")

test("kube-controller-manager is stopped across the hand-over of 20 Canaries: no pod is replaced", () =>
  expectHandOversHarmless(20))

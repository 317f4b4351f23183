import { describe, expect, test } from "vitest"
import { useAddOns } from "#test/support/data-planes.ts"
import { endAtOnce, floor, type Json, onKwok, uniqueNamespace, until } from "#test/support/floor.ts"
import {
  byRoute,
  byService,
  canaryManifest,
  expectAnswered,
  openShop,
  patienceMs,
  successRate,
  uidsOf,
  useCanaries,
  versionsIn,
} from "#test/support/real-canary.ts"

// Targets whose pods are replaced one by one, by the real controllers of StatefulSets and DaemonSets.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

test.concurrent("a StatefulSet by partition: a good version is promoted, a bad one is caught, and no request is lost", {
  timeout: patienceMs,
}, async ({ onTestFinished }) => {
  const shop = await openShop(onTestFinished, { isRouted: true, replicas: 3, kind: "StatefulSet" })
  const image = async () => new Set((await shop.pods()).map(pod => pod.spec.containers[0].image.split(":").at(-1)))
  await shop.create(byRoute({ stepWeights: [30], metrics: [successRate] }))
  await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
  const clients = shop.clients()
  await clients.more()

  await shop.setVersion("v2")
  const tested = uidsOf(await shop.tested())
  expect(await shop.untilEnded(0)).toMatchObject({ result: "Promoted" })
  const promoted = uidsOf(await shop.pods())
  expect(promoted).toHaveLength(3)
  expect(promoted).toEqual(expect.arrayContaining(tested))
  expect(await image()).toEqual(new Set(["v2"]))
  await clients.more()

  await shop.setVersion("bad")
  expect(await shop.untilEnded(1)).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  await until("all pods are of v2", async () => (await shop.pods()).length === 3 && (await image()).size === 1)
  expect(await image()).toEqual(new Set(["v2"]))
  await clients.more()
  const results = await clients.stop()
  expectAnswered(results, "bad")
  expect(versionsIn(results)).toEqual(["bad", "v1", "v2"])
})

describe.concurrent("a DaemonSet, node by node", () => {
  // The nodes are kwok's, whose pods answer no request: there are no metrics, and a person takes the second run back.
  test("is promoted, and taken back by its owner", async ({ onTestFinished }) => {
    const { api, kubectlRun } = floor()
    const namespace = await uniqueNamespace({}, onTestFinished)
    const sets = `/apis/apps/v1/namespaces/${namespace}/daemonsets`
    const canaries = `/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/canaries`
    const template = {
      metadata: { labels: { app: "shop" } },
      spec: {
        ...onKwok,
        ...endAtOnce,
        containers: [{ name: "shop", image: "shop:v1", ports: [{ name: "http", containerPort: 80 }] }],
      },
    }
    await api.create(sets, {
      metadata: { name: "shop" },
      spec: { selector: { matchLabels: { app: "shop" } }, template },
    })
    const pods = async (): Promise<Json[]> => {
      const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods`)
      return items.filter(({ metadata }: Json) => !metadata.deletionTimestamp)
    }
    const images = async () => (await pods()).map(pod => pod.spec.containers[0].image).sort()
    const setImage = (image: string) => kubectlRun("-n", namespace, "set", "image", "ds/shop", `shop=${image}`)
    const canary = () => api.get(`${canaries}/shop`)
    const untilSo = (what: string, isSo: (status: Json) => unknown) =>
      until(what, async () => {
        const { status } = await canary()
        return status && isSo(status) ? status : false
      })
    await until("a pod on each node", async () => (await api.get(`${sets}/shop`)).status?.numberAvailable === 3)
    const spec = byService({ iterations: 1 }, { requireApproval: ["Promotion"] })
    await api.create(canaries, canaryManifest(spec, "DaemonSet"))
    await untilSo("it is adopted", ({ phase }) => phase === "Initialized")
    const approve = async (annotation: string, value: string) =>
      api.patch(`${canaries}/shop`, { metadata: { annotations: { [annotation]: value } } })

    await setImage("shop:v2")
    const { run } = await untilSo("it waits for approval", ({ phase }) => phase === "WaitingPromotion")
    const tested = uidsOf((await pods()).filter(pod => pod.spec.containers[0].image === "shop:v2"))
    expect(tested.length).toBeGreaterThan(0)
    const approval = { operation: run.id, checksum: run.checksum, tiers: ["Promotion"] }
    await approve("autoimagemanager.io/approved", JSON.stringify(approval))
    await untilSo("it is promoted", ({ phase, run }) => phase === "Succeeded" && !run)
    expect(await images()).toEqual(Array(3).fill("shop:v2"))
    expect(uidsOf(await pods())).toEqual(expect.arrayContaining(tested))

    await setImage("shop:v3")
    const second = await untilSo("it waits again", ({ phase }) => phase === "WaitingPromotion")
    await approve("autoimagemanager.io/rollback", second.run.id)
    const { history } = await untilSo("it has failed", ({ phase, run }) => phase === "Failed" && !run)
    expect(history[0]).toMatchObject({ result: "RolledBack", reason: "RolledBackByUser" })
    await until("all pods are as before", async () => (await images()).join() === Array(3).fill("shop:v2").join())
  })
})

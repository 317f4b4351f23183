import { beforeAll, expect, test } from "vitest"
import { allowanceOf } from "#egress/index.ts"
import { startTraffic } from "#test/support/clients.ts"
import { pushShop, readyPods, shopDeployment, shopService, useAddOns } from "#test/support/data-planes.ts"
import { complete, conditionOf, createServiceImage, installKinds, serviceImagePath } from "#test/support/fleet.ts"
import { floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import { startRollouts } from "#test/support/real-pulls.ts"

// A tier that is judged by a real Prometheus, of what real pods count of real requests.

useAddOns("proxy", "prometheus")
beforeAll(installKinds)

const requests = 'http_requests_total{namespace="{{ namespace }}", shop="{{ tier }}"'
const query = `(sum(rate(${requests}, status=~"5.."}[{{ interval }}])) or vector(0)) / sum(rate(${requests}}[{{ interval }}])) * 100`

test("a good image goes through, a bad one halts in the first tier with healthy pods, and a Service that leads elsewhere is named", async () => {
  const { api } = floor()
  const prometheus = (await floor().add("prometheus"))!
  const namespace = await uniqueNamespace()
  const [v1, v2, bad] = [
    await pushShop("judged:v1"),
    await pushShop("judged:v2"),
    await pushShop("judged:bad", { ERROR_RATE: "0.5" }),
  ]
  const path = (group: string, plural: string) => `/${group}/namespaces/${namespace}/${plural}`
  const deployments = path("apis/apps/v1", "deployments")
  /** Behind the Service of a tier; without a fleet no ServiceImage selects it. */
  const create = (name: string, shop: string, labels: Json) => {
    const object = shopDeployment(name, v1, { replicas: 1, labels: { shop } })
    return api.create(deployments, { ...object, metadata: { name, labels } })
  }
  const tiers = ["early", "late"]
  for (const tier of tiers) await create(tier, tier, { fleet: namespace, "upgrade-tier": tier })
  await create("leftover", "late", {})
  const services = await Promise.all(
    tiers.map(tier => api.create(path("api/v1", "services"), shopService(tier, { shop: tier }))),
  )
  await api.create(path("apis/autoimagemanager.io/v1alpha1", "metrictemplates"), {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "MetricTemplate",
    metadata: { name: "error-rate" },
    spec: { provider: { type: "prometheus", address: prometheus }, query },
  })
  await readyPods(namespace, 3, { app: "shop" })
  startTraffic({ addresses: services.map(({ spec }) => `${spec.clusterIP}:80`), perSecond: 40 })
  await startRollouts(namespace, { allowEgress: [allowanceOf(new URL(prometheus))] })

  const metrics = [{ name: "error-rate", templateRef: { name: "error-rate" }, thresholdRange: { max: 5 } }]
  await createServiceImage(namespace, {
    target: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      selector: { matchLabels: { fleet: namespace } },
      image: { container: "shop" },
    },
    defaultImage: v1,
    analysisNamespace: namespace,
    tiers: [
      { upgradeTier: "early", priority: 1, analysis: { interval: "10s", threshold: 1, metrics } },
      { upgradeTier: "late" },
    ],
  })
  await complete(namespace)
  const get = (): Promise<Json> => api.get(serviceImagePath(namespace))
  const setImage = (defaultImage: string) => api.patch(serviceImagePath(namespace), { spec: { defaultImage } })
  const imageOf = async (name: string) =>
    (await api.get(`${deployments}/${name}`)).spec.template.spec.containers[0].image

  await setImage(v2)
  const { status } = await complete(namespace)
  expect(status.tierStatus[0].analysis).toMatchObject({ verdict: "Good", message: "error-rate 0", failedChecks: 0 })
  expect(await Promise.all(tiers.map(imageOf))).toEqual([v2, v2])
  // The first look may come while pods of v1 are still behind their Services; the next one comes a minute later.
  const leads = `2 of 2 objects are up to date; a Service leads to 1 pod with another version (${namespace}/late`
  await until(`Complete says ${leads}`, async () => conditionOf(await get(), "Complete").message.includes(leads))

  await setImage(bad)
  const halted = await until("the halt", async () => {
    const now = conditionOf(await get(), "Halted")
    return now?.status === "True" && now
  })
  expect(halted).toMatchObject({
    reason: "BadMetric",
    message: expect.stringMatching(/^tier early: error-rate: [\d.]+ is above 5 \(failed check 1 of 1\)$/),
  })
  expect(await Promise.all(tiers.map(imageOf))).toEqual([bad, v2])
  const early = await api.get(`${deployments}/early`)
  expect(early.status).toMatchObject({ availableReplicas: 1, updatedReplicas: 1 })
})

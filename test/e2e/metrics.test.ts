import { join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { approvedAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import {
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  isTrue,
  isUpToDateNow,
  keepController,
  serviceImagePath,
  startDicomController,
} from "#test/support/fleet.ts"
import { endAtOnce, floor, floorWithFaults, type Json, onKwok, uniqueNamespace, until } from "#test/support/floor.ts"
import { unusedPort } from "#test/support/ports.ts"
import { checkMetrics, preparePrometheus, startPrometheus } from "#test/support/prometheus.ts"
import { canaryDashboard } from "#tools/generate/monitoring/canary.ts"
import { rows } from "#tools/generate/monitoring/serviceimage.ts"
import { run } from "#tools/kube/command.ts"
import { repository } from "#tools/kube/folders.ts"
import type { Prometheus } from "#tools/kube/prometheus.ts"

const rules = join(repository, "charts/aim/rules/aim.yaml")
const image = (tag: string) => `registry.example.com/dicom-service:${tag}`

// Other files may be installing packages of theirs.
beforeAll(preparePrometheus, 1_800_000)
beforeAll(installKinds)

test("promtool accepts the alert rules, and they fire and stay quiet as they should", async () => {
  await run("promtool", ["check", "rules", "--lint=all", "--lint-fatal", rules])
  await run("promtool", ["test", "rules", join(repository, "test/support/alerts.yaml")])
})

test("what Prometheus scraped of a rollout over two tiers is the truth", async () => {
  const namespace = await uniqueNamespace()
  const fleet = namespace
  const { api, kubeconfig } = floor()
  const placed = { placement: onKwok }
  const create = (name: string, tier: string, spec: Json = {}) =>
    api.create(dicomsPath(namespace), dicom(name, tier, { ...placed, ...spec }, { fleet }))
  for (let index = 0; index < 15; index++) {
    await create(`early-${index}`, "early")
    await create(`other-${index}`, "")
  }
  await create("by-hand", "", { image: image("mine"), manuallySpecifiedImage: true })

  const metricsPort = await unusedPort()
  const proxy = await floorWithFaults()
  startDicomController(kubeconfig)
  keepController(proxy.kubeconfig, "--metrics-port", String(metricsPort))
  const prometheus = await startPrometheus({ scrape: metricsPort, rules })
  const tiers = [
    { upgradeTier: "early", priority: 7, settleSeconds: 0 },
    { upgradeTier: "", priority: 3, settleSeconds: 0 },
  ]
  await createServiceImage(fleet, { defaultImage: image("v1"), tiers })
  await rolledOut(fleet, prometheus)

  const value = (metric: string, labels = "") =>
    until(`a value of ${metric}`, async () => {
      const found = await prometheus.query(`aim_serviceimage_${metric}{serviceimage="${fleet}"${labels}}`)
      return found.length === 0 ? undefined : found.reduce((sum, each) => sum + each.value, 0)
    })
  // Each tier waits until Prometheus has seen where the rollout stands: a fast machine is through between two scrapes.
  const held = ["early", "other"].map(tier =>
    proxy.fault({ match: { method: "PATCH", path: new RegExp(`/dicoms/${tier}-`) }, do: { do: "hold" } }),
  )
  const scrapedToUpdate = (count: number) =>
    until(`${count} to update`, async () => (await value("instances_to_update")) === count)
  const since = new Date()
  await api.patch(serviceImagePath(fleet), { spec: { defaultImage: image("v2") } })
  await scrapedToUpdate(30)
  // A tenant signs up while the upgrade is under way, and is not among those to be updated. Times have whole seconds,
  // so a tenant created in the second of the start counts as existing then.
  expect(await value("upgrading")).toBe(1)
  const startedAt = await value("upgrade_started_timestamp_seconds")
  await until("the second after the start", async () => Date.now() / 1000 > startedAt + 1)
  await create("newcomer", "")
  held[0]!.remove()
  await scrapedToUpdate(15)
  held[1]!.remove()
  const status = await rolledOut(fleet, prometheus)
  const truth = await until("the newcomer to follow", async () => {
    const counted = await count(namespace, image("v2"))
    return counted.all.upToDate === 31 && counted
  })
  await until("Prometheus to have seen the newcomer", async () => (await value("instances_up_to_date")) === 31)

  const told = async (prefix: string, labels = "") => ({
    total: await value(`${prefix}instances`, labels),
    upToDate: await value(`${prefix}instances_up_to_date`, labels),
    toUpdate: await value(`${prefix}instances_to_update`, labels),
    unmanaged: await value(`${prefix}instances_unmanaged`, labels),
    ignored: await value(`${prefix}ignored_failures`, labels),
  })
  expect(await told("")).toEqual(truth.all)
  expect(await told("tier_", ',tier="early"')).toEqual(truth.early)
  expect(await told("tier_", ',tier="(default)"')).toEqual(truth.other)
  expect(await told("current_priority_")).toEqual(truth.other)
  expect(await value("current_priority")).toBe(3)
  expect(await value("lost_pods")).toBe(0)
  expect(await value("stalled", ',reason="NotStalled"')).toBe(0)
  for (const [metric, time] of [
    ["upgrade_started_timestamp_seconds", status.startedAt],
    ["upgrade_ended_timestamp_seconds", status.completedAt],
    ["current_priority_started_timestamp_seconds", status.priorityStartedAt],
  ])
    expect(await value(metric), metric).toBe(Date.parse(time) / 1000)
  expect(await value("rollouts_total", ',outcome="Complete"')).toBe(2)
  expect(await value("rollouts_total")).toBe(2)
  const patches = proxy.writes(/\/dicoms\//).filter(each => each.status === 200)
  expect(await value("stamps_total")).toBe(patches.length)

  // What was seen on the way: up once, then only down, whatever was created.
  const history = (metric: string) => prometheus.scraped(`aim_serviceimage_${metric}{serviceimage="${fleet}"}`, since)
  // The start may come before the first scrape: what was before is said here.
  const [, ...steps] = withoutRepeats([0, ...(await history("instances_to_update"))])
  expect([steps[0], steps.at(-1)]).toEqual([30, 0])
  expect(steps).toContain(15)
  expect(steps).toEqual(steps.toSorted((a, b) => b - a))
  expect(withoutRepeats([0, ...(await history("upgrading"))])).toEqual([0, 1, 0])
  expect(withoutRepeats([3, ...(await history("current_priority"))])).toEqual([3, 7, 3])

  await expectAnswers(prometheus, fleet)
  await checkMetrics(metricsPort)

  await api.remove(serviceImagePath(fleet))
  const left = () => prometheus.query(`{__name__=~"aim_serviceimage_.+", serviceimage="${fleet}"}`)
  await until("the series of the deleted ServiceImage to vanish", async () => (await left()).length === 0)
  const leaders = () => prometheus.query("leader_election_master_status == 1")
  await until("one leader", async () => (await leaders()).length === 1)
})

const canariesPath = (namespace: string) => `/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/canaries`

test("what Prometheus scraped of a run of a Canary is the truth, and ends with the Canary", async () => {
  const namespace = await uniqueNamespace()
  const { api, kubeconfig } = floor()
  const [metricsPort, deployments] = [await unusedPort(), `/apis/apps/v1/namespaces/${namespace}/deployments`]
  const prometheus = await startPrometheus({ scrape: metricsPort, rules })
  keepController(kubeconfig, "--metrics-port", String(metricsPort), "--metrics-server", prometheus.url)
  const labels = { app: "web" }
  await api.create(deployments, {
    metadata: { name: "web" },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { ...onKwok, ...endAtOnce, containers: [{ name: "web", image: image("v1") }] },
      },
    },
  })
  const metrics = [{ name: "half", query: "vector(0.5)", thresholdRange: { max: 1 } }]
  await api.create(canariesPath(namespace), {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "web" },
    spec: {
      targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      provider: "kubernetes",
      service: { port: 80 },
      // What is measured is told while the run lasts: it waits until Prometheus has seen it.
      requireApproval: ["Promotion"],
      analysis: { interval: "10s", threshold: 2, iterations: 1, metrics },
    },
  })
  const reaches = (phase: string) =>
    until(
      `the Canary to be ${phase}`,
      async () => {
        const object = await api.get(`${canariesPath(namespace)}/web`)
        return object.status?.phase === phase && object
      },
      { withinMs: 240_000 },
    )
  const of = (metric: string, more = "") => `aim_canary_${metric}{namespace="${namespace}", canary="web"${more}}`
  const shows = (query: string, wanted: number) =>
    until(`${query} to be ${wanted}`, async () => {
      const found = await prometheus.query(query)
      return found.length === 1 && found[0]!.value === wanted
    })
  await reaches("Initialized")
  await shows(of("phase", ', phase="Initialized"'), 1)
  const since = new Date()
  await api.patch(`${deployments}/web`, {
    spec: { template: { spec: { containers: [{ name: "web", image: image("v2") }] } } },
  })
  const { id: operation, checksum } = (await reaches("WaitingPromotion")).status.run
  await shows(of("metric_value", ', metric="half"'), 0.5)
  await shows(of("metric_verdict", ', metric="half", verdict="Good"'), 1)
  const approval = JSON.stringify({ operation, checksum, tiers: ["Promotion"] })
  await api.patch(`${canariesPath(namespace)}/web`, { metadata: { annotations: { [approvedAnnotation]: approval } } })
  const { status } = await reaches("Succeeded")
  const [{ startedAt, endedAt }] = status.history
  await shows(of("last_run_duration_seconds"), (Date.parse(endedAt) - Date.parse(startedAt)) / 1000)
  await shows('aim_canary_runs_total{strategy="BlueGreen", result="Promoted"}', 1)
  await shows(of("phase"), 1)
  // The weight was all or nothing, and is told of a run only.
  const weights = new Set(await prometheus.scraped(of("weight"), since))
  expect([...weights].filter(weight => weight !== 0 && weight !== 100)).toEqual([])
  await until("the run's series to end", async () => (await prometheus.query(of("weight"))).length === 0)

  for (const { queries } of canaryDashboard.rows.flatMap(row => row.panels))
    for (const { expr } of queries)
      await prometheus.query(
        expr.replace(/\$__(rate_interval|range)/g, "10m").replaceAll(/\$(namespace|canary)/g, ".*"),
      )
  const { groups } = await prometheus.get("/api/v1/rules")
  for (const rule of groups.flatMap((group: Json) => group.rules))
    expect(rule, rule.lastError).toMatchObject({ health: "ok" })
  await checkMetrics(metricsPort)

  await api.remove(`${canariesPath(namespace)}/web`)
  const left = () => prometheus.query(`{__name__=~"aim_canary_.+", namespace="${namespace}"}`)
  await until("the series of the deleted Canary to vanish", async () => (await left()).length === 0)
})

/** Complete, and seen to be so by Prometheus. */
async function rolledOut(name: string, prometheus: Prometheus): Promise<Json> {
  const now = await until(
    `${name} to be complete`,
    async () => {
      const object = await floor().api.get(serviceImagePath(name))
      return object.status?.observedGeneration === object.metadata.generation && isTrue(object, "Complete") && object
    },
    { withinMs: 240_000 },
  )
  await until("Prometheus to have seen the end", async () => {
    const [ended] = await prometheus.query(`aim_serviceimage_upgrade_ended_timestamp_seconds{serviceimage="${name}"}`)
    return ended?.value === Date.parse(now.status.completedAt) / 1000
  })
  return now.status
}

/** The same numbers, counted from the objects. */
async function count(namespace: string, latest: string) {
  const { items } = await floor().api.get(dicomsPath(namespace))
  const of = (some: Json[]) => {
    const managed = some.filter(({ spec }) => !spec.manuallySpecifiedImage)
    const upToDate = managed.filter(each => each.spec.image === latest && isUpToDateNow(each)).length
    const total = managed.length
    return { total, upToDate, toUpdate: total - upToDate, unmanaged: some.length - total, ignored: 0 }
  }
  const isEarly = ({ metadata }: Json) => metadata.labels["upgrade-tier"] === "early"
  return {
    all: of(items),
    early: of(items.filter(isEarly)),
    other: of(items.filter((each: Json) => !isEarly(each))),
  }
}

/** Of failures there were none, no tier had an analysis, and no Service led elsewhere. */
const shownEmpty = [
  "Old pods behind Services",
  "Failures by reason",
  "Failed checks, by tier",
  "Time since a tier was judged",
  "Verdicts that are not good, by tier",
]

/** Every other panel has something to show; every alert can be computed. */
async function expectAnswers(prometheus: Prometheus, fleet: string) {
  for (const { title, queries } of rows.flatMap(row => row.panels))
    for (const { expr } of queries) {
      const asked = expr.replaceAll("$serviceimage", fleet).replace(/\$__(rate_interval|range)/g, "10m")
      const isShown = async () => (await prometheus.query(asked)).length > 0
      if (shownEmpty.includes(title)) expect(await isShown(), asked).toBe(false)
      else await until(`${title} to show something: ${asked}`, isShown)
    }
  const { groups } = await prometheus.get("/api/v1/rules")
  const all = groups.flatMap((group: Json) => group.rules)
  expect(all.length).toBeGreaterThan(0)
  for (const rule of all) expect(rule, rule.lastError).toMatchObject({ health: "ok" })
  expect(all.filter((rule: Json) => rule.state === "firing")).toEqual([])
}

const withoutRepeats = (values: number[]) => values.filter((value, index) => value !== values[index - 1])

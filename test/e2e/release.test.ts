import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { parse } from "yaml"
import { isComplete, isTrue, serviceImagePath } from "#test/support/fleet.ts"
import { type Api, type Cluster, type Json, onKwok, ownCluster, until } from "#test/support/floor.ts"
import { helmFor, useHelm } from "#test/support/helm.ts"
import { runProgram, startProgram } from "#test/support/program.ts"
import { connectApi } from "#tools/kube/api.ts"
import { run } from "#tools/kube/command.ts"
import { repository } from "#tools/kube/folders.ts"
import manifest from "../../package.json" with { type: "json" }

const { version } = manifest
const folder = mkdtempSync(join(tmpdir(), "aim-release-test-"))
const made = join(folder, "release")
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** `npm run release`; umask and time zone differ from one machine to the next. */
async function makeRelease(output: string, umask: string, zone: string): Promise<void> {
  const script = `umask ${umask}; exec tools/run release --output "$0"`
  await run("sh", ["-c", script, output], { cwd: repository, env: { ...process.env, TZ: zone } })
}
beforeAll(() => makeRelease(made, "022", "UTC"), 1_800_000)
useHelm()

test("a release is one folder, with checksums that hold, and the same bytes the second time", async () => {
  expect(readdirSync(made).sort()).toEqual([
    "SHA256SUMS",
    `aim-${version}.crds.yaml`,
    `aim-${version}.image.tar`,
    `aim-${version}.spdx.json`,
    `aim-${version}.tgz`,
    `autoimagemanager-${version}.tgz`,
  ])
  await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: made })
  const again = join(folder, "again")
  await makeRelease(again, "077", "Asia/Tokyo")
  const sums = (of: string) => readFileSync(join(of, "SHA256SUMS"), "utf8")
  expect(sums(again)).toBe(sums(made))
  await run("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: again })

  const raw = await run("skopeo", [
    "inspect",
    "--raw",
    `oci-archive:${join(made, `aim-${version}.image.tar`)}:${version}`,
  ])
  const platforms = JSON.parse(raw).manifests.map(({ platform }: Json) => `${platform.os}/${platform.architecture}`)
  expect(platforms).toEqual(["linux/amd64", "linux/arm64"])
})

/** The next version of the chart: another image, and a schema that has changed. */
async function nextChart(): Promise<string> {
  await run("tar", ["xzf", join(made, `aim-${version}.tgz`), "-C", folder])
  const chart = join(folder, "aim")
  const change = (file: string, from: string, to: string) => {
    const text = readFileSync(join(chart, file), "utf8")
    expect(text).toContain(from)
    writeFileSync(join(chart, file), text.replaceAll(from, to))
  }
  change("Chart.yaml", `ersion: ${version}`, "ersion: 99.0.0")
  change("templates/crds.yaml", "categories:\n      - aim\n", "categories:\n      - aim\n      - next\n")
  return chart
}

/** At one pod a second it takes six minutes: longer than an upgrade and a rollback of the chart on a busy machine. */
const [fleet, replicas] = [40, 9]
const image = (tag: string) => `registry.example.com/web:${tag}`

/** Deployments on kwok's nodes, all of which run v1. */
async function createFleet(api: Api, namespace: string): Promise<void> {
  await api.create("/api/v1/namespaces", { metadata: { name: namespace } })
  const create = (index: number) => {
    const labels = { app: `web-${index}` }
    const template = { metadata: { labels }, spec: { ...onKwok, containers: [{ name: "app", image: image("v1") }] } }
    const spec = { replicas, selector: { matchLabels: labels }, template }
    const metadata = { name: `web-${index}`, labels: { fleet: namespace } }
    return api.create(`/apis/apps/v1/namespaces/${namespace}/deployments`, { metadata, spec })
  }
  await Promise.all(Array.from({ length: fleet }, (_, index) => create(index)))
}

/** Every image and decision that the server ever had for an object, by object. */
function recordStamps({ kubectl, kubeconfig }: Cluster, namespace: string) {
  const columns = [
    ".metadata.name",
    ".spec.template.spec.containers[0].image",
    ".metadata.annotations.autoimagemanager\\.io/last-decision",
  ]
  const path = `jsonpath=${columns.map(column => `{${column}}`).join("{'|'}")}{'\\n'}`
  const args = ["get", "deployments", "--kubeconfig", kubeconfig, "--namespace", namespace, "--watch", "-o", path]
  const watch = startProgram(kubectl, args)
  return () => {
    const stamps = new Map<string, string[]>()
    // What comes after the last line break is a part of a line.
    for (const line of watch.stdout.split("\n").slice(0, -1)) {
      const [name = "", ...state] = line.split("|")
      const seen = stamps.get(name) ?? []
      if (seen.at(-1) !== state.join(" ")) stamps.set(name, [...seen, state.join(" ")])
    }
    return stamps
  }
}

/** As much of the Prometheus operator as the chart needs to be there. */
async function createServiceMonitors(api: Api): Promise<void> {
  const names = { kind: "ServiceMonitor", plural: "servicemonitors" }
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } }
  const versions = [{ name: "v1", served: true, storage: true, schema }]
  const metadata = { name: "servicemonitors.monitoring.coreos.com" }
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
  await api.create(path, { metadata, spec: { group: "monitoring.coreos.com", scope: "Namespaced", names, versions } })
  await until("ServiceMonitors to be served", () => api.find("/apis/monitoring.coreos.com/v1/servicemonitors"))
}

test("helm installs it, upgrades it and rolls it back while an image rolls out, and uninstalls it without losing anything", async () => {
  const cluster = await ownCluster({ kwokNodes: 3, kubelet: true })
  const { registry, kubeconfig } = cluster
  const api = connectApi(cluster.access)
  onTestFinished(() => api.close())
  const helm = await helmFor(kubeconfig)
  const push = (tag: string) => {
    const flags = ["--insecure-policy", "copy", "--quiet", "--all", "--preserve-digests", "--dest-tls-verify=false"]
    const from = `oci-archive:${join(made, `aim-${version}.image.tar`)}:${version}`
    return run("skopeo", [...flags, from, `docker://${registry}/aim:${tag}`])
  }
  for (const tag of [version, "99.0.0"]) await push(tag)
  const namespace = "shop"
  await createFleet(api, namespace)
  await createServiceMonitors(api)

  const place = ["--namespace", "aim-system", "--wait", "--timeout", "4m"]
  const values = [
    "--set",
    "replicas=2,podDisruptionBudget.enabled=true,serviceMonitor.enabled=true,for[0].plural=dicoms,for[0].group=services.example.com",
  ]
  const released = ["--set", `image=${registry}/aim:${version}`]
  await helm("install", "aim", join(made, `aim-${version}.tgz`), ...place, "--create-namespace", ...values, ...released)
  const deployment = () => api.get("/apis/apps/v1/namespaces/aim-system/deployments/aim-controller")
  expect((await deployment()).status).toMatchObject({ readyReplicas: 2, updatedReplicas: 2 })
  const monitors = "/apis/monitoring.coreos.com/v1/namespaces/aim-system/servicemonitors"
  expect(await api.get(`${monitors}/aim-controller`)).toMatchObject({ spec: { endpoints: [{ port: "metrics" }] } })
  const budget = await api.get("/apis/policy/v1/namespaces/aim-system/poddisruptionbudgets/aim-controller")
  expect(budget.spec).toMatchObject({ maxUnavailable: 1 })
  const { code, output } = await runProgram("bin/aim", ["grant", namespace], { KUBECONFIG: kubeconfig })
  expect(code, output).toBe(0)

  // One pod a second: under way for minutes, unless it is hurried.
  const stamps = recordStamps(cluster, namespace)
  await until("the record to begin", async () => stamps().size === fleet)
  const target = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    selector: { matchLabels: { fleet: namespace } },
    image: { container: "app" },
  }
  const spec = {
    target,
    defaultImage: image("v2"),
    pace: { podsPerSecond: 1 },
    tiers: [{ upgradeTier: "", settleSeconds: 0 }],
  }
  await api.create(serviceImagePath(""), {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ServiceImage",
    metadata: { name: "web" },
    spec,
  })
  const serviceImage = () => api.get(serviceImagePath("web"))
  const updatedOf = ({ status }: Json): number => status?.tierStatus?.[0]?.updated ?? 0
  /** Where the rollout stands as soon as more objects than before have the image. */
  const goesOn = (after: number): Promise<Json> =>
    until(`more than ${after} to be updated`, async () => {
      const now = await serviceImage()
      return updatedOf(now) > after && now
    })
  const before = await goesOn(1)
  const { id } = before.status.operation
  const isInTheMiddle = (now: Json) => {
    expect(now.status.operation).toMatchObject({ id, phase: "InProgress" })
    expect(isTrue(now, "Halted")).toBe(false)
  }
  isInTheMiddle(before)

  const crd = () => api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/serviceimages.autoimagemanager.io")
  const runs = async () => (await deployment()).spec.template.spec.containers[0].image
  const next = ["--set", `image=${registry}/aim:99.0.0`]
  await helm("upgrade", "aim", await nextChart(), ...place, ...values, ...next)
  expect(await runs()).toBe(`${registry}/aim:99.0.0`)
  expect((await crd()).spec.names.categories).toEqual(["aim", "next"])
  const upgraded = await goesOn(updatedOf(await serviceImage()))
  isInTheMiddle(upgraded)

  await helm("rollback", "aim", "1", ...place)
  expect(await runs()).toBe(`${registry}/aim:${version}`)
  expect((await crd()).spec.names.categories).toEqual(["aim"])
  const rolledBack = await goesOn(updatedOf(await serviceImage()))
  isInTheMiddle(rolledBack)
  expect(updatedOf(rolledBack)).toBeGreaterThan(updatedOf(upgraded))

  await api.patch(serviceImagePath("web"), { spec: { pace: { podsPerSecond: 0 } } })
  const completed = async () => {
    const now = await serviceImage()
    return isComplete(now) && now
  }
  const done = await until("the rollout to complete", completed, { withinMs: 240_000 })
  expect(done.status.operation).toMatchObject({ id, phase: "Complete" })
  // Each object had v1 without a decision, then v2 with one, and nothing in between or after.
  await until("the record to be whole", async () => [...stamps().values()].every(({ length }) => length > 1))
  for (const [name, states] of stamps()) {
    expect(states, name).toHaveLength(2)
    expect(states[0], name).toBe(`${image("v1")} `)
    expect(states[1], name).toContain(`${image("v2")} {`)
  }

  await helm("uninstall", "aim", "--namespace", "aim-system")
  const left = await run(cluster.kubectl, [
    ...[
      "get",
      "--kubeconfig",
      kubeconfig,
      "--all-namespaces",
      "--selector=app.kubernetes.io/part-of=autoimagemanager",
      "-o",
      "name",
    ],
    "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding,mutatingadmissionpolicy,mutatingadmissionpolicybinding,role,rolebinding,serviceaccount,deployment,networkpolicy,poddisruptionbudget,service,servicemonitor",
  ])
  // What a namespace has granted is its own, and goes with it.
  const granted = ["aim-target", "aim-target-routes"].map(role => `rolebinding.rbac.authorization.k8s.io/${role}`)
  expect(left.trim().split("\n")).toEqual(granted)
  expect((await serviceImage()).status.operation).toMatchObject({ id, phase: "Complete" })
  // Under the same name it takes over what it had left.
  await helm("install", "aim", join(made, `aim-${version}.tgz`), "--namespace", "aim-system", ...released)
  expect(parse(await helm("status", "aim", "--namespace", "aim-system", "-o", "yaml")).info.status).toBe("deployed")
}, 900_000)

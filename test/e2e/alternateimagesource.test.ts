import { connect as connectSocket } from "node:net"
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { createAlternateImageSourceController } from "#controllers/alternateimagesource/controller.ts"
import { decisionAnnotation, parseDecision } from "#core/image/record.ts"
import { createRegistryClient } from "#registry/index.ts"
import { connect } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { runManager } from "#runtime/manager.ts"
import { systemRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { installSources, podsPath, removePolicies, sourcesPath } from "#test/support/alternate-sources.ts"
import { ask } from "#test/support/ask.ts"
import type { FaultProxy } from "#test/support/fault-proxy.ts"
import {
  complete,
  conditionOf,
  createServiceImage,
  dicom,
  dicomsPath,
  installKinds,
  isTrue,
  keepController,
  startDicomController,
} from "#test/support/fleet.ts"
import { floor, floorWithFaults, type Json, onRealNode, quickEnd, uniqueNamespace, until } from "#test/support/floor.ts"
import { aim, applyManifests, uninstall } from "#test/support/installation.ts"
import { startProgram } from "#test/support/program.ts"
import { type Pull, recordPulls } from "#test/support/pulls.ts"
import { type Registry, startRegistry } from "#test/support/registries.ts"
import { standInFor } from "#tools/kube/node.ts"

// Two registries that fail, and a real kubelet that pulls from them. The second requires its token.

const account = { username: "puller", password: "of-the-second" }
let first: Registry
let second: Registry

beforeAll(async () => {
  await installKinds()
  ;[first, second] = await Promise.all([startRegistry(), startRegistry({ credentials: account })])
})
afterAll(() => Promise.all([first, second].map(registry => registry?.close())))
afterEach(async () => {
  first.be({ do: "serve" })
  await first.start()
})

type Place = { namespace: string; pulls: readonly Pull[]; proxy: FaultProxy }

/** A namespace with the second registry's pull secret, watched; `proxy` counts what the controller does. */
async function begin(): Promise<Place> {
  const namespace = await uniqueNamespace()
  await createSecret(namespace, "pull", second, account)
  return { namespace, pulls: await recordPulls(namespace), proxy: await floorWithFaults() }
}

const createSecret = (namespace: string, name: string, { address }: Registry, credentials: typeof account) =>
  floor().api.create(`/api/v1/namespaces/${namespace}/secrets`, {
    metadata: { name },
    type: "kubernetes.io/dockerconfigjson",
    stringData: { ".dockerconfigjson": JSON.stringify({ auths: { [address]: credentials } }) },
  })

const allowed = (...registries: Registry[]) =>
  registries.flatMap(({ address }) => ["--allow-registry", `http://${address}`])

/** Returns when it looks after the namespace, so that what is measured is not its start. */
async function startAim({ proxy, namespace }: Place, ...more: Registry[]): Promise<void> {
  keepController(proxy.kubeconfig, "--kinds", "alternateimagesource", ...allowed(first, second, ...more))
  await until("the controller to look after the namespace", async () => (await getSource(namespace)).status?.summary)
}

/** Pushed to the first registry, and the same bits to the second. */
async function pushToBoth(name: string): Promise<{ digest: string; repositories: [string, string] }> {
  const digest = await first.push(name)
  await second.copyFrom(first, name)
  return { digest, repositories: both(name) }
}
const both = (name: string): [string, string] => [at(first, name), at(second, name)]
const at = ({ address }: Registry, name: string) => `${address}/${name.split(":")[0]}`

const createSource = (namespace: string, sets: readonly string[][], policy: Json = {}) =>
  floor().api.create(sourcesPath(namespace), {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "AlternateImageSource",
    metadata: { name: "demo" },
    spec: {
      imageSourceReplacements: sets.map(equivalentRepositories => ({ equivalentRepositories })),
      policy: { confirmSeconds: 1, cooldownSeconds: 5, ...policy },
    },
  })
const getSource = (namespace: string): Promise<Json> => floor().api.get(sourcesPath(namespace, "demo"))
const told = (namespace: string, reason: string) =>
  until(`the source to say ${reason}`, async () => {
    const source = await getSource(namespace)
    return conditionOf(source, "Ready")?.reason === reason && source
  })

const podSpec = (containers: Json[], more: Json = {}): Json => ({
  ...onRealNode,
  ...quickEnd,
  automountServiceAccountToken: false,
  imagePullSecrets: [{ name: "pull" }],
  containers,
  ...more,
})

const createWorkload = (namespace: string, plural: string, kind: string, spec: Json, pod: Json): Promise<Json> =>
  floor().api.create(`/apis/${kind === "Job" ? "batch" : "apps"}/v1/namespaces/${namespace}/${plural}`, {
    metadata: { name: "demo" },
    spec: {
      ...(kind !== "Job" && { selector: { matchLabels: { app: "demo" } } }),
      template: { metadata: { labels: { app: "demo" } }, spec: pod },
      ...spec,
    },
  })

/** Waits until so many containers have started, and says how that went. */
async function started(name: string, place: Place, count: number): Promise<void> {
  const { pulls, namespace } = place
  await until(`${count} containers to start`, async () => pulls.filter(({ startedAt }) => startedAt).length >= count, {
    withinMs: 120_000,
  })
  // The end of an incident is reported a moment after the last container has started.
  await until("calm", async () => (await getSource(namespace)).status.incidents === 0)
  report(name, place)
}

const seconds = (from: number | undefined, to: number | undefined) =>
  from && to ? `${((to - from) / 1000).toFixed(1)} s` : "-"

function report(name: string, place: Place): void {
  const { pulls } = place
  const lines = pulls.map(
    ({ pod, container, failedAt, repairedAt, startedAt, digest = "" }) =>
      `  ${pod} ${container}: repaired after ${seconds(failedAt, repairedAt)}, started after ${seconds(failedAt, startedAt)}, ${digest.slice(7, 19)}`,
  )
  const { patches, statuses } = writes(place)
  const reasons = statuses.map(({ conditions }) => conditions.find((each: Json) => each.type === "Ready").reason)
  lines.push(`  ${patches.length} patches of pods, ${statuses.length} statuses (${reasons.join(", ")})`)
  process.stderr.write(`${name}\n${lines.join("\n")}\n`)
}

/** What the server took from the controller. Namespaces of earlier tests may still be going away. */
function writes({ proxy, namespace }: Place) {
  const accepted = (path: RegExp) =>
    proxy.writes(path).filter(each => each.status === 200 && each.path.includes(`/namespaces/${namespace}/`))
  return {
    patches: accepted(/\/pods\//).map(({ body }) => JSON.parse(body)),
    workloads: accepted(/\/apis\/(apps|batch)\//).map(({ body }) => JSON.parse(body)),
    statuses: accepted(/\/alternateimagesources\/[^/]+\/status/).map(({ body }) => JSON.parse(body).status),
  }
}

const uidsOf = (pulls: readonly Pull[]) => new Set(pulls.map(({ uid }) => uid))
const of = (pulls: readonly Pull[], container: string) => pulls.filter(each => each.container === container)

describe("a registry fails, and pods start all the same", () => {
  test("stopped: every failing container of a Deployment, its init container first, in the same pods", async () => {
    const place = await begin()
    const { namespace, pulls } = place
    const init = await pushToBoth(`${namespace}/init:1`)
    const app = await pushToBoth(`${namespace}/app:1`)
    const helper = await pushToBoth(`${namespace}/helper:1`)
    await createSource(
      namespace,
      [init, app, helper].map(({ repositories }) => repositories),
    )
    await startAim(place)
    await first.stop()
    const containers = [
      { name: "app", image: `${app.repositories[0]}:1` },
      { name: "helper", image: `${helper.repositories[1]}:1` }, // pulled from the second anyway
    ]
    const initContainers = [{ name: "init", image: `${init.repositories[0]}:1`, command: ["/bin/true"] }]
    const { spec } = await createWorkload(
      namespace,
      "deployments",
      "Deployment",
      { replicas: 2 },
      podSpec(containers, { initContainers }),
    )
    await started("Deployment, registry stopped", place, 6)

    expect(uidsOf(pulls).size).toBe(2)
    expect(new Set(of(pulls, "init").map(({ digest }) => digest))).toEqual(new Set([init.digest]))
    expect(new Set(of(pulls, "app").map(({ digest }) => digest))).toEqual(new Set([app.digest]))
    expect(new Set(of(pulls, "app").map(({ image }) => image))).toEqual(new Set([`${app.repositories[1]}:1`]))
    expect(of(pulls, "helper").every(({ failedAt, repairedAt }) => !failedAt && !repairedAt)).toBe(true)
    const now = await floor().api.get(`/apis/apps/v1/namespaces/${namespace}/deployments/demo`)
    expect(now.spec.template).toEqual(spec.template)
    expect(now.metadata.generation).toBe(1)
    expect(writes(place).patches).toHaveLength(4)
    expect(writes(place).workloads).toEqual([])
    const { status } = await getSource(namespace)
    expect(status.targetsAvailable.map(({ container, switches }: Json) => [container, switches?.length])).toEqual([
      ["app", 1],
      ["helper", undefined],
      ["init", 1],
    ])
    for (const { metadata } of (await floor().api.get(podsPath(namespace))).items)
      expect(parseDecision(metadata.annotations[decisionAnnotation])).toMatchObject({
        by: "alternateimagesource/demo",
        reason: "Unreachable",
      })
  })

  test("tag deleted: a StatefulSet's pods one after the other, and new ones are right from the start", async () => {
    const place = await begin()
    const { namespace, pulls } = place
    const { digest, repositories } = await pushToBoth(`${namespace}/app:1`)
    await first.deleteTag(`${namespace}/app:1`)
    await createSource(namespace, [repositories])
    await startAim(place)
    const container = { name: "app", image: `${repositories[0]}:1` }
    await createWorkload(
      namespace,
      "statefulsets",
      "StatefulSet",
      { replicas: 3, serviceName: "demo" },
      podSpec([container]),
    )
    await started("StatefulSet, tag deleted", place, 3)
    expect(uidsOf(pulls).size).toBe(3)
    expect(pulls.map(each => [each.pod, each.digest])).toEqual([0, 1, 2].map(index => [`demo-${index}`, digest]))
    expect(pulls.every(({ failedAt, message }) => failedAt && /not found/.test(message!))).toBe(true)
    expect(writes(place).patches).toHaveLength(3)
    const { status } = await getSource(namespace)
    expect(status.targetsAvailable).toMatchObject([{ switches: [{ reason: "NotFound", pods: 1 }] }])
    // One incident, however many pods: the switch is reported once, and not again for the pods that follow. A status
    // between two pods says the same of it.
    expect(status.targetsAvailable[0].switches).toHaveLength(1)
    const reported = writes(place).statuses.flatMap(({ targetsAvailable: [only] }) => only?.switches ?? [])
    expect(new Set(reported.map(each => JSON.stringify(each))).size).toBe(1)

    await installSources()
    onTestFinished(removePolicies)
    const pod = { metadata: { generateName: "demo-", labels: { app: "demo" } }, spec: podSpec([container]) }
    await until("the policy to be in force", async () => {
      const { spec } = await floor().api.create(`${podsPath(namespace)}?dryRun=All`, pod)
      return spec.containers[0].image === `${repositories[1]}:1`
    })
    await floor().api.patch(`/apis/apps/v1/namespaces/${namespace}/statefulsets/demo`, { spec: { replicas: 4 } })
    await started("StatefulSet, one more with the admission policy", place, 4)
    expect(pulls[3]).toMatchObject({ pod: "demo-3", created: `${repositories[1]}:1`, digest })
    expect(pulls[3]?.failedAt).toBeUndefined()
    expect(writes(place).patches).toHaveLength(3)
  })

  test("rate limit: a DaemonSet's pod at once, though failures have to last five minutes", async () => {
    const place = await begin()
    const { namespace, pulls } = place
    const { digest, repositories } = await pushToBoth(`${namespace}/app:1`)
    first.be({ do: "limit", retryAfterSeconds: 600 })
    await createSource(namespace, [repositories], { confirmSeconds: 300 })
    await startAim(place)
    await createWorkload(
      namespace,
      "daemonsets",
      "DaemonSet",
      {},
      podSpec([{ name: "app", image: `${repositories[0]}:1` }]),
    )
    await started("DaemonSet, rate limit", place, 1)
    expect(pulls).toMatchObject([{ image: `${repositories[1]}:1`, digest }])
    expect(writes(place).patches).toHaveLength(1)
    const { status } = await getSource(namespace)
    expect(status.targetsAvailable).toMatchObject([
      { type: { group: "apps", kind: "daemonset" }, switches: [{ reason: "RateLimited", pods: 1 }] },
    ])
  })

  test("slow: a registry that does not answer in time is passed by, and a Job comes to its end", async () => {
    const place = await begin()
    const { namespace, pulls } = place
    const slow = await startRegistry()
    onTestFinished(() => slow.close())
    const { digest, repositories } = await pushToBoth(`${namespace}/app:1`)
    await slow.copyFrom(first, `${namespace}/app:1`)
    slow.be({ do: "delay", ms: 60_000 })
    first.be({ do: "hangUp" })
    await createSource(namespace, [[repositories[0], at(slow, `${namespace}/app`), repositories[1]]])
    await startAim(place, slow)
    const container = { name: "app", image: `${repositories[0]}:1`, command: ["/bin/true"] }
    await createWorkload(namespace, "jobs", "Job", {}, podSpec([container], { restartPolicy: "Never" }))
    await started("Job, slow registry", place, 1)
    await until("the Job to end", async () => {
      const job = await floor().api.get(`/apis/batch/v1/namespaces/${namespace}/jobs/demo`)
      return isTrue(job, "Complete")
    })
    expect(pulls).toMatchObject([{ image: `${repositories[1]}:1`, digest }])
    expect(writes(place).patches).toHaveLength(1)
  })
})

describe("what is not a reason to go elsewhere", () => {
  const pod = (name: string, image: string, more: Json = {}): Json => ({
    metadata: { name },
    spec: podSpec([{ name: "app", image, imagePullPolicy: "Always" }], more),
  })

  test("wrong credentials, unless the policy says so; and none at all", async () => {
    const place = await begin()
    const { namespace, pulls } = place
    await createSecret(namespace, "wrong", second, { ...account, password: "expired" })
    const { digest, repositories } = await pushToBoth(`${namespace}/app:1`)
    await createSource(namespace, [repositories.toReversed()])
    await startAim(place)
    const imagePullSecrets = [{ name: "wrong" }]
    await floor().api.create(podsPath(namespace), pod("web", `${repositories[1]}:1`, { imagePullSecrets }))
    await told(namespace, "Denied")
    expect(writes(place).patches).toEqual([])

    await floor().api.patch(sourcesPath(namespace, "demo"), { spec: { policy: { onAuthError: "Switch" } } })
    await started("Pod, wrong credentials", place, 1)
    expect(pulls).toMatchObject([{ image: `${repositories[0]}:1`, digest }])
    expect(writes(place).patches).toHaveLength(1)

    // The other way round: the first is gone, and a pod without a secret could not pull from the second.
    first.be({ do: "hangUp" })
    await floor().api.create(podsPath(namespace), pod("bare", `${repositories[0]}:1`, { imagePullSecrets: [] }))
    await told(namespace, "SecretMissing")
    expect(writes(place).patches).toHaveLength(1)
    report("Pod, no credentials", place)
  })

  test("a tag that moved to other bits, and one that is nowhere", async () => {
    const place = await begin()
    const { namespace, pulls } = place
    const { digest, repositories } = await pushToBoth(`${namespace}/app:1`)
    await createSource(namespace, [repositories])
    await startAim(place)
    await floor().api.create(podsPath(namespace), pod("old", `${repositories[0]}:1`))
    await until("the first pod to run", async () => pulls.some(({ startedAt }) => startedAt))
    await second.push(`${namespace}/app:1`, { version: "moved" })
    first.be({ do: "hangUp" })
    await floor().api.create(podsPath(namespace), pod("new", `${repositories[0]}:1`))
    await told(namespace, "DigestDiffers")
    first.be({ do: "serve" })
    await until("the first registry to do again", async () => pulls.every(({ startedAt }) => startedAt))
    expect(pulls.map(each => [each.image, each.digest])).toEqual(Array(2).fill([`${repositories[0]}:1`, digest]))

    await floor().api.create(podsPath(namespace), pod("typo", `${repositories[0]}:l`))
    await told(namespace, "NotFoundAnywhere")
    expect(writes(place).patches).toEqual([])
    report("Pod, other bits and a misspelt tag", place)
  })
})

test("the original's manifest changes the workload, and its status is the original's", async () => {
  const place = await begin()
  const { namespace, pulls, proxy } = place
  const [quay, hub] = ["quay.io/fairwinds/docker-demo", "ehazlett/docker-demo"]
  const digest = await second.push("fairwinds/docker-demo:latest")
  // Both are reached under the names that the manifest has, by containerd and by the controller.
  const open = await startRegistry()
  onTestFinished(() => open.close())
  await open.copyFrom(second, "fairwinds/docker-demo:latest")
  for (const [host, { port }] of [["quay.io", open] as const, ["docker.io", first] as const])
    onTestFinished(standInFor(floor().folder, host, port))
  await startInProcess(proxy, { "quay.io": open, "registry-1.docker.io": first })
  first.be({ do: "hangUp" })

  const demo = (name: string, image: string): Json => ({
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: podSpec([{ name: "basic-demo", image }]) },
    },
  })
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  const three = await floor().api.create(deployments, demo("demo3-basic-demo", hub))
  const two = await floor().api.create(deployments, demo("demo2-basic-demo", quay))
  await floor().api.create(sourcesPath(namespace), {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "AlternateImageSource",
    metadata: { name: "demo" },
    spec: {
      imageSourceReplacements: [
        {
          equivalentRepositories: [quay, hub],
          targets: [
            { type: { group: "apps", kind: "deployment" }, name: "demo3-basic-demo" },
            { type: { group: "apps", kind: "deployment" }, name: "demo2-basic-demo" },
          ],
        },
      ],
      policy: { apply: "Template", confirmSeconds: 1 },
    },
  })
  await started("Deployment, Template", place, 2)

  const type = { group: "apps", kind: "deployment" }
  const entry = { container: "basic-demo", currentRepository: quay, type }
  const { status } = await until("both to be told", async () => {
    const source = await getSource(namespace)
    return conditionOf(source, "Ready")?.reason === "Switched" && source.status.incidents === 0 && source
  })
  expect(status.observedGeneration).toBe(1)
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  // What was found bad is remembered for a while beside it, so that two that are down do not take turns.
  const entries = status.targetsAvailable.map(({ incident: _, ...rest }: Json) => rest)
  expect(entries).toEqual([
    { ...entry, name: "demo2-basic-demo", uid: two.metadata.uid },
    {
      ...entry,
      name: "demo3-basic-demo",
      uid: three.metadata.uid,
      // The last two are ours.
      switches: [{ oldImage: hub, newImage: quay, time, reason: "Unreachable", pods: 1 }],
    },
  ])
  const now = await floor().api.get(`${deployments}/demo3-basic-demo`)
  expect(now.spec.template.spec.containers[0].image).toBe(quay)
  expect(writes(place)).toMatchObject({ patches: [], workloads: [{ metadata: { uid: three.metadata.uid } }] })
  expect(pulls.filter(({ startedAt }) => startedAt).map(each => each.digest)).toEqual([digest, digest])
})

/** The controller in this process; registries of the internet are those of the test. */
async function startInProcess(proxy: FaultProxy, standIns: Record<string, Registry>): Promise<void> {
  const hosts = Object.keys(standIns)
  const registry = createRegistryClient({
    clock: systemClock,
    random: systemRandom,
    allow: hosts.map(host => `http://${host}:80`),
    lookup: async host => (host in standIns ? [`127.0.0.${hosts.indexOf(host) + 1}`] : []),
    dial: async ({ address }) => {
      const { port } = standIns[hosts[Number(address.split(".")[3]) - 1]!]!
      const socket = connectSocket(port, "127.0.0.1")
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject))
      return socket
    },
  })
  const { transport } = await connect({ kubeconfig: proxy.kubeconfig })
  const stop = new AbortController()
  const ended = runManager({
    transport,
    leaderElect: false,
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    signal: stop.signal,
    controllers: [createAlternateImageSourceController({ registry })],
  })
  onTestFinished(async () => {
    stop.abort()
    await ended
  })
}

test("a tier whose image cannot be pulled is failed over, and its rollout completes without a halt", async () => {
  const { api, kubeconfig } = floor()
  const place = await begin()
  const { namespace, pulls, proxy } = place
  // Dicoms name no pull secret: it is that of the service account their pods run as.
  await api.patch(`/api/v1/namespaces/${namespace}/serviceaccounts/default`, { imagePullSecrets: [{ name: "pull" }] })
  const one = await pushToBoth(`${namespace}/dicom:v1`)
  const two = await pushToBoth(`${namespace}/dicom:v2`)
  const [v1, v2] = ["v1", "v2"].map(tag => `${one.repositories[0]}:${tag}`)
  for (const tier of ["early", ""])
    for (const index of [0, 1])
      await api.create(dicomsPath(namespace), dicom(`${tier || "late"}-${index}`, tier, {}, { fleet: namespace }))
  await createSource(namespace, [one.repositories])
  const tiers = ["early", ""].map((upgradeTier, index) => ({ upgradeTier, priority: -index }))
  await createServiceImage(namespace, { defaultImage: v1, tiers })
  startDicomController(kubeconfig)
  keepController(proxy.kubeconfig, ...allowed(first, second))
  await complete(namespace)

  await first.stop()
  await api.patch(`/apis/autoimagemanager.io/v1alpha1/serviceimages/${namespace}`, { spec: { defaultImage: v2 } })
  await complete(namespace)
  report("ServiceImage, registry stopped", place)
  const statuses = proxy.writes(/\/serviceimages\/[^/]+\/status/).map(({ body }) => JSON.parse(body))
  expect(statuses.filter(each => isTrue(each, "Halted"))).toEqual([])
  const failures = statuses.flatMap(({ status }) => status.tierStatus.flatMap((tier: Json) => tier.failures ?? []))
  expect(failures).toEqual([])
  const dicoms = (await api.get(dicomsPath(namespace))).items
  expect(dicoms.map((each: Json) => each.spec.image)).toEqual(Array(4).fill(v2))
  const upgraded = () => pulls.filter(({ created }) => created === v2)
  await until("their starts to be recorded", async () => upgraded().filter(({ startedAt }) => startedAt).length >= 4)
  expect(upgraded().map(each => [each.image, each.digest])).toEqual(
    Array(4).fill([`${one.repositories[1]}:v2`, two.digest]),
  )
  expect(writes(place).patches).toHaveLength(4)
})

test("with the roles that are printed and no others: nothing before the grant, and everything after", async () => {
  const { api, access } = floor()
  const { namespace, pulls } = await begin()
  await api.create("/api/v1/namespaces", { metadata: { name: "aim-system" } })
  await applyManifests(await aim("manifests", "rbac"))
  onTestFinished(uninstall)
  const accounts = "/api/v1/namespaces/aim-system/serviceaccounts"
  const { status } = await api.create(`${accounts}/aim-controller/token`, { spec: { expirationSeconds: 3600 } })
  const proxy = await floorWithFaults({ ...access, token: status.token })
  const place = { namespace, pulls, proxy }
  startProgram("bin/aim", [
    ...["controller", "--kubeconfig", proxy.kubeconfig, "--lease-namespace", "aim-system"],
    ...allowed(first, second),
  ])
  const { digest, repositories } = await pushToBoth(`${namespace}/app:1`)
  first.be({ do: "hangUp" })
  await createSource(namespace, [repositories])
  const container = { name: "app", image: `${repositories[0]}:1` }
  await createWorkload(namespace, "deployments", "Deployment", { replicas: 2 }, podSpec([container]))
  await told(namespace, "Forbidden")
  expect(writes(place).patches).toEqual([])
  /** A request that is under way has no status yet. */
  const secrets = () => proxy.requests.flatMap(({ path, status }) => (path.includes("/secrets") ? (status ?? []) : []))
  expect(new Set(secrets())).toEqual(new Set([403]))

  // A server learns of its roles by a watch, as we do, and may be later. Where a Secret may not be read yet, the pod
  // tries for itself; to see it read, its role has to be in force before pods may be changed.
  const grant = ["grant", namespace, "--pull-secrets", "pull"]
  const [role, binding] = JSON.parse(await aim(...grant, "--output", "json")).items
  for (const each of [role, binding]) await applyManifests(JSON.stringify(each))
  const as = { access: { ...access, token: status.token } }
  const path = `/api/v1/namespaces/${namespace}/secrets`
  const statusOf = async (asked: string) => (await ask("GET", asked, undefined, as)).status
  await until("the role to be in force", async () => (await statusOf(`${path}/pull`)) === 200)
  await aim(...grant)
  await started("Deployment, after the grant", place, 2)
  expect(pulls.map(each => [each.image, each.digest])).toEqual(Array(2).fill([`${repositories[1]}:1`, digest]))
  expect(writes(place).patches).toHaveLength(2)
  expect(secrets().at(-1)).toBe(200)

  // The Secret it named, and no other of the namespace.
  await createSecret(namespace, "other", second, account)
  for (const refused of [`${path}/other`, path]) expect(await statusOf(refused)).toBe(403)
})

test("from the kubelet's word to the patch, with nothing to wait for", async () => {
  const place = await begin()
  const { namespace, pulls } = place
  const { repositories } = await pushToBoth(`${namespace}/app:1`)
  first.be({ do: "hangUp" })
  await createSource(namespace, [repositories], { confirmSeconds: 0, cooldownSeconds: 0 })
  await startAim(place)
  for (const index of Array.from({ length: 11 }).keys()) {
    const spec = podSpec([{ name: "app", image: `${repositories[0]}:1` }])
    await floor().api.create(podsPath(namespace), { metadata: { name: `web-${index}` }, spec })
    await until("it to start", async () => pulls.filter(({ startedAt }) => startedAt).length > index, { everyMs: 20 })
  }
  const took = pulls.map(({ failedAt, repairedAt }) => repairedAt! - failedAt!)
  const [asked = 0, ...known] = took
  const median = known.toSorted((a, b) => a - b)[5]
  const { patches, statuses } = writes(place)
  process.stderr.write(
    `from status to patch: ${asked} ms with a probe, then ${known.join(", ")} ms; median ${median}; ${statuses.length} statuses\n`,
  )
  expect(patches).toHaveLength(11)
})

import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { policyManifests } from "#cli/manifests/policies.ts"
import { rulesFor } from "#cli/manifests/rules.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { createInPlaceController } from "#controllers/in-place/controller.ts"
import { everyOrdinal, inPlaceAnnotation, revisionLabel, strategyAnnotation } from "#core/in-place/names.ts"
import { inPlaceHolds } from "#policies/in-place-hold.ts"
import { connect } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { events } from "#runtime/events.ts"
import { runManager } from "#runtime/manager.ts"
import { systemRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { complete, createServiceImage, installKinds } from "#test/support/fleet.ts"
import {
  floor,
  type Json,
  kubeconfigFor,
  onRealNode,
  quickEnd,
  serviceAccountAccess,
  until,
} from "#test/support/floor.ts"
import { holdIsInForce } from "#test/support/real-in-place.ts"
import { beginPulls, startAgent, startRollouts } from "#test/support/real-pulls.ts"

// Workloads with real controllers, a real kubelet and a real containerd are updated in place: the policy holds a plain
// `kubectl set image`, and afterwards every pod is the pod it was.

const manifests = inPlaceHolds.flatMap(policyManifests) as Json[]
const pathOf = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`
let images: string[]

beforeAll(async () => {
  await installKinds()
  for (const manifest of manifests) await floor().api.apply(pathOf(manifest), manifest)
  const pushed = await Promise.all(["1", "2", "3"].map(tag => floor().pushImage(`in-place:v${tag}`)))
  images = pushed.map(({ reference }) => reference)
})
afterAll(async () => {
  for (const manifest of manifests.toReversed()) await floor().api.remove(pathOf(manifest))
  await floor().kubectlRun("delete", "nodeimages", "--all")
})

type Plural = "deployments" | "statefulsets" | "daemonsets"

/** What each kind has beside the template. A DaemonSet has one pod: there is one real node. */
const specs: Record<Plural, Json> = {
  deployments: { replicas: 3, strategy: { rollingUpdate: { maxUnavailable: 1 } } },
  statefulsets: { replicas: 3, serviceName: "web" },
  daemonsets: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "50%" } } },
}

/** Controllers and an agent, and a namespace that has granted us its workloads. */
async function start() {
  const { namespace } = await beginPulls()
  await startAgent(namespace)
  const controllers = [createInPlaceController(), createContainerRecreateRequestController()]
  const permissions = controllers.flatMap(each => each.permissions)
  const rules = rulesFor([...permissions, { resource: events, verbs: ["create", "patch"] }])
  const access = await serviceAccountAccess(namespace, "in-place", rules)
  const { transport } = await connect({ kubeconfig: kubeconfigFor(access) })
  const stop = new AbortController()
  const surroundings = { clock: systemClock, random: systemRandom, log: silentLogger }
  const ended = runManager({
    ...surroundings,
    transport,
    controllers,
    leaderElect: false,
    signal: stop.signal,
  })
  onTestFinished(async () => {
    stop.abort()
    await ended
  })
  const { api, kubectlRun } = floor()
  await api.create(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    metadata: { name: "aim-target" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    subjects: [],
  })
  return { namespace, kubectl: (...args: string[]) => kubectlRun("-n", namespace, ...args) }
}

/** Pods with two containers each and a volume. */
async function begin(plural: Plural = "deployments") {
  const { namespace, kubectl } = await start()
  const { api } = floor()
  const container = (name: string) => ({
    name,
    image: images[0],
    command: ["/bin/sh", "-c", "date >> /data/starts; trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"],
    volumeMounts: [{ name: "data", mountPath: "/data" }],
    ...(name === "web" && {
      env: [{ name: "TEAM", valueFrom: { fieldRef: { fieldPath: "metadata.labels['team']" } } }],
    }),
  })
  const workloads = `/apis/apps/v1/namespaces/${namespace}/${plural}`
  await api.create(workloads, {
    metadata: { name: "web", annotations: { [strategyAnnotation]: "InPlaceIfPossible" } },
    spec: {
      ...specs[plural],
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: {
          ...{ ...onRealNode, ...quickEnd },
          containers: [container("web"), container("side")],
          volumes: [{ name: "data", emptyDir: {} }],
        },
      },
    },
  })
  const rolledOut = () => kubectl("rollout", "status", `${plural}/web`, "--timeout=180s")
  await rolledOut()
  await holdIsInForce(namespace, `${plural}/web`, "web")
  return {
    namespace,
    kubectl,
    rolledOut,
    workload: () => api.get(`${workloads}/web`),
    async pods(): Promise<Json[]> {
      const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=app=web`)
      return items
        .filter(({ metadata }: Json) => !metadata.deletionTimestamp)
        .sort((a: Json, b: Json) => (a.metadata.name < b.metadata.name ? -1 : 1))
    },
    async revisions(): Promise<Json[]> {
      return (await api.get(`/apis/apps/v1/namespaces/${namespace}/controllerrevisions`)).items
    },
    async sets(): Promise<Json[]> {
      return (await api.get(`/apis/apps/v1/namespaces/${namespace}/replicasets`)).items
    },
  }
}

const statusOf = ({ status }: Json, container: string): Json =>
  status.containerStatuses.find(({ name }: Json) => name === container)
const identity = (pod: Json) => ({
  name: pod.metadata.name,
  uid: pod.metadata.uid,
  ip: pod.status.podIP,
  side: statusOf(pod, "side").containerID,
})

/** Until the marks of an update are gone. */
const isFree = ({ metadata, spec }: Json) => !spec.paused && !JSON.stringify(metadata.labels ?? {}).includes("/held")

test("kubectl set image: the same pods run the new image; later changes roll and go back as ever", async () => {
  const { kubectl, rolledOut, workload, pods, sets } = await begin()
  const before = await pods()
  await kubectl("set", "image", "deploy/web", `web=${images[1]}`)
  expect((await workload()).spec.paused).toBe(true)
  await until("the update is complete", async () => isFree(await workload()))
  expect(JSON.parse((await workload()).metadata.annotations[inPlaceAnnotation])).toMatchObject({
    reason: "Completed",
  })
  expect(await rolledOut()).toContain("successfully rolled out")

  const after = await pods()
  expect(after.map(identity)).toEqual(before.map(identity))
  for (const [index, pod] of after.entries()) {
    expect(pod.spec.containers[0].image).toBe(images[1])
    expect(statusOf(pod, "web")).toMatchObject({ restartCount: 1, ready: true })
    expect(statusOf(pod, "web").containerID).not.toBe(statusOf(before[index]!, "web").containerID)
    expect(statusOf(pod, "side").restartCount).toBe(0)
    // Each container notes its start, a moment after it was started.
    const starts = await until("three starts", async () => {
      const noted = await kubectl("exec", pod.metadata.name, "-c", "side", "--", "cat", "/data/starts")
      const lines = noted.trim().split("\n")
      return lines.length >= 3 && lines
    })
    expect(starts).toHaveLength(3)
  }
  expect((await sets()).filter(({ spec }) => spec.replicas > 0)).toHaveLength(1)
  expect(await kubectl("rollout", "history", "deploy/web")).toMatch(/\n1 .*\n2 /)

  // Back in place, and the history is still right.
  await kubectl("set", "image", "deploy/web", `web=${images[0]}`)
  await until("it is back", async () => isFree(await workload()))
  expect(await rolledOut()).toContain("successfully rolled out")
  expect((await pods()).map(identity)).toEqual(before.map(identity))
  expect((await workload()).status.collisionCount).toBeUndefined()

  // Another field: every pod is replaced by the Deployment controller.
  await kubectl("set", "env", "deploy/web", "A=1")
  await until("it is released", async () => isFree(await workload()))
  await rolledOut()
  const olds = new Set(before.map(({ metadata }) => metadata.uid))
  expect((await pods()).filter(({ metadata }) => olds.has(metadata.uid))).toEqual([])
})

test("a kube-controller-manager that is restarted afterwards replaces nothing", async () => {
  const { kubectl, rolledOut, workload, pods, sets } = await begin()
  const before = await pods()
  await kubectl("set", "image", "deploy/web", `web=${images[2]}`)
  await until("the update is complete", async () => isFree(await workload()))
  await floor().stopProgram("kube-controller-manager")
  await floor().startProgram("kube-controller-manager")
  // Proof that it is at work again: it does what it is asked to.
  await kubectl("scale", "deploy/web", "--replicas=4")
  await rolledOut()
  const after = await pods()
  expect(after).toHaveLength(4)
  expect(after.map(identity)).toEqual(expect.arrayContaining(before.map(identity)))
  expect(after.every(pod => pod.spec.containers[0].image === images[2])).toBe(true)
  expect((await sets()).filter(({ spec }) => spec.replicas > 0)).toHaveLength(1)
})

for (const [plural, held] of [
  ["statefulsets", { type: "RollingUpdate", rollingUpdate: { partition: everyOrdinal } }],
  ["daemonsets", { type: "OnDelete" }],
] as const)
  test(`${plural}: the same pods run the new image, and go back; another field rolls as ever`, async () => {
    const { kubectl, rolledOut, workload, pods, revisions } = await begin(plural)
    const before = await pods()
    const { updateStrategy } = (await workload()).spec
    const setImage = (image: string) => kubectl("set", "image", `${plural}/web`, `web=${image}`)
    await setImage(images[1]!)
    expect((await workload()).spec.updateStrategy).toMatchObject(held)
    await until("the update is complete", async () => isFree(await workload()))
    expect(JSON.parse((await workload()).metadata.annotations[inPlaceAnnotation])).toMatchObject({
      reason: "Completed",
    })
    expect((await workload()).spec.updateStrategy).toEqual(updateStrategy)
    await rolledOut()
    const after = await pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    for (const [index, pod] of after.entries()) {
      expect(pod.spec.containers[0].image).toBe(images[1])
      expect(statusOf(pod, "web")).toMatchObject({ restartCount: 1, ready: true })
      expect(statusOf(pod, "side").restartCount).toBe(0)
      expect(pod.metadata.labels[revisionLabel]).not.toBe(before[index]!.metadata.labels[revisionLabel])
    }
    const { status } = await workload()
    if (plural === "statefulsets") expect(status.currentRevision).toBe(status.updateRevision)
    expect(await revisions()).toHaveLength(2)

    // A kube-controller-manager that is restarted afterwards replaces nothing, and then goes back in place with us.
    await floor().stopProgram("kube-controller-manager")
    await floor().startProgram("kube-controller-manager")
    await setImage(images[0]!)
    await until("it is back", async () => isFree(await workload()))
    await rolledOut()
    expect((await pods()).map(identity)).toEqual(before.map(identity))
    expect((await pods()).map(({ metadata }) => metadata.labels[revisionLabel])).toEqual(
      before.map(({ metadata }) => metadata.labels[revisionLabel]),
    )

    await kubectl("set", "env", `${plural}/web`, "A=1")
    await until("it is released", async () => isFree(await workload()))
    await rolledOut()
    const olds = new Set(before.map(({ metadata }) => metadata.uid))
    expect((await pods()).filter(({ metadata }) => olds.has(metadata.uid))).toEqual([])
  })

test("a label that a container reads into its environment: its agent restarts it, and it has the new value", async () => {
  const { kubectl, workload, pods } = await begin("daemonsets")
  const before = await pods()
  const team = { spec: { template: { metadata: { labels: { team: "blue" } } } } }
  await kubectl("patch", "ds/web", "--type=merge", "-p", JSON.stringify(team))
  await until("the update is complete", async () => isFree(await workload()))
  const after = await pods()
  expect(after.map(identity)).toEqual(before.map(identity))
  for (const pod of after) {
    expect(statusOf(pod, "web")).toMatchObject({ restartCount: 1, ready: true })
    const { name } = pod.metadata
    expect(await kubectl("exec", name, "-c", "web", "--", "/bin/sh", "-c", 'echo "$TEAM"')).toContain("blue")
  }
})

const kinds = { Deployment: "deployments", StatefulSet: "statefulsets", DaemonSet: "daemonsets" } as const

/** How workloads are made, and how they get their image. Without writes, by a ServiceImage. */
const writers: Record<string, { make?: string[]; writes?: string[][] }> = {
  client: { writes: [[]] },
  server: { make: ["--server-side"], writes: [["--server-side"]] },
  mixed: { writes: [[], ["--server-side", "--force-conflicts"], []] },
  own: {},
}

test("applies from the client, by the server and both mixed, and a ServiceImage: the same pods, for each kind", async () => {
  const { namespace, kubectl } = await start()
  await startRollouts(namespace)
  const { api } = floor()
  const folder = mkdtempSync(join(tmpdir(), "aim-writers-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const container = (name: string, image: string) => ({
    ...{ name, image, command: ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"] },
  })
  const manifest = (writer: string, kind: keyof typeof kinds, image: string): Json => ({
    ...{ apiVersion: "apps/v1", kind },
    metadata: {
      ...{ name: writer, labels: { fleet: `${namespace}-${writer}` } },
      ...(writers[writer]!.writes && { annotations: { [strategyAnnotation]: "InPlaceIfPossible" } }),
    },
    spec: {
      ...{ ...specs[kinds[kind]], ...(kind !== "DaemonSet" && { replicas: 1 }) },
      selector: { matchLabels: { app: `${writer}-${kind}` } },
      template: {
        metadata: { labels: { app: `${writer}-${kind}`, of: writer } },
        spec: { ...onRealNode, ...quickEnd, containers: [container("web", image), container("side", images[0]!)] },
      },
    },
  })
  const apply = (writer: string, image: string, how: string[] = []) => {
    const file = join(folder, `${writer}.json`)
    const items = Object.keys(kinds).map(kind => manifest(writer, kind as keyof typeof kinds, image))
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }))
    return kubectl("apply", ...how, "-f", file)
  }
  const names = Object.keys(writers)
  const all = names.flatMap(writer => Object.values(kinds).map(plural => `${plural}/${writer}`))
  const each = (): Promise<Json[]> =>
    Promise.all(all.map(name => api.get(`/apis/apps/v1/namespaces/${namespace}/${name}`)))
  const pods = async (): Promise<Json[]> => {
    const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=of`)
    return items.sort((a: Json, b: Json) => (a.metadata.uid < b.metadata.uid ? -1 : 1))
  }
  const isReady = ({ status }: Json) => (status.readyReplicas ?? status.numberReady) === 1
  await Promise.all(names.map(writer => apply(writer, images[0]!, writers[writer]!.make)))
  await until("all are ready", async () => (await each()).every(isReady))
  const before = { pods: await pods(), strategies: (await each()).map(strategyOf) }
  await until("the policy is in force", async () => {
    const tried = ["set", "image", all[0]!, `web=${images[1]}`, "--dry-run=server", "-o", "json"]
    return (await kubectl(...tried)).includes('"paused": true')
  })

  for (const kind of Object.keys(kinds))
    await createServiceImage(`${namespace}-${kind.toLowerCase()}`, {
      target: {
        ...{ apiVersion: "apps/v1", kind, image: { container: "web" } },
        selector: { matchLabels: { fleet: `${namespace}-own` } },
      },
      defaultImage: images[1],
      tiers: [{ upgradeTier: "", updateStrategy: "InPlaceOnly" }],
    })
  for (const writer of names) for (const how of writers[writer]!.writes ?? []) await apply(writer, images[1]!, how)

  const isDone = (object: Json) =>
    isFree(object) && object.metadata.annotations[inPlaceAnnotation]?.includes('"Completed"')
  await until("all are complete", async () => (await each()).every(isDone))
  const after = await pods()
  expect(after.map(identity)).toEqual(before.pods.map(identity))
  expect(after.map(pod => [pod.spec.containers[0].image, statusOf(pod, "web").restartCount])).toEqual(
    after.map(() => [images[1], 1]),
  )
  expect((await each()).map(strategyOf)).toEqual(before.strategies)
  for (const kind of Object.keys(kinds)) await complete(`${namespace}-${kind.toLowerCase()}`)
  for (const name of all) await kubectl("rollout", "status", name, "--timeout=60s")
})

const strategyOf = ({ spec }: Json) => ({ paused: spec.paused ?? false, ...spec.strategy, ...spec.updateStrategy })

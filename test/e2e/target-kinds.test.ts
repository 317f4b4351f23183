import { randomBytes } from "node:crypto"
import { expect, onTestFinished, test } from "vitest"
import { hasImage, type Member } from "#core/fleet/member.ts"
import { decisionAnnotation, formatDecision, type ImageRecord, imagesBefore } from "#core/image/record.ts"
import { type Images, type TargetReader, targetReader, touchPatch } from "#core/workloads/target-reader.ts"
import { connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { floor, type Json, onKwok, quickEnd, uniqueNamespace, until } from "#test/support/floor.ts"

/** The product's client, so that the server also judges the content types and the field manager. */
async function connectClient() {
  const { transport } = await connect({ kubeconfig: floor().kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  onTestFinished(() => client.close())
  return client
}

const decision = (reader: TargetReader, member: Member, to: string): ImageRecord => ({
  ...reader.recordOf(member),
  to,
  reason: "Stamped",
  operation: "g1",
  by: "serviceimage/web",
  at: Date.parse("2026-01-01T00:00:00Z"),
})

/** One object, read and stamped as a controller would. */
async function subject(resource: Resource, namespace: string, name: string, reader: TargetReader) {
  const client = await connectClient()
  const where = { namespace, name }
  const get = (): Promise<Json> => client.get<KubeObject>(resource, where)
  const read = async () => reader.read(await get())
  const patchTo = (member: Member, to: string, images: Images = to) =>
    reader.patchFor(member, images, { [decisionAnnotation]: formatDecision(decision(reader, member, to)) })
  return {
    get,
    read,
    stamp: (member: Member, to: string, images: Images = to) =>
      client.patch(resource, where, patchTo(member, to, images)),
    /** Its controllers write too: once more on what they wrote. */
    stampLatest: (to: string) =>
      until(`${to} to arrive`, async () => {
        const before = await read()
        return { before, after: reader.read(await client.patch(resource, where, patchTo(before, to))) }
      }),
    touch: (value: string) => client.patch(resource, where, touchPatch(value)),
    upToDate: () => until(`${resource.kind} ${name} to be up to date`, async () => (await read()).isUpToDate),
  }
}

/** All of an object but what the server and its controllers count and note, and the image of one container. */
function remainder(object: Json, container: string): Json {
  const { spec, metadata } = structuredClone(object)
  const { initContainers, containers } = spec.template.spec
  for (const each of [...initContainers, ...containers]) if (each.name === container) each.image = ""
  return { spec, labels: metadata.labels }
}

const apps = (kind: string, plural: string): Resource => ({
  group: "apps",
  version: "v1",
  kind,
  plural,
  namespaced: true,
})
const podSpec = {
  ...onKwok,
  ...quickEnd,
  initContainers: [{ name: "init", image: "shop/init:1", env: [{ name: "A", value: "1" }] }],
  containers: [
    { name: "log", image: "shop/log:1" },
    { name: "app", image: "shop/web:1", ports: [{ containerPort: 80 }], args: ["serve"] },
  ],
}
const workload = (kind: string, more: object = {}) => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: "web", labels: { a: "1" } },
  spec: {
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: podSpec },
    ...more,
  },
})

const workloads = [
  { resource: apps("Deployment", "deployments"), manifest: workload("Deployment", { replicas: 2 }) },
  {
    resource: apps("StatefulSet", "statefulsets"),
    manifest: workload("StatefulSet", { replicas: 2, serviceName: "web" }),
  },
  { resource: apps("DaemonSet", "daemonsets"), manifest: workload("DaemonSet") },
]
for (const { resource, manifest } of workloads)
  test(`a ${resource.kind} is stamped by container, becomes up to date, and names the writer that changes it back`, async () => {
    const namespace = await uniqueNamespace()
    await floor().api.create(`/apis/apps/v1/namespaces/${namespace}/${resource.plural}`, manifest)
    for (const [container, from, to] of [
      ["app", "shop/web:1", "shop/web:2"],
      ["init", "shop/init:1", "shop/init:2"],
    ] as const) {
      const reader = targetReader({ kind: resource.kind, image: { container }, health: "" })
      const { get, read, stamp, stampLatest, touch, upToDate } = await subject(resource, namespace, "web", reader)
      await upToDate()
      const all = await get()

      const { before, after: stamped } = await stampLatest(to)
      expect(before).toMatchObject({ image: from, isDeployed: true, replicas: expect.toSatisfy(count => count >= 2) })
      expect(stamped).toMatchObject({ image: to, isUpToDate: false, isDeployed: true, problem: undefined })
      expect(stamped.decision).toEqual({ ...decision(reader, before, to), wasDeployed: true })
      expect(remainder(await get(), container)).toEqual(remainder(all, container))
      // What was decided from the version before no longer arrives.
      await expect(stamp(before, from)).rejects.toMatchObject({ reason: "Conflict" })
      await upToDate()

      const settled = await read()
      await touch(`leader-for-${container}`)
      await expect(stamp(settled, from)).rejects.toMatchObject({ reason: "Conflict" })
      // A Deployment's generation moves with its annotations, and its controller has to see that.
      await upToDate()
      expect(await read()).toMatchObject({ image: to, contestedBy: undefined })

      // Another writer puts the old image back, and is named.
      await floor().kubectlRun("-n", namespace, "set", "image", `${resource.plural}/web`, `${container}=${from}`)
      expect(await read()).toMatchObject({ image: from, contestedBy: "kubectl-set" })
      expect((await stampLatest(to)).after).toMatchObject({ image: to, contestedBy: undefined })
    }
  })

test("a custom kind is stamped at two paths, by its own health, and each path goes back to what it was", async () => {
  const group = `${randomBytes(4).toString("hex")}.example.com`
  const resource: Resource = { group, version: "v1", kind: "Shop", plural: "shops", namespaced: true }
  await installShops(group)
  const namespace = await uniqueNamespace()
  const path = `/apis/${group}/v1/namespaces/${namespace}/shops`
  const spec = { image: "shop/web:1", size: 3, sidecar: { args: ["x"] } }
  await floor().api.create(path, { apiVersion: `${group}/v1`, kind: "Shop", metadata: { name: "a" }, spec })
  const reader = targetReader({
    kind: "Shop",
    image: { paths: ["spec.image", "spec.sidecar.image"] },
    health: "object.status.ready == object.spec.size && object.status.pods.all(pod, pod.image == object.spec.image)",
  })
  const { get, read, stamp } = await subject(resource, namespace, "a", reader)
  const report = (status: object) => floor().api.patch(`${path}/a/status`, { status })

  expect(await read()).toMatchObject({ images: ["shop/web:1", ""], isUpToDate: false, healthProblem: undefined })
  await report({ ready: 3, pods: [{ image: "shop/web:1" }] })
  const before = await read()
  expect(before).toMatchObject({ isUpToDate: true, isDeployed: true })

  const stamped = reader.read(await stamp(before, "shop/web:2"))
  expect(stamped).toMatchObject({ image: "shop/web:2", images: undefined, isUpToDate: false, isDeployed: true })
  expect((await get()).spec).toEqual({ image: "shop/web:2", size: 3, sidecar: { args: ["x"], image: "shop/web:2" } })
  await report({ pods: [{ image: "shop/web:2" }] })
  expect((await read()).isUpToDate).toBe(true)

  await floor().api.patch(`${path}/a?fieldManager=argocd`, { spec: { sidecar: { image: "shop/web:1" } } })
  const contested = await read()
  expect(contested).toMatchObject({ images: ["shop/web:2", "shop/web:1"], contestedBy: "argocd" })
  expect(hasImage(contested, "shop/web:2")).toBe(false)

  await stamp(contested, "shop/web:1", imagesBefore(stamped.decision!))
  expect((await get()).spec).toEqual(spec)
})

async function installShops(group: string): Promise<void> {
  const { api } = floor()
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
  const name = `shops.${group}`
  const text = { type: "string" }
  const sidecar = { type: "object", properties: { image: text, args: { type: "array", items: text } } }
  const pods = { type: "array", items: { type: "object", properties: { image: text } } }
  const properties = {
    spec: { type: "object", properties: { image: text, size: { type: "integer" }, sidecar } },
    status: { type: "object", properties: { ready: { type: "integer" }, pods } },
  }
  const version = { name: "v1", served: true, storage: true, subresources: { status: {} } }
  await api.create(definitions, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind: "Shop", plural: "shops" },
      versions: [{ ...version, schema: { openAPIV3Schema: { type: "object", properties } } }],
    },
  })
  onTestFinished(() => api.remove(`${definitions}/${name}`))
  await until("the kind to be served", () => api.find(`/apis/${group}/v1/shops`))
}

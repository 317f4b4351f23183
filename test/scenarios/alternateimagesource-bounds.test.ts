import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import type { Resource } from "#runtime/resource.ts"
import { deployment, failover, hub, quay, source, workload } from "#test/support/failover-story.ts"

// What one tenant can do to the others: nothing.

const quayIsDown = "registries: {quay.io: {fault: refused}}"
const replicaSets: Resource = {
  group: "apps",
  version: "v1",
  plural: "replicasets",
  kind: "ReplicaSet",
  namespaced: true,
}
const ownedBy = ({ metadata: { name, uid } }: Json) => ({
  metadata: { ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name, uid, controller: true }] },
})

test("objects that own themselves or each other hang nothing, and are looked after like the others", async () => {
  const { world, untilRunning, target } = await failover({ description: quayIsDown })
  const names = ["self", "one", "other"]
  await world.apply(...names.map(name => workload("ReplicaSet", name, `${quay}:1`, { spec: { replicas: 1 } })))
  const [self, one, other] = await Promise.all(names.map(name => world.get(replicaSets, name, "default")))
  await world.patch(replicaSets, "self", ownedBy(self!), "default")
  await world.patch(replicaSets, "one", ownedBy(other!), "default")
  await world.patch(replicaSets, "other", ownedBy(one!), "default")
  await world.apply(source(), deployment("neighbour", `${quay}:1`, { spec: { replicas: 1 } }))
  expect(await untilRunning(4)).toEqual(Array(4).fill(`${hub}:1`))
  await world.settle()
  for (const name of [...names, "neighbour"]) expect(await target(name)).toMatchObject({ currentRepository: hub })
})

test("of more sources than a namespace may have the oldest count, and the next one when one of them goes", async () => {
  const { world, untilRunning, condition, running, status } = await failover({ description: quayIsDown })
  const nameOf = (at: number) => `s${String(at).padStart(2, "0")}`
  const idle = { imageSourceReplacements: [{ equivalentRepositories: ["idle.example/app", hub] }] }
  for (let at = 0; at < 52; at++) await world.apply(source(at === 50 ? {} : idle, { name: nameOf(at) }))
  await world.apply(deployment("demo", `${quay}:1`))
  await world.advance("10m")
  expect(await running()).toEqual([])
  expect(await condition("Ready", "s49")).toMatchObject({ status: "True", reason: "Watching" })
  for (const name of ["s50", "s51"]) {
    expect(await condition("Ready", name)).toMatchObject({ status: "False", reason: "TooMany" })
    expect(await condition("Stalled", name)).toMatchObject({ status: "True", reason: "TooMany" })
    expect(await condition("Switched", name)).toMatchObject({ status: "False" })
  }

  await world.client.delete(alternateImageSources, { name: "s07", namespace: "default" })
  expect(await untilRunning(3)).toEqual(Array(3).fill(`${hub}:1`))
  expect(await status("s50")).toMatchObject({ switched: 1 })
  expect(await condition("Ready", "s51")).toMatchObject({ status: "False", reason: "TooMany" })
})

test("a container is called as it likes, and a pod says of itself what it likes", async () => {
  const { world, untilRunning, target, status, pods } = await failover({ description: quayIsDown })
  const pod = { containers: [{ name: "constructor", image: `${quay}:1` }] }
  await world.apply(source(), deployment("odd", `${quay}:1`, { pod, spec: { replicas: 1 } }))
  expect(await untilRunning(1)).toEqual([`${hub}:1`])
  const decision = JSON.parse((await pods())[0]?.metadata.annotations["autoimagemanager.io/last-decision"])
  expect(decision.was).toEqual({ constructor: `${quay}:1` })

  // Far from any time that a status can say.
  const written = JSON.stringify({ ...decision, was: { "basic-demo": `${quay}:1` }, at: "+012345-01-01T00:00:00Z" })
  const annotations = { "autoimagemanager.io/last-decision": written }
  const metadata = { name: "liar", namespace: "default", annotations }
  const spec = { containers: [{ name: "basic-demo", image: `${hub}:1` }] }
  await world.apply({ apiVersion: "v1", kind: "Pod", metadata, spec })
  await untilRunning(2)
  await world.settle()
  expect(await target("odd", "constructor")).toMatchObject({ currentRepository: hub, switches: [{ pods: 1 }] })
  expect(await status()).toMatchObject({ targets: 2, switched: 1 })
})

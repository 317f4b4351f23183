import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
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

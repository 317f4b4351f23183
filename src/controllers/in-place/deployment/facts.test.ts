import { expect, test } from "vitest"
import { readRevision } from "./facts.ts"

const replicaSet = (replicas: number, running: number) => ({
  metadata: { name: "web-1", ownerReferences: [{ kind: "Deployment", name: "web", uid: "d", controller: true }] },
  spec: { replicas, template: { spec: { containers: [{ name: "web", image: "web:1" }] } } },
  status: { replicas: running },
})

test("a ReplicaSet without pods has its template as well, and shares nothing with the object it was read from", () => {
  const [empty, ending, active] = [replicaSet(0, 0), replicaSet(0, 2), replicaSet(2, 2)]
  expect(readRevision(empty)?.template).toEqual(empty.spec.template)
  // An object of a few kilobytes each would be most of what is kept.
  expect(readRevision(empty)?.template).not.toBe(empty.spec.template)
  expect(readRevision(ending)?.template).toBe(ending.spec.template)
  expect(readRevision(active)?.template).toBe(active.spec.template)
})

import { expect, test } from "vitest"
import type { Client } from "./client/client.ts"
import type { Resource } from "./resource.ts"
import { statusWriter, type WithStatus } from "./status.ts"

const resource: Resource = { group: "x.io", version: "v1", plural: "toys", kind: "Toy", namespaced: true }
const toy = (resourceVersion: string, status = "", uid = "u"): WithStatus => ({
  apiVersion: "x.io/v1",
  kind: "Toy",
  metadata: { name: "a", namespace: "n", uid, resourceVersion },
  status,
})

/** Every write is answered with the next version. */
function writer() {
  let version = 1
  const replace = async (_: Resource, object: WithStatus) => {
    version++
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
  }
  return statusWriter<WithStatus>(
    { client: { replace } as unknown as Client, events: { record: () => {} } as never },
    resource,
  )
}

test("an own write counts until the cache shows it, and is not kept after that", async () => {
  const statuses = writer()
  await statuses.write(toy("1"), "new")
  expect(statuses.newest(toy("1"))).toEqual(toy("2", "new"))
  expect(statuses.newest(toy("2", "new"))).toEqual(toy("2", "new"))
  // Nothing of it is left: an older copy, which no cache shows any more, is taken as it is.
  expect(statuses.newest(toy("1"))).toEqual(toy("1"))
})

test("an own write does not count for another object of the same name", async () => {
  const statuses = writer()
  await statuses.write(toy("1"), "new")
  expect(statuses.newest(toy("1", "", "another"))).toEqual(toy("1", "", "another"))
})

import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { createCluster } from "../../cluster.ts"
import type { Json } from "../../object.ts"
import { resourceQuotaController } from "./resource-quota.ts"

function world() {
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const { storage, start } = createCluster({ clock, parts: [resourceQuotaController] })
  start()
  const kind = (name: string) => storage.kind("v1", name)!
  const at = (name: string) => ({ namespace: "default", name })
  return {
    clock,
    create: (name: string, object: string, more: Json = {}) =>
      storage.create(kind(name), { ...more, metadata: at(object) }),
    remove: (name: string, object: string) => storage.delete(kind(name), at(object)),
    patch: (name: string, object: string, body: Json) => storage.patch(kind(name), at(object), { type: "merge", body }),
    quota: () => storage.get(kind("ResourceQuota"), at("q")),
    used: () => storage.get(kind("ResourceQuota"), at("q")).status.used,
  }
}

test("a create is charged at once, a delete is freed, and a recount gives the same", async () => {
  const { clock, create, remove, used } = world()
  create("ConfigMap", "a")
  create("ResourceQuota", "q", { spec: { hard: { configmaps: "2", secrets: "5" } } })
  await clock.advance(100)
  expect(used()).toEqual({ configmaps: "1", secrets: "0" })
  create("ConfigMap", "b")
  expect(used().configmaps).toBe("2")
  expect(() => create("ConfigMap", "c")).toThrow(
    'configmaps "c" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2',
  )
  await clock.advance(1000)
  remove("ConfigMap", "a")
  await clock.advance(100)
  expect(used()).toEqual({ configmaps: "1", secrets: "0" })
  create("ConfigMap", "c")
  await clock.advance(3_600_000)
  expect(used()).toEqual({ configmaps: "2", secrets: "0" })
})

test("a changed limit is copied to the status, and a charge does not cause a recount", async () => {
  const { clock, create, patch, quota } = world()
  create("ResourceQuota", "q", { spec: { hard: { configmaps: "2" } } })
  await clock.advance(100)
  create("ConfigMap", "a")
  const charged = quota().metadata.resourceVersion
  await clock.advance(1000)
  expect(quota().metadata.resourceVersion).toBe(charged)
  patch("ResourceQuota", "q", { spec: { hard: { configmaps: "1" } } })
  await clock.advance(100)
  expect(quota().status).toEqual({ hard: { configmaps: "1" }, used: { configmaps: "1" } })
})

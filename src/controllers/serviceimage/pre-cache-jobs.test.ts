import { expect, test } from "vitest"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { CacheOptions, Projected } from "#runtime/cache/cache.ts"
import { stillCache } from "#runtime/cache/still.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { hasPreCache, PreCacheJobs } from "./pre-cache-jobs.ts"

const spec = {
  image: "web:2",
  selector: { names: ["n1"] },
  pullSecrets: [],
  parallelism: "100%",
  pullPolicy: { backoffLimit: 100, timeoutSeconds: 600 },
  completionPolicy: { type: "Never" },
}
const conditions = [{ type: "Ready", status: "True", reason: "Present", message: "" }]
const job = (name: string, generation: number, owner: object) =>
  ({
    metadata: { name, namespace: "n", uid: name, resourceVersion: "1", generation, ownerReferences: [owner] },
    spec,
    status: { observedGeneration: 1, conditions, succeeded: 1, failedNodes: [] },
  }) as unknown as KubeObject
const ours = { kind: "ServiceImage", name: "web", uid: "u", controller: true }

function world(...objects: KubeObject[]) {
  let opened = 0
  const watch = <T extends Projected>(_: Resource, options: CacheOptions<T>) => {
    opened++
    return { ...stillCache<T>(objects, options), close: () => opened-- }
  }
  return { jobs: new PreCacheJobs({ watch, enqueue: () => {}, enqueueAfter: () => {} }), opened: () => opened }
}
const serviceImage = (preCache: "Never" | "BeforeTier", status?: object) =>
  ({
    metadata: { name: "web", uid: "u" },
    spec: ServiceImage.spec.parse({ target: { apiVersion: "a/v1", kind: "A" }, defaultImage: "web:2", preCache }),
    ...(status && { status: { tierStatus: [], ...status } }),
  }) as unknown as ServiceImage

test("jobs of this ServiceImage, and what they say of their present spec", () => {
  const { jobs } = world(
    job("seen", 1, ours),
    job("changed", 2, ours),
    job("other", 1, { ...ours, uid: "v" }),
    job("list", 1, { ...ours, kind: "ImageListPullJob" }),
  )
  const found = jobs.of(serviceImage("BeforeTier"))!
  expect([...found.jobs.keys()]).toEqual(["n/seen", "n/changed"])
  expect(found.jobs.get("n/seen")!.said).toMatchObject({ isReady: true, succeeded: 1 })
  expect(found.jobs.get("n/changed")!.said).toBeUndefined()
})

test("nothing is watched before a ServiceImage needs it, and nothing after the last one did", () => {
  const { jobs, opened } = world()
  expect(jobs.of(serviceImage("Never"))).toBeUndefined()
  expect(opened()).toBe(0)
  jobs.of(serviceImage("BeforeTier"))
  jobs.of(serviceImage("BeforeTier"))
  expect(opened()).toBe(1)
  jobs.of(serviceImage("Never", { pullJobs: 2 }))
  expect(opened()).toBe(1)
  jobs.of(serviceImage("Never", { pullJobs: 0 }))
  expect(opened()).toBe(0)
  expect(hasPreCache(serviceImage("Never", { pullJobs: 1 }))).toBe(true)
})

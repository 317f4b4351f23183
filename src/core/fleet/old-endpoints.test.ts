import { expect, test } from "vitest"
import { oldEndpoints } from "./old-endpoints.ts"

const images: Record<string, string[]> = {
  "a/new": ["shop/web:2", "mesh/proxy:1"],
  "a/old": ["shop/web:1", "mesh/proxy:1"],
  "a/both": ["shop/web:1", "shop/web:2"],
  "a/other": ["shop/api:1"],
  "b/old": ["docker.io/shop/web:1"],
  "a/early": ["shop/web:3"],
}
const behind = (service: string, ...pods: (string | undefined)[]) => ({
  service,
  endpoints: pods.map(pod => ({ pod })),
})
const found = (...slices: ReturnType<typeof behind>[]) =>
  oldEndpoints(slices, ["shop/web:2", "shop/web:3"], key => images[key]).map(({ service, pod }) => `${service} ${pod}`)

test("a pod of the same repository with none of the images is old, and named once for each Service", () => {
  expect(found(behind("a/web", "new", "old"), behind("a/web", "old"), behind("a/all", "old"))).toEqual([
    "a/all a/old",
    "a/web a/old",
  ])
})
test("a repository is the same in whatever way it is written", () =>
  expect(found(behind("b/web", "old"))).toEqual(["b/web b/old"]))
test("other software, the image of another tier, and a pod that has the image beside another are not", () =>
  expect(found(behind("a/web", "other", "early", "both"))).toEqual([]))
test("nothing is said of a pod that is not known, an endpoint without a pod, and a slice without a Service", () =>
  expect(found(behind("a/web", "gone", undefined), behind("", "old"))).toEqual([]))
test("an image that cannot be read names no repository", () =>
  expect(oldEndpoints([behind("a/web", "old")], ["not an image"], () => ["also none"])).toEqual([]))

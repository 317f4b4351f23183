import { expect, test } from "vitest"
import { readPod } from "./pod.ts"

const pod = (metadata: object = {}, phase = "Running") => ({
  metadata: { name: "web-0", namespace: "shop", uid: "1", resourceVersion: "7", ...metadata },
  spec: { containers: [{ name: "web", image: "web:1" }] },
  status: { phase },
})

test("a pod that runs", () => {
  expect(readPod(pod())).toMatchObject({ name: "web-0", uid: "1", resourceVersion: "7", node: "", isReady: false })
})

for (const [what, object] of Object.entries({
  "a pod that ends": pod({ deletionTimestamp: "2026-01-01T00:00:00Z" }),
  "a pod that has ended": pod({}, "Succeeded"),
  "a pod that has failed": pod({}, "Failed"),
  "a static pod": pod({ annotations: { "kubernetes.io/config.mirror": "x" } }),
}))
  test(`${what} is not touched`, () => expect(readPod(object)).toBeUndefined())

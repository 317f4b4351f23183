import { describe, expect, test } from "vitest"
import type { KubeObject } from "#runtime/resource.ts"
import { readPod, readWorkload } from "./facts.ts"

const pod = (waiting: object, more: object = {}): KubeObject =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "shop", labels: { "controller-revision-hash": "web-1" } },
    spec: { nodeName: "node-1", containers: [{ name: "app", image: "quay.io/app:1", ...more }] },
    status: { phase: "Pending", containerStatuses: [{ name: "app", restartCount: 0, state: { waiting } }] },
  }) as unknown as KubeObject

describe("a container that waits for its image", () => {
  const said = (message: string, reason = "ErrImagePull") => readPod(pod({ reason, message }))

  test("fails, with its node, its revision and the end of a long message", () => {
    const status = `unexpected status from HEAD request to https://quay.io/v2/${"app/".repeat(80)}manifests/1: 503 Service Unavailable`
    const { failing, node, revision } = said(`failed to pull and unpack image "quay.io/app:1": ${status}`)
    expect([node, revision]).toEqual(["node-1", "web-1"])
    expect(failing).toMatchObject([{ name: "app", failure: "Unreachable", pullsAlways: false }])
    expect(failing[0]?.message).toMatch(/^failed to pull .*….*503 Service Unavailable$/)
    expect(failing[0]?.message).toHaveLength(256)
  })
  test("is held back by its node, which is no failure of a registry", () => {
    for (const [reason, message] of [
      ["ErrImagePull", "pull QPS exceeded"],
      ["ImagePullBackOff", 'Back-off pulling image "quay.io/app:1": ErrImagePull: pull QPS exceeded'],
    ] as const)
      expect(said(message, reason).failing).toMatchObject([{ name: "app", failure: undefined }])
  })
  test("is not held back because an image says so", () =>
    expect(said('failed to pull "quay.io/pull QPS exceeded": connection refused').failing).toMatchObject([
      { failure: "Unreachable" },
    ]))
  test("or for anything else that no registry could mend", () => {
    expect(said("dial unix /run/containerd.sock: connection refused").failing).toEqual([])
    expect(said("pull QPS exceeded", "CrashLoopBackOff").failing).toEqual([])
  })
  test("pulls even what its node has, where its policy says so", () =>
    expect(readPod(pod({ reason: "ErrImagePull", message: "" }, { imagePullPolicy: "Always" })).failing).toMatchObject([
      { pullsAlways: true },
    ]))
})

test("a StatefulSet's revision is known once its controller has seen the template", () => {
  const set = (generation: number, observedGeneration: number) =>
    readWorkload({
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "db", namespace: "shop", generation },
      status: { observedGeneration, updateRevision: "db-2" },
    } as unknown as KubeObject).revision
  expect([set(2, 2), set(3, 2)]).toEqual(["db-2", undefined])
})

import { describe, expect, it } from "vitest"
import { checksumOf } from "#core/canary/checksum.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { podReader } from "./facts.ts"
import { keepRevision, keepWorkload } from "./kept.ts"

const template = {
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "web", image: "web:1", envFrom: [{ configMapRef: { name: "settings" } }] }] },
}

const deployment = (change: object = {}): KubeObject =>
  ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: "web",
      namespace: "shop",
      uid: "u1",
      resourceVersion: "7",
      labels: { team: "shop", "autoimagemanager.io/held": "canary" },
      annotations: {
        "deployment.kubernetes.io/revision": "3",
        "kubectl.kubernetes.io/last-applied-configuration": "{ as long as the object itself }",
      },
      managedFields: [{ manager: "kubectl" }],
    },
    spec: { replicas: 3, selector: { matchLabels: { app: "web" } }, template },
    status: {
      observedGeneration: 2,
      conditions: [
        { type: "Available", status: "True", message: "Deployment has minimum availability." },
        { type: "Progressing", status: "Unknown", reason: "DeploymentPaused" },
      ],
    },
    ...change,
  }) as unknown as KubeObject

describe("a workload in the cache", () => {
  it("has its template whole for writes, and what a look asks of it", () => {
    const { object, resourceVersion } = keepWorkload(deployment())
    expect(resourceVersion).toBe("7")
    expect(object.template.whole).toEqual(template)
    expect(object.template.facts).toEqual({
      checksum: checksumOf(template),
      configs: { refs: [{ key: "configmap/settings", isOptional: false }], mark: "" },
      images: ["web:1"],
    })
  })

  it("has nothing that no run reads", () => {
    const { metadata, spec, status } = keepWorkload(deployment()).object
    expect(metadata).toEqual({
      ...{ name: "web", namespace: "shop", uid: "u1", resourceVersion: "7" },
      labels: { "autoimagemanager.io/held": "canary" },
      annotations: { "deployment.kubernetes.io/revision": "3" },
    })
    expect(spec).toEqual({ replicas: 3, selector: { matchLabels: { app: "web" } } })
    expect(status).toEqual({
      observedGeneration: 2,
      conditions: [{ type: "Progressing", status: "Unknown", reason: "DeploymentPaused" }],
    })
  })

  it("shares the template with the version before, if that is the same", () => {
    const before = keepWorkload(deployment())
    const same = keepWorkload(deployment({ status: { observedGeneration: 3 } }), before)
    expect(same.object.template).toBe(before.object.template)
    const spec = { replicas: 3, template: { ...template, spec: { containers: [{ name: "web", image: "web:2" }] } } }
    const other = keepWorkload(deployment({ spec }), before)
    expect(other.object.template.facts.images).toEqual(["web:2"])
  })

  it("may be without a status or a template", () => {
    const { object } = keepWorkload({ metadata: { name: "web", resourceVersion: "1" } } as KubeObject)
    expect(object.status).toEqual({ conditions: [] })
    expect(object.template.facts.images).toEqual([])
  })
})

it("a ControllerRevision has the template without the word that makes it a patch", () => {
  const data = { spec: { template: { $patch: "replace", ...template } } }
  const { object } = keepRevision({ metadata: { name: "db-1", resourceVersion: "4" }, data, revision: 2 } as never)
  expect(object.revision).toBe(2)
  expect(object.template.whole).toEqual(template)
  expect(object).not.toHaveProperty("data")
})

it("pods of one revision have its labels and owner in common, and others their own", () => {
  const read = podReader()
  const pod = (name: string, uid: string, hash: string) =>
    read({
      metadata: {
        ...{ name, uid: name, resourceVersion: "1", labels: { app: "web", "pod-template-hash": hash } },
        ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid, controller: true }],
      },
    } as KubeObject)
  const [first, second, other] = [pod("web-a", "u1", "h1"), pod("web-b", "u1", "h1"), pod("web-c", "u2", "h2")]
  expect(second.labels).toBe(first.labels)
  expect([first, second, other].map(({ uid, owner, hash, labels }) => [uid, owner, hash, labels])).toEqual([
    ["web-a", "u1", "h1", { app: "web", "pod-template-hash": "h1" }],
    ["web-b", "u1", "h1", { app: "web", "pod-template-hash": "h1" }],
    ["web-c", "u2", "h2", { app: "web", "pod-template-hash": "h2" }],
  ])
})

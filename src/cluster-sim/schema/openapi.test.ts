import { expect, test } from "vitest"
import { openApiSchemas } from "./openapi.ts"
import { definitionName, kubernetesSchema, resolve } from "./table.ts"

// test/e2e/schemas.test.ts compares all of it with a real server.

test("a field has its text, its type, its values and how it is merged", async () => {
  const schemas = await openApiSchemas("apps/v1")
  const deployment = schemas["io.k8s.api.apps.v1.Deployment"]
  expect(deployment).toMatchObject({
    type: "object",
    description: "Deployment enables declarative updates for Pods and ReplicaSets.",
    "x-kubernetes-group-version-kind": [{ group: "apps", version: "v1", kind: "Deployment" }],
  })
  expect(schemas["io.k8s.api.core.v1.PodSpec"].properties.containers).toMatchObject({
    type: "array",
    items: { allOf: [{ $ref: "#/components/schemas/io.k8s.api.core.v1.Container" }], default: {} },
    "x-kubernetes-list-map-keys": ["name"],
    "x-kubernetes-patch-merge-key": "name",
  })
  const { description, enum: values } = schemas["io.k8s.api.core.v1.Container"].properties.imagePullPolicy
  expect(values).toEqual(["Always", "IfNotPresent", "Never"])
  expect(description).toContain("Possible enum values:")
})

test("every reference leads to a schema of the same document, and no kind of another version is listed", async () => {
  for (const apiVersion of ["v1", "apps/v1", "apiextensions.k8s.io/v1"]) {
    const schemas = await openApiSchemas(apiVersion)
    const text = JSON.stringify(schemas)
    for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      expect(schemas).toHaveProperty([name])
  }
  expect(Object.keys(await openApiSchemas("v1"))).not.toContain("io.k8s.api.apps.v1.Deployment")
})

test("kinds are found by version and name, in both groups they are served in", () => {
  expect(definitionName("apps/v1", "Deployment")).toBe("io.k8s.api.apps.v1.Deployment")
  expect(definitionName("v1", "Event")).toBe("io.k8s.api.core.v1.Event")
  expect(definitionName("events.k8s.io/v1", "Event")).toBe("io.k8s.api.events.v1.Event")
  expect(definitionName("apps/v1", "Pod")).toBeUndefined()
  expect(kubernetesSchema("autoscaling/v1", "Scale")?.properties).toHaveProperty("spec")
})

test("a use adds to the type it names; an inline node is itself", () => {
  const strategy = resolve(resolve("io.k8s.api.apps.v1.DeploymentSpec").properties!.strategy!)
  expect(strategy).toMatchObject({ type: "object", patchStrategy: "retainKeys", zero: {} })
  expect(strategy.properties).toHaveProperty("rollingUpdate")
  const inline = { type: "string" } as const
  expect(resolve(inline)).toBe(inline)
  expect(() => resolve("io.k8s.api.none")).toThrow("no io.k8s.api.none")
  // The type is atomic, and this use of it is granular.
  expect(resolve("io.k8s.api.core.v1.ObjectReference").isAtomic).toBe(true)
  const { claimRef } = resolve("io.k8s.api.core.v1.PersistentVolumeSpec").properties!
  expect(resolve(claimRef!).isAtomic).toBe(false)
})

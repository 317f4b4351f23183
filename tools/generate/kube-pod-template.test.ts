import { expect, test } from "vitest"
import types from "#cluster-sim/physics/kube-controllers/pod-template-types.generated.json" with { type: "json" }
import { kubernetesVersion } from "./kube-pod-template.ts"

test("the structs of a pod template are of the version that the real floor runs", async () => {
  expect(types.kubernetes, "run node tools/generate/kube-pod-template.ts").toBe(await kubernetesVersion())
})

test("every type that a field names is known, so that none is printed as something else", () => {
  const specials = ["v1.Time", "v1.FieldsV1", "intstr.IntOrString", "resource.Quantity"]
  const builtIn = ["bool", "string", "int32", "int64", "float64", "uint8"]
  const known = new Set([...Object.keys(types.structs), ...Object.keys(types.named), ...specials, ...builtIn])
  const named = Object.values(types.structs)
    .flat()
    .map(field => field.split(" ").slice(2).join(" "))
  const parts = [...named, ...Object.values(types.named)].flatMap(type => type.match(/[\w.]+/g) ?? [])
  expect([...new Set(parts)].filter(part => part !== "map" && !known.has(part))).toEqual([])
})

import { expect, test } from "vitest"
import { formats } from "./formats.ts"
import { schemaOf } from "./props.ts"

test("a schema as patches and server-side apply read it", () => {
  const schema = schemaOf({
    type: "object",
    properties: {
      plain: { type: "array", items: { type: "string" } },
      set: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
      map: {
        type: "array",
        items: { type: "object" },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
      },
      atomic: { type: "object", "x-kubernetes-map-type": "atomic", additionalProperties: { type: "string" } },
      granular: { type: "object", additionalProperties: true },
      either: { "x-kubernetes-int-or-string": true },
      any: { "x-kubernetes-preserve-unknown-fields": true },
      embedded: { type: "object", "x-kubernetes-embedded-resource": true },
    },
  })
  expect(schema.properties).toMatchObject({
    plain: { type: "array", listType: "atomic" },
    set: { listType: "set" },
    map: { listType: "map", listMapKeys: ["k"] },
    atomic: { type: "object", isAtomic: true, additional: { type: "string" } },
    granular: { type: "object", additional: { type: "any" } },
    either: { type: "int-or-string" },
    any: { type: "any", preservesUnknown: true },
    embedded: { properties: { metadata: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" } },
    metadata: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
  })
  expect(schema.properties?.granular).not.toHaveProperty("isAtomic")
})

const cases: Record<string, { good: string[]; bad: string[] }> = {
  "date-time": { good: ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00"], bad: ["2026-01-02", "now"] },
  date: { good: ["2026-01-02"], bad: ["2026-13-02", "2026-01-02T00:00:00Z"] },
  uuid: { good: ["01234567-89ab-cdef-0123-456789abcdef"], bad: ["0123"] },
  ipv4: { good: ["10.0.0.1"], bad: ["10.0.0.256", "::1"] },
  ipv6: { good: ["::1"], bad: ["10.0.0.1"] },
  cidr: { good: ["10.0.0.0/8", "fd00::/64"], bad: ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/8/8", "a/8"] },
  duration: { good: ["5m", "1h30m"], bad: ["5", "soon"] },
  byte: { good: ["", "aGk="], bad: ["a"] },
}
for (const [format, { good, bad }] of Object.entries(cases))
  test(format, () => {
    for (const text of good) expect(formats[format]!(text), text).toBe(true)
    for (const text of bad) expect(formats[format]!(text), text).toBe(false)
  })

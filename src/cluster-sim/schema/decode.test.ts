import { expect, test } from "vitest"
import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type DecodeOptions, decode, parseBody } from "./decode.ts"
import { kubernetesSchema } from "./table.ts"

// Every refusal and every value below was first seen on a real kube-apiserver 1.36.3.

const deployment = (): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", labels: { a: "1" } },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "c", image: "i:1", ports: [{ containerPort: 80 }] }] },
    },
  },
})

const options: DecodeOptions = { apiVersion: "apps/v1", kind: "Deployment" }
const schema = kubernetesSchema("apps/v1", "Deployment")!
const container = (object: Json) => object.spec.template.spec.containers[0]

function refusal(act: () => unknown): StatusError {
  try {
    act()
  } catch (error) {
    if (error instanceof StatusError) return error
    throw error
  }
  throw new Error("it was taken")
}

const wrongTypes: Record<string, [(object: Json) => void, string]> = {
  "text for a number": [
    object => (object.spec.replicas = "3"),
    "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
  ],
  "a fraction for a whole number": [
    object => (object.spec.replicas = 1.5),
    "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
  ],
  "a number past 32 bits": [
    object => (object.spec.replicas = 99_999_999_999),
    "json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
  ],
  "an object for a number": [
    object => (object.spec.replicas = {}),
    "json: cannot unmarshal object into Go struct field DeploymentSpec.spec.replicas of type int32",
  ],
  "a number for a name": [
    object => (object.metadata.name = 3),
    "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
  ],
  "a number for a label": [
    object => (object.metadata.labels.b = 3),
    "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
  ],
  "an object for a list": [
    object => (object.spec.template.spec.containers = {}),
    "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
  ],
  "text for an item": [
    object => (object.spec.template.spec.containers = ["x"]),
    "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
  ],
  "a number for an image": [
    object => (container(object).image = 3),
    "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string",
  ],
  "a list for a spec": [
    object => (object.spec = []),
    "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
  ],
  "text for a switch": [
    object => (object.spec.paused = "yes"),
    "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool",
  ],
  "text for a port": [
    object => (container(object).ports[0].containerPort = "80"),
    "json: cannot unmarshal string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32",
  ],
  "a switch for a number or percentage": [
    object => (object.spec.strategy = { rollingUpdate: { maxSurge: true } }),
    "json: cannot unmarshal bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
  ],
  "a fraction for a number or percentage": [
    object => (object.spec.strategy = { rollingUpdate: { maxSurge: 1.5 } }),
    "json: cannot unmarshal number 1.5 into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
  ],
  "no quantity": [
    object => (container(object).resources = { limits: { cpu: "abc" } }),
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  "an unknown suffix of a quantity": [
    object => (container(object).resources = { limits: { memory: "1K" } }),
    "unable to parse quantity's suffix",
  ],
  "no time": [
    object => (object.metadata.creationTimestamp = "yesterday"),
    'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
  ],
  "a number for a time": [
    object => (object.metadata.creationTimestamp = 3),
    "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
  ],
}

for (const [name, [change, words]] of Object.entries(wrongTypes))
  test(`refuses ${name}`, () => {
    const object = deployment()
    change(object)
    expect(refusal(() => decode(schema, object, options))).toMatchObject({
      code: 400,
      reason: "BadRequest",
      message: `Deployment in version "v1" cannot be handled as a Deployment: ${words}`,
    })
  })

test("other kinds and versions are refused, and a body without them gets those of the path", () => {
  const message = (change: Json) => refusal(() => decode(schema, { ...deployment(), ...change }, options)).message
  expect(message({ kind: "ReplicaSet" })).toBe(
    'ReplicaSet in version "v1" cannot be handled as a Deployment: converting (v1.ReplicaSet) to (apps.Deployment): unknown conversion',
  )
  expect(message({ apiVersion: "apps/v1beta9" })).toBe(
    'Deployment in version "v1beta9" cannot be handled as a Deployment: no kind "Deployment" is registered for version "apps/v1beta9" in scheme "pkg/runtime/scheme.go:111"',
  )
  const { kind: _, apiVersion: __, ...bare } = deployment()
  expect(decode(schema, bare, options).value).toMatchObject({ apiVersion: "apps/v1", kind: "Deployment" })
})

test("secrets and leases: bytes and microseconds", () => {
  const secret = (data: Json) => () =>
    decode(kubernetesSchema("v1", "Secret")!, { metadata: { name: "s" }, data }, { apiVersion: "v1", kind: "Secret" })
  expect(refusal(secret({ a: "%%" })).message).toBe(
    'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0',
  )
  expect(refusal(secret({ a: 3 })).message).toBe(
    'Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal number into Go struct field Secret.data of type []uint8',
  )
  const lease = (renewTime: string) => () =>
    decode(
      kubernetesSchema("coordination.k8s.io/v1", "Lease")!,
      { metadata: { name: "l" }, spec: { renewTime } },
      { apiVersion: "coordination.k8s.io/v1", kind: "Lease" },
    )
  expect(refusal(lease("2020-01-01T00:00:00Z")).message).toBe(
    'Lease in version "v1" cannot be handled as a Lease: parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
  )
  expect(lease("2020-01-01T02:00:00.123456+02:00")().value.spec.renewTime).toBe("2020-01-01T00:00:00.123456Z")
})

test("unknown fields are reported in their order, and dropped", () => {
  const object = deployment()
  object.metadata.qq = 1
  container(object).bar = 2
  object.spec.foo = 1
  object.zed = 1
  const paths = ["metadata.qq", "spec.template.spec.containers[0].bar", "spec.foo", "zed"]
  const told = paths.map(path => `unknown field "${path}"`)
  const { value, warnings } = decode(schema, object, options)
  expect(warnings).toEqual(told)
  expect(value).toEqual(decode(schema, deployment(), options).value)
  expect(decode(schema, object, { ...options, validation: "Ignore" }).warnings).toEqual([])
  expect(refusal(() => decode(schema, object, { ...options, validation: "Strict" })).message).toBe(
    `Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: ${told.join(", ")}`,
  )
})

test("field names are case-sensitive", () => {
  const object = deployment()
  object.spec.Replicas = 5
  expect(decode(schema, object, options).warnings).toEqual(['unknown field "spec.Replicas"'])
})

test("duplicate keys are found in the text", () => {
  const text = JSON.stringify(deployment())
    .replace('"replicas":1', '"replicas":1,"replicas":2')
    .replace('"a":"1"', '"a":"1","a":"2"')
  const { value, warnings } = decode(schema, JSON.parse(text), { ...options, text })
  expect(warnings).toEqual(['duplicate field "metadata.labels.a"', 'duplicate field "spec.replicas"'])
  expect(value.spec.replicas).toBe(2)
})

test("a field without a value is left out or written as the server writes it", () => {
  const object = deployment()
  object.metadata = { name: "web", labels: { x: null }, annotations: {}, finalizers: [] }
  Object.assign(object.spec, { replicas: null, paused: false, minReadySeconds: 0 })
  Object.assign(container(object), { env: null, args: [], stdin: false, workingDir: "" })
  Object.assign(container(object), { resources: { limits: { cpu: "1000m", memory: 1024 } } })
  object.spec.template.spec.securityContext = {}
  object.spec.template.spec.automountServiceAccountToken = false
  expect(decode(schema, object, options).value).toEqual({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", labels: { x: "" } },
    spec: {
      selector: { matchLabels: { app: "web" } },
      strategy: {},
      template: {
        metadata: { labels: { app: "web" } },
        spec: {
          containers: [
            {
              name: "c",
              image: "i:1",
              ports: [{ containerPort: 80 }],
              resources: { limits: { cpu: "1", memory: "1024" } },
            },
          ],
          securityContext: {},
          automountServiceAccountToken: false,
        },
      },
    },
    status: {},
  })
})

test("the empty object of a kind has the fields that Go always writes", () => {
  const empty = (apiVersion: string, kind: string) =>
    decode(kubernetesSchema(apiVersion, kind)!, {}, { apiVersion, kind }).value
  expect(empty("rbac.authorization.k8s.io/v1", "Role")).toMatchObject({ metadata: {}, rules: null })
  expect(empty("apps/v1", "ReplicaSet")).toMatchObject({ spec: { selector: null }, status: { replicas: 0 } })
  expect(empty("v1", "Pod")).toEqual({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {},
    spec: { containers: null },
    status: {},
  })
  const pod = { status: { conditions: [{ type: "Ready", status: "True" }] } }
  const { value } = decode(kubernetesSchema("v1", "Pod")!, pod, { apiVersion: "v1", kind: "Pod" })
  expect(value.status.conditions).toEqual([
    { type: "Ready", status: "True", lastProbeTime: null, lastTransitionTime: null },
  ])
})

test("an empty managedFields is kept: it means something, but not for custom resources", () => {
  const object = { ...deployment(), metadata: { name: "web", managedFields: [] } }
  expect(decode(schema, object, options).value.metadata).toEqual({ name: "web", managedFields: [] })
  const metadata = { name: "w", managedFields: [] }
  expect(decode(widget, ofWidget({ metadata }), custom).value.metadata).toEqual({ name: "w" })
})

const bodies: Record<string, [string, string]> = {
  "{nope": ["invalid character 'n' looking for beginning of object key string", "{nope"],
  "[]": [
    'json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    "5b5d",
  ],
  "": ["unexpected end of JSON input", "<empty>"],
}
for (const [text, [words, shown]] of Object.entries(bodies))
  test(`the body ${text || "of nothing"} is refused`, () => {
    expect(refusal(() => parseBody(text, "Deployment"))).toMatchObject({
      code: 400,
      message: `the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: ${words} (${shown})`,
    })
  })

test("a body of null is an object without anything", () => {
  expect(parseBody("null", "Deployment")).toEqual({})
})

const widget = {
  type: "object" as const,
  properties: {
    spec: {
      type: "object" as const,
      properties: {
        n: { type: "integer" as const },
        any: { type: "object" as const, preservesUnknown: true },
        map: {
          type: "array" as const,
          items: { type: "object" as const, properties: { name: { type: "string" as const } } },
        },
      },
    },
  },
}
const custom: DecodeOptions = { apiVersion: "x.io/v1", kind: "Widget", isCustom: true }
const ofWidget = (more: Json) => ({ apiVersion: "x.io/v1", kind: "Widget", metadata: { name: "w" }, ...more })

test("custom resources are pruned, and only their metadata has a type", () => {
  const body = ofWidget({
    zed: 1,
    metadata: { name: "w", qq: 1, labels: {} },
    spec: { n: "no number", map: [{ name: "a", zz: 1 }], foo: 1, any: { x: [{ y: 1 }] } },
  })
  expect(decode(widget, body, custom)).toEqual({
    value: ofWidget({ spec: { n: "no number", map: [{ name: "a" }], any: { x: [{ y: 1 }] } } }),
    warnings: ["metadata.qq", "spec.foo", "spec.map[0].zz", "zed"].map(path => `unknown field "${path}"`),
  })
  const labelled = ofWidget({ metadata: { name: "w", labels: { a: 1 } } })
  expect(refusal(() => decode(widget, labelled, custom)).message).toBe(
    'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
  )
})

test("custom resources must have apiVersion and kind", () => {
  const message = (body: Json) => refusal(() => decode(widget, body, custom)).message
  expect(message({ apiVersion: "x.io/v1", metadata: { name: "w" }, spec: {} })).toBe(
    `the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{"apiVersion":"x.io/v1","metadata":{"name":"w"},"spec":{}}' ({"apiVersion":"x.io/v1","metad ...)`,
  )
  expect(message(ofWidget({ apiVersion: "x.io/v2" }))).toBe(
    "the API version in the data (x.io/v2) does not match the expected API version (x.io/v1)",
  )
  expect(message(ofWidget({ kind: "Foo" }))).toBe('Foo.x.io "w" is invalid: kind: Invalid value: "Foo": must be Widget')
})

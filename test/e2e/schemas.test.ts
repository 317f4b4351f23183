import { readFile } from "node:fs/promises"
import { request } from "node:https"
import { text } from "node:stream/consumers"
import { expect, onTestFinished, test } from "vitest"
import {
  applyPatch,
  applyServerSide,
  decode,
  isIdleUpdate,
  kubernetesSchema,
  openApiSchemas,
  trackUpdate,
} from "../../src/cluster-sim/schema/index.ts"
import type { Schema } from "../../src/cluster-sim/schema/schema.ts"
import { StatusError } from "../../src/cluster-sim/status-error.ts"
import { gatewayFiles } from "../../tools/generate/kube-gateway-api.ts"
import { podTemplateFile } from "../../tools/generate/kube-pod-template.ts"
import { kubeSchemaFiles } from "../../tools/generate/kube-schema.ts"
import { floor, type Json, uniqueNamespace, until } from "../support/floor.ts"

test("the table of types is what Kubernetes publishes", async () => {
  for (const { path, content } of await kubeSchemaFiles())
    expect(await readFile(path, "utf8"), `run node tools/generate/kube-schema.ts`).toBe(content)
})

test("the structs that a pod template's hash is made from are those of Kubernetes", async () => {
  const { path, content } = await podTemplateFile()
  expect(await readFile(path, "utf8"), "run node tools/generate/kube-pod-template.ts").toBe(content)
})

test("the kinds of the Gateway API, of Contour and of Traefik are those that the projects publish", async () => {
  for (const { path, content } of await gatewayFiles())
    expect(await readFile(path, "utf8"), "run node tools/generate/kube-gateway-api.ts").toBe(content)
})

test("what cluster-sim says of a type is what the server says", async () => {
  for (const apiVersion of ["v1", "apps/v1", "batch/v1", "policy/v1", "coordination.k8s.io/v1"]) {
    const path = apiVersion === "v1" ? "api/v1" : `apis/${apiVersion}`
    const { components } = await floor().api.get(`/openapi/v3/${path}`)
    for (const [name, mine] of Object.entries(await openApiSchemas(apiVersion))) {
      const theirs = components.schemas[name]
      if (!theirs) continue // Scale and Eviction stand in other documents
      expect(mine.description, name).toBe(theirs.description)
      const about = ({ description, enum: values, type }: Json) => ({ description, values, type })
      for (const [field, node] of Object.entries<Json>(theirs.properties ?? {}))
        expect(about(mine.properties[field]), `${name}.${field}`).toEqual(about(node))
    }
  }
})

/** Something both servers can be asked to change at random. */
type Subject = {
  apiVersion: string
  kind: string
  plural: string
  schema: Schema
  isCustom: boolean
  types: string[]
  /** A whole object's fields beside metadata. */
  body(pick: Pick): Json
  /** A strategic patch of them. */
  strategic?(pick: Pick): Json
  defaults(object: Json): void
}
type Pick = {
  one<Value>(values: readonly Value[]): Value
  some<Value>(values: readonly Value[]): Value[]
  /** The fields of an object, each there or not. */
  fields(makers: Record<string, () => Json>): Json
}

const subjects: Record<string, Subject> = {
  "a pod template": {
    apiVersion: "v1",
    kind: "PodTemplate",
    plural: "podtemplates",
    schema: kubernetesSchema("v1", "PodTemplate")!,
    isCustom: false,
    types: ["apply", "apply", "force", "merge", "strategic", "strategic", "json", "put", "reset"],
    body: pick => ({ template: { ...pick.fields({ metadata: () => labels(pick) }), spec: podSpec(pick) } }),
    strategic(pick) {
      const spec = podSpec(pick)
      const doomed = pick.some(["c", "d"])
      const containers = spec.containers.map((one: Json) =>
        doomed.includes(one.name) && pick.one([true, false]) ? { name: one.name, $patch: "delete" } : one,
      )
      const order = pick.some(["c", "d", "e"]).map(name => ({ name }))
      return {
        template: {
          spec: {
            ...spec,
            containers,
            ...pick.fields({ volumes: () => null, "$setElementOrder/containers": () => order }),
          },
        },
      }
    },
    defaults: defaultPodSpec,
  },
  "a custom resource": {
    apiVersion: "schemas.example.com/v1",
    kind: "Widget",
    plural: "widgets",
    schema: widgetSchema(),
    isCustom: true,
    types: ["apply", "apply", "force", "merge", "json", "put", "reset"],
    body: pick => ({ spec: widgetSpec(pick) }),
    defaults(object) {
      for (const item of object.spec?.map ?? []) item.proto ??= "TCP"
    },
  },
}

for (const [name, subject] of Object.entries(subjects))
  for (const seed of [1, 2, 3])
    test(`${name} changed at random has the same owners, content and refusals (seed ${seed})`, async () => {
      if (subject.isCustom) await defineWidgets()
      const namespace = await uniqueNamespace()
      const group = subject.apiVersion === "v1" ? "/api/v1" : `/apis/${subject.apiVersion}`
      const collection = `${group}/namespaces/${namespace}/${subject.plural}`
      const pick = pickFrom(seed)
      onTestFinished(() => ask("PATCH", `${collection}/x`, { metadata: { finalizers: null } }, "merge").then(() => {}))
      let live: Json
      for (let step = 0; step < 100; step++) {
        const type = live ? pick.one(subject.types) : pick.one(["apply", "create"])
        const manager = pick.one(["a", "b", "kubectl"])
        const body = bodyOf(type, subject, pick)
        const path = type === "create" ? collection : `${collection}/x`
        const query = `?fieldManager=${manager}${type === "force" ? "&force=true" : ""}`
        const theirs = await ask(methods[type] ?? "PATCH", path + query, body, type)
        if (theirs.kind === "Status" && /is invalid: (?!patch:)/.test(theirs.message)) continue // validation is elsewhere
        const now = latest(theirs)
        const mine = simulated({ subject, live, type, manager, body, now, namespace })
        const about = `step ${step}: ${type} by ${manager} of ${JSON.stringify(body)} on ${JSON.stringify(live)}`
        expect(comparable(mine), about).toEqual(comparable(theirs))
        if (theirs.kind !== "Status") live = theirs
      }
    })

const methods: Record<string, string> = { create: "POST", put: "PUT" }

function bodyOf(type: string, subject: Subject, pick: Pick): Json {
  const { apiVersion, kind } = subject
  const whole = () => ({ apiVersion, kind, metadata: { name: "x", ...metadata(pick) }, ...subject.body(pick) })
  if (type === "merge") return pick.fields({ metadata: () => metadata(pick), ...lazily(subject.body(pick)) })
  if (type === "strategic") return { ...pick.fields({ metadata: () => metadata(pick) }), ...subject.strategic!(pick) }
  if (type === "reset") return pick.one([[], null, [{}]].map(managedFields => ({ metadata: { managedFields } })))
  if (type !== "json") return whole()
  return [
    pick.one([
      { op: "add", path: "/metadata/labels", value: { z: "1" } },
      { op: "remove", path: "/metadata/labels" },
      { op: "remove", path: "/metadata/annotations/a1" },
      { op: "test", path: "/metadata/name", value: "x" },
      { op: "copy", from: "/metadata/labels", path: "/metadata/annotations" },
    ]),
  ]
}

const lazily = (fields: Json) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, () => value] as const))

type Step = { subject: Subject; live: Json; type: string; manager: string; body: Json; now: string; namespace: string }

/** The same request, answered by cluster-sim's schemas with what the server had stored. */
function simulated({ subject, live, type, manager, body, now, namespace }: Step): Json {
  const { schema, apiVersion, kind, isCustom } = subject
  try {
    let after: Json
    if (type === "apply" || type === "force") {
      const input = { schema, live, applied: body, manager, force: type === "force", now, apiVersion, kind, isCustom }
      after = structuredClone(applyServerSide(input))
      subject.defaults(after)
    } else {
      const isWhole = type === "create" || type === "put"
      const patch = type === "reset" ? "merge" : (type as "merge" | "json" | "strategic")
      after = isWhole
        ? decode(schema, body, { apiVersion, kind, isCustom }).value
        : applyPatch({ type: patch, schema, current: live, body, kind, isCustom }).value
      after = structuredClone(after)
      subject.defaults(after)
      after.metadata.namespace = namespace
      const managedFields = trackUpdate({ schema, before: live, after, manager, apiVersion, now, isCustom })
      after = { ...after, metadata: { ...after.metadata, managedFields } }
    }
    const kept = live && { ...live.metadata, ...after.metadata }
    const isIdle = live && isIdleUpdate(live, { ...after, metadata: kept })
    return isIdle ? { ...after, metadata: { ...after.metadata, managedFields: live.metadata.managedFields } } : after
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return { kind: "Status", code: error.code, message: error.message, details: error.details }
  }
}

/** Without what the server adds, and without the times, which differ by the moment. */
function comparable(answer: Json): Json {
  if (answer.kind === "Status") {
    const causes = (answer.details?.causes ?? []).map(({ field, message }: Json) => `${field}: ${message}`).sort()
    return { code: answer.code, message: answer.message, causes }
  }
  const {
    managedFields = [],
    resourceVersion,
    generation,
    uid,
    creationTimestamp,
    namespace,
    ...metadata
  } = answer.metadata
  const entries = (managedFields as Json[]).map(({ time, ...entry }) => ({ ...entry, hasTime: time !== undefined }))
  return { ...answer, metadata, managedFields: entries }
}

const latest = (answer: Json): string =>
  (answer.metadata?.managedFields ?? [])
    .map(({ time = "" }: Json) => time)
    .sort()
    .at(-1) || new Date().toISOString().replace(/\.\d+/, "")

function pickFrom(seed: number): Pick {
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const one = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]!
  const some = <Value>(values: readonly Value[]) =>
    values
      .filter(() => random() < 0.5)
      .map(value => ({ value, at: random() }))
      .sort((left, right) => left.at - right.at)
      .map(({ value }) => value)
  const fields = (makers: Record<string, () => Json>) =>
    Object.fromEntries(Object.entries(makers).flatMap(([name, make]) => (random() < 0.4 ? [[name, make()]] : [])))
  return { one, some, fields }
}

const valued = (pick: Pick, names: string[]) =>
  Object.fromEntries(pick.some(names).map(name => [name, pick.one(["1", "2"])]))

const labels = (pick: Pick) =>
  pick.fields({ labels: () => valued(pick, ["l1", "l2"]), annotations: () => valued(pick, ["a1", "a2"]) })

const metadata = (pick: Pick) => ({
  ...labels(pick),
  ...pick.fields({ finalizers: () => pick.some(["example.com/a", "example.com/b", "example.com/c"]) }),
})

const container = (pick: Pick, name: string) => ({
  name,
  image: pick.one(["i:1", "i:2"]),
  ...pick.fields({
    args: () => pick.some(["a", "b"]),
    stdin: () => pick.one([true, false]),
    workingDir: () => "",
    ports: () =>
      pick.some([80, 81, 82]).map(containerPort => ({
        containerPort,
        ...pick.fields({ protocol: () => pick.one(["TCP", "UDP"]), name: () => `p${containerPort}` }),
      })),
    env: () =>
      pick.some(["A", "B", "C"]).map(key => ({ name: key, ...pick.fields({ value: () => pick.one(["1", "2"]) }) })),
    resources: () => ({
      limits: { cpu: pick.one(["1", "1000m", 2, "0.5"]), memory: pick.one(["1Gi", "1024Mi", "1e9"]) },
    }),
    livenessProbe: () => ({ exec: { command: ["x"] }, ...pick.fields({ periodSeconds: () => 3 }) }),
  }),
})

function podSpec(pick: Pick): Json {
  const names = pick.some(["c", "d", "e"])
  return {
    containers: (names.length > 0 ? names : ["c"]).map(name => container(pick, name)),
    ...pick.fields({
      volumes: () => pick.some(["v", "w"]).map(name => ({ name, emptyDir: {} })),
      nodeSelector: () => ({ a: pick.one(["1", "2"]) }),
      tolerations: () => [{ key: "k", operator: "Exists" }],
      hostAliases: () => [{ ip: "1.1.1.1", hostnames: ["h"] }],
      imagePullSecrets: () => pick.some(["s1", "s2"]).map(name => ({ name })),
      securityContext: () => ({ runAsUser: 1, sysctls: [] }),
    }),
  }
}

/** The server's defaults for what `podSpec` makes. */
function defaultPodSpec({ template: { spec } }: Json) {
  spec.restartPolicy ??= "Always"
  spec.dnsPolicy ??= "ClusterFirst"
  spec.schedulerName ??= "default-scheduler"
  spec.terminationGracePeriodSeconds ??= 30
  spec.securityContext ??= {}
  for (const one of spec.containers ?? []) {
    one.terminationMessagePath ??= "/dev/termination-log"
    one.terminationMessagePolicy ??= "File"
    one.imagePullPolicy ??= "IfNotPresent"
    for (const port of one.ports ?? []) port.protocol ??= "TCP"
    const probe = one.livenessProbe
    if (probe) Object.assign(probe, { timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3 })
    if (probe) probe.periodSeconds ??= 10
  }
}

function widgetSchema(): Schema {
  const string: Schema = { type: "string" }
  const item = {
    type: "object",
    properties: { name: string, proto: { type: "string", default: "TCP" }, v: { type: "integer" } },
  }
  const map = { type: "array", listType: "map", listMapKeys: ["name", "proto"], items: item }
  const properties = {
    n: { type: "integer" },
    set: { type: "array", items: string, listType: "set" },
    plain: { type: "array", items: string },
    map,
    labels: { type: "object", additional: string },
    atomic: { type: "object", isAtomic: true, properties: { a: string, b: string } },
    any: { type: "object", preservesUnknown: true },
    port: { type: "int-or-string" },
  }
  return { type: "object", properties: { spec: { type: "object", properties } } } as Schema
}

/** The same as a structural schema. */
async function defineWidgets() {
  const string = { type: "string" }
  const item = {
    type: "object",
    required: ["name"],
    properties: { name: string, proto: { type: "string", default: "TCP" }, v: { type: "integer" } },
  }
  const listed = { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "proto"] }
  const properties = {
    n: { type: "integer" },
    set: { type: "array", items: string, "x-kubernetes-list-type": "set" },
    plain: { type: "array", items: string },
    map: { type: "array", ...listed, items: item },
    labels: { type: "object", additionalProperties: string },
    atomic: { type: "object", "x-kubernetes-map-type": "atomic", properties: { a: string, b: string } },
    any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    port: { "x-kubernetes-int-or-string": true },
  }
  const openAPIV3Schema = { type: "object", properties: { spec: { type: "object", properties } } }
  await floor().api.apply("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.schemas.example.com", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.schemas.example.com" },
    spec: {
      group: "schemas.example.com",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  })
  await until("widgets are served", () => floor().api.find("/apis/schemas.example.com/v1/widgets"))
}

const widgetSpec = (pick: Pick) =>
  pick.fields({
    n: () => pick.one([0, 1, 2]),
    set: () => pick.some(["a", "b", "c"]),
    plain: () => pick.some(["a", "b"]),
    map: () =>
      pick
        .some(["a", "b", "c"])
        .map(name => ({ name, ...pick.fields({ proto: () => pick.one(["TCP", "UDP"]), v: () => pick.one([1, 2]) }) })),
    labels: () => valued(pick, ["x", "y"]),
    atomic: () => valued(pick, ["a", "b"]),
    any: () => pick.fields({ x: () => valued(pick, ["y", "z"]), l: () => pick.some([1, 2]), s: () => "t" }),
    port: () => pick.one([80, "http"]),
  })

const mediaTypes: Record<string, string> = {
  merge: "application/merge-patch+json",
  reset: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
  force: "application/apply-patch+yaml",
}

async function ask(method: string, path: string, body: Json, type: string): Promise<Json> {
  const { server, token, certificateAuthority: ca } = floor().access
  const headers = { authorization: `Bearer ${token}`, "content-type": mediaTypes[type] ?? "application/json" }
  const { promise, resolve, reject } = Promise.withResolvers<import("node:http").IncomingMessage>()
  request(new URL(path, server), { method, headers, ca }, resolve).once("error", reject).end(JSON.stringify(body))
  return JSON.parse(await text(await promise))
}

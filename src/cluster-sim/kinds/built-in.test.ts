import { expect, test } from "vitest"
import { apiVersionOf } from "#runtime/resource.ts"
import { builtInKinds } from "./built-in.ts"
import { subresourcesOf } from "./define.ts"
import { eventFromCore, eventToCore } from "./event.ts"
import { isEmptySelector, selects } from "./findings.ts"
import served from "./recorded/served.json" with { type: "json" }

const kinds = builtInKinds()
const kind = (name: string) => kinds.find(each => each.kind === name)!

test("every kind that was recorded is served, with its names", () => {
  expect(kinds.map(each => `${apiVersionOf(each)} ${each.kind}`).sort()).toEqual(
    served.map(each => `${each.apiVersion} ${each.kind}`).sort(),
  )
  expect(kind("Deployment")).toMatchObject({ plural: "deployments", shortNames: ["deploy"], categories: ["all"] })
  expect(kind("Secret")).toMatchObject({ shortNames: [], categories: [], namespaced: true, listKind: "SecretList" })
  expect(kinds.every(each => each.schema.properties)).toBe(true)
})

test("only implemented subresources are served", () => {
  expect(kind("Pod").subresources).toEqual(["binding", "eviction", "exec", "log", "status"])
  expect(subresourcesOf(kind("Deployment")).map(({ name, kind }) => `${name} ${kind}`)).toEqual([
    "scale Scale",
    "status Deployment",
  ])
})

test("which kinds a PUT may create, and which need a resourceVersion in an update", () => {
  const those = (flag: "allowsCreateOnUpdate" | "allowsUnconditionalUpdate", value: boolean) =>
    kinds
      .filter(each => each.strategy[flag] === value)
      .map(each => each.kind)
      .sort()
  expect([...new Set(those("allowsCreateOnUpdate", true))]).toEqual([
    "ClusterRole", "ClusterRoleBinding", "Event", "Lease", "LimitRange", "Role", "RoleBinding", "Service",
  ]) // biome-ignore format: a list of words
  expect(those("allowsUnconditionalUpdate", false)).toEqual([
    "CustomResourceDefinition", "Lease", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "PodDisruptionBudget", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
  ]) // biome-ignore format: a list of words
})

test("an event is the same in both groups", () => {
  const core = {
    apiVersion: "v1",
    kind: "Event",
    involvedObject: { kind: "Pod" },
    message: "m",
    count: 2,
    type: "Normal",
  }
  const modern = {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    regarding: { kind: "Pod" },
    note: "m",
    deprecatedCount: 2,
    type: "Normal",
  }
  expect(eventFromCore(core)).toEqual(modern)
  expect(eventToCore(modern)).toEqual(core)
  expect(eventToCore(core)).toBe(core)
  expect(eventFromCore(modern)).toBe(modern)
  expect(eventFromCore({ ...core, reportingComponent: "", reportingInstance: "" })).toEqual(modern)
})

test("a daemon set carries its template's generation from the first", () => {
  const { strategy } = kind("DaemonSet")
  const sent = { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "d" }, spec: {} }
  const { metadata } = strategy.default!(sent)
  expect(metadata.annotations).toEqual({ "deprecated.daemonset.template.generation": "0" })
})

test("a service has one address, or none", () => {
  const refused = (clusterIP: string) =>
    kind("Service").strategy.validateCreate!({
      spec: {
        type: "ClusterIP",
        sessionAffinity: "None",
        clusterIP,
        clusterIPs: [clusterIP],
        ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
      },
    }).map(({ field, message }) => `${field}: ${message}`)
  expect(refused("nonsense")).toEqual([
    'spec.clusterIPs[0]: Invalid value: "nonsense": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ])
  for (const address of ["10.96.0.7", "fd00::7", "None"]) expect(refused(address)).toEqual([])
})

test("a selector selects by labels and by expressions", () => {
  const by = (operator: string, values?: string[]) => ({ matchExpressions: [{ key: "a", operator, values }] })
  expect(selects({ matchLabels: { a: "1" } }, { a: "1", b: "2" })).toBe(true)
  expect(selects({ matchLabels: { a: "1" } }, { a: "2" })).toBe(false)
  expect(selects(by("In", ["1"]), { a: "1" })).toBe(true)
  expect(selects(by("In", ["1"]), {})).toBe(false)
  expect(selects(by("NotIn", ["1"]), { a: "1" })).toBe(false)
  expect(selects(by("NotIn", ["1"]), { a: "2" })).toBe(true)
  expect(selects(by("NotIn", ["1"]), {})).toBe(true)
  expect(selects(by("Exists"), {})).toBe(false)
  expect(selects(by("DoesNotExist"), { a: "1" })).toBe(false)
  expect(selects(undefined, {})).toBe(false)
  expect(isEmptySelector({})).toBe(true)
})

test("a pod waits for its grace period only where a kubelet stops it", () => {
  const grace = (spec: object, status: object, asked?: number) =>
    kind("Pod").strategy.graceSeconds!({ spec, status } as never, asked)
  expect(grace({ nodeName: "n", terminationGracePeriodSeconds: 7 }, { phase: "Running" })).toBe(7)
  expect(grace({ nodeName: "n", terminationGracePeriodSeconds: 7 }, { phase: "Running" }, 3)).toBe(3)
  expect(grace({ nodeName: "n" }, { phase: "Running" })).toBe(30)
  expect(grace({ terminationGracePeriodSeconds: 7 }, { phase: "Pending" })).toBe(0)
  expect(grace({ nodeName: "n" }, { phase: "Succeeded" })).toBe(0)
})

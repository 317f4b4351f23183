import { expect, test } from "vitest"
import type { Json, Obj } from "../object.ts"
import { podAdmission } from "./pod-admission.ts"

const objects: Record<string, Json> = {
  "PriorityClass high": { value: 100, preemptionPolicy: "Never" },
  "ServiceAccount plain": {},
  "ServiceAccount pulls": { imagePullSecrets: [{ name: "registry" }] },
  "ServiceAccount tokenless": { automountServiceAccountToken: false },
}
const admit = podAdmission(
  (_, kind, { name }) => objects[`${kind} ${name}`] as Obj | undefined,
  () => 0,
)
const kind = { group: "", kind: "Pod", plural: "pods" }
const admitted = (spec: Json) =>
  admit({
    operation: "create",
    kind,
    object: { metadata: { name: "p", namespace: "n" }, spec: { containers: [{ name: "c" }], ...spec } },
    subresource: undefined,
  }).spec

test("a pod has the priority of its class", () => {
  expect(admitted({ priorityClassName: "high" })).toMatchObject({ priority: 100, preemptionPolicy: "Never" })
  expect(() => admitted({ priorityClassName: "none" })).toThrow(
    'pods "p" is forbidden: no PriorityClass with name none was found',
  )
  expect(() => admitted({ priorityClassName: "high", priority: 5 })).toThrow("must not be provided in pod spec")
})

test("a pod pulls with the secrets of its account, unless it has its own", () => {
  expect(admitted({ serviceAccountName: "pulls" }).imagePullSecrets).toEqual([{ name: "registry" }])
  expect(admitted({ serviceAccountName: "pulls", imagePullSecrets: [{ name: "own" }] }).imagePullSecrets).toEqual([
    { name: "own" },
  ])
  expect(admitted({ serviceAccountName: "plain" }).imagePullSecrets).toBeUndefined()
})

test("a token is mounted unless the pod, or else its account, disables it", () => {
  const mounts = (spec: Json) => admitted(spec).containers[0].volumeMounts?.length ?? 0
  expect(mounts({})).toBe(1)
  expect(mounts({ serviceAccountName: "tokenless" })).toBe(0)
  expect(mounts({ serviceAccountName: "tokenless", automountServiceAccountToken: true })).toBe(1)
  expect(mounts({ serviceAccountName: "plain", automountServiceAccountToken: false })).toBe(0)
})

test("a missing account is refused, except the one that every namespace has", () => {
  expect(() => admitted({ serviceAccountName: "nobody" })).toThrow(
    'error looking up service account n/nobody: serviceaccount "nobody" not found',
  )
  expect(admitted({}).serviceAccountName).toBe("default")
})

test("only new pods are changed", () => {
  const object = { metadata: { name: "p" }, spec: {} }
  expect(admit({ operation: "update", kind, object, subresource: undefined })).toBe(object)
  expect(admit({ operation: "create", kind: { ...kind, kind: "Node" }, object, subresource: undefined })).toBe(object)
})

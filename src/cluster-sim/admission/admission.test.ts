import { describe, expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { createStorage, type WriteOptions } from "../apiserver/index.ts"
import type { Authorizer, User } from "../auth/index.ts"
import { builtInKinds } from "../kinds/index.ts"
import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { createStore } from "../store/index.ts"
import { admissionPolicies } from "./index.ts"

/** A storage with policies, and a way to write objects as a given user. */
function world(authorizer: Authorizer = () => ({ allowed: true, reason: "" })) {
  const storage = createStorage({
    ...{ store: createStore({}), clock: virtualClock(0), random: seededRandom(1), kinds: builtInKinds() },
    policies: storage => admissionPolicies(storage, authorizer),
  })
  const kind = (apiVersion: string, name: string) => storage.kind(apiVersion, name)!
  const maps = kind("v1", "ConfigMap")
  storage.create(kind("v1", "Namespace"), { metadata: { name: "a" } })
  return {
    storage,
    maps,
    policy(type: "Validating" | "Mutating", name: string, { binding = {}, ...spec }: Json) {
      const registration = "admissionregistration.k8s.io/v1"
      const resourceRules = [{ apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"] }]
      const isValidating = type === "Validating"
      storage.create(kind(registration, `${type}AdmissionPolicy`), {
        metadata: { name },
        spec: { matchConstraints: { resourceRules }, ...(!isValidating && { reinvocationPolicy: "Never" }), ...spec },
      })
      storage.create(kind(registration, `${type}AdmissionPolicyBinding`), {
        metadata: { name },
        spec: { policyName: name, ...(isValidating && { validationActions: ["Deny"] }), ...binding },
      })
    },
    map: (name: string, data: Json = {}, options: WriteOptions = {}) =>
      storage.create(maps, { metadata: { name, namespace: "a" }, data }, options),
  }
}

const refusal = (act: () => unknown): StatusError => {
  try {
    act()
  } catch (error) {
    if (error instanceof StatusError) return error
    throw error
  }
  throw new Error("it was not refused")
}

test("a policy is in force from the write that binds it until the write that takes it away", () => {
  const { storage, policy, map } = world()
  map("before")
  policy("Validating", "none", { validations: [{ expression: "false", message: "no" }] })
  expect(refusal(() => map("during"))).toMatchObject({
    code: 422,
    reason: "Invalid",
    message:
      "configmaps \"during\" is forbidden: ValidatingAdmissionPolicy 'none' with binding 'none' denied request: no",
  })
  const bindings = storage.kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")!
  storage.delete(bindings, { name: "none" })
  expect(map("after").metadata.name).toBe("after")
})

test("the user of a request, and what the user may do", () => {
  const asked: Json[] = []
  const { policy, map } = world((user, attributes) => {
    asked.push([user.name, attributes])
    return { allowed: ["admins", "system:masters"].some(group => user.groups.includes(group)), reason: "" }
  })
  policy("Validating", "rights", {
    validations: [
      {
        expression: "authorizer.group('apps').resource('deployments').namespace('a').check('patch').allowed()",
        messageExpression: "request.userInfo.username + ' may not, of ' + request.userInfo.extra.team.join(',')",
        reason: "Forbidden",
      },
    ],
  })
  const user = (groups: string[]): User => ({ name: "ann", groups, extra: { team: ["red", "blue"] } })
  expect(map("mine", {}, { user: user(["admins"]) }).metadata.name).toBe("mine")
  expect(refusal(() => map("yours", {}, { user: user([]) }))).toMatchObject({
    code: 403,
    message: expect.stringContaining("denied request: ann may not, of red,blue"),
  })
  expect(asked[0]).toEqual(["ann", { verb: "patch", group: "apps", resource: "deployments", namespace: "a" }])
  expect(map("ours").metadata.name, "the cluster's own writes are a superuser's").toBe("ours")
  expect(asked.at(-1)[0]).toBe("system:admin")
})

test("a service account that an expression names is looked up by its name", () => {
  const { policy, map } = world(user => ({ allowed: user.name === "system:serviceaccount:a:robot", reason: "" }))
  policy("Validating", "robots", {
    validations: [
      {
        expression:
          "authorizer.serviceAccount('a', object.metadata.name).group('').resource('pods').check('get').allowed()",
      },
    ],
  })
  expect(map("robot").metadata.name).toBe("robot")
  expect(refusal(() => map("human")).code).toBe(422)
})

describe("an expression that would take for ever", () => {
  const loops = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a + b + c != d))))"
  const large = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`key-${i}`, "x"]))

  test("ends with the server's words where failures refuse", () => {
    const { policy, map } = world()
    policy("Validating", "loops", { validations: [{ expression: loops }] })
    const started = performance.now()
    expect(refusal(() => map("large", large)).message).toContain(
      "denied request: validation failed due to running out of cost budget, no further validation rules will be run",
    )
    expect(performance.now() - started).toBeLessThan(30_000) // on a busy machine, too
    expect(map("small", { a: "1" }).metadata.name).toBe("small")
  })

  test("lets the request pass where failures are ignored", () => {
    const { policy, map } = world()
    policy("Validating", "loops", { failurePolicy: "Ignore", validations: [{ expression: loops }] })
    policy("Mutating", "loops", {
      failurePolicy: "Ignore",
      mutations: [
        {
          patchType: "JSONPatch",
          jsonPatch: { expression: `${loops} ? [JSONPatch{op: 'remove', path: '/data'}] : []` },
        },
      ],
    })
    expect(Object.keys(map("large", large).data)).toHaveLength(60)
  })
})

test("the server's own writes during an eviction skip the policies, and a deletion does not", () => {
  const { storage, maps, policy, map } = world()
  map("a")
  map("b")
  policy("Validating", "kept", { validations: [{ expression: "request.operation != 'DELETE'", message: "kept" }] })
  expect(refusal(() => storage.delete(maps, { namespace: "a", name: "a" })).message).toContain("kept")
  storage.delete(maps, { namespace: "a", name: "b" }, { asksNoPolicy: true })
  expect(storage.list(maps).items.map(({ metadata }) => metadata.name)).toEqual(["a"])
})

test("policies run in the order of their names, and each sees the changes of those before it", () => {
  const { policy, map } = world()
  const append = (word: string) => ({
    mutations: [
      {
        patchType: "JSONPatch",
        jsonPatch: {
          expression: `[JSONPatch{op: 'replace', path: '/data/word', value: object.data.word + '${word}'}]`,
        },
      },
    ],
  })
  policy("Mutating", "b", append("b"))
  policy("Mutating", "a", append("a"))
  expect(map("x", { word: "-" }).data).toEqual({ word: "-ab" })
})

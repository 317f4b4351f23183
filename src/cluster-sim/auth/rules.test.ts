import { describe, expect, test } from "vitest"
import { allows, missingRights, type Rule } from "./rules.ts"
import type { Attributes } from "./user.ts"

const pods = (rule: Rule = {}): Rule => ({ verbs: ["get"], apiGroups: [""], resources: ["pods"], ...rule })
const get = (attributes: Partial<Attributes> = {}): Attributes => ({ verb: "get", resource: "pods", ...attributes })

describe("a rule allows", () => {
  const cases: Record<string, [Rule, Attributes, boolean]> = {
    "what it names": [pods(), get(), true],
    "no other verb": [pods(), get({ verb: "list" }), false],
    "no other group": [pods(), get({ group: "apps" }), false],
    "no subresource of what it names": [pods(), get({ subresource: "log" }), false],
    "a subresource that it names": [pods({ resources: ["pods/log"] }), get({ subresource: "log" }), true],
    "a subresource of every resource": [pods({ resources: ["*/log"] }), get({ subresource: "log" }), true],
    "not the resource itself, where only its subresource is named": [pods({ resources: ["*/log"] }), get(), false],
    "no asterisk behind a slash": [pods({ resources: ["pods/*"] }), get({ subresource: "log" }), false],
    "every resource": [pods({ resources: ["*"] }), get({ subresource: "log" }), true],
    "every verb and group": [pods({ verbs: ["*"], apiGroups: ["*"] }), get({ verb: "dance", group: "x" }), true],
    "an object by name": [pods({ resourceNames: ["a"] }), get({ name: "a" }), true],
    "no other object": [pods({ resourceNames: ["a"] }), get({ name: "b" }), false],
    "no request without a name, if it is limited to names": [pods({ resourceNames: ["a"] }), get(), false],
    "no path, if it is about resources": [pods({ resources: ["*"] }), { verb: "get", path: "/x" }, false],
    "a path": [{ verbs: ["get"], nonResourceURLs: ["/x"] }, { verb: "get", path: "/x" }, true],
    "paths that begin like this": [
      { verbs: ["get"], nonResourceURLs: ["/x/*"] },
      { verb: "get", path: "/x/y/z" },
      true,
    ],
    "not the path without its end": [{ verbs: ["get"], nonResourceURLs: ["/x/*"] }, { verb: "get", path: "/x" }, false],
    "nothing, if it is empty": [{}, get(), false],
  }
  for (const [name, [rule, attributes, isAllowed]] of Object.entries(cases))
    test(name, () => expect(allows(rule, attributes)).toBe(isAllowed))
})

describe("what is missing", () => {
  const cases: Record<string, [Rule[], Rule[], string[]]> = {
    "nothing of what is held": [[pods({ verbs: ["get", "list"] })], [pods()], []],
    "the verb": [
      [pods()],
      [pods({ verbs: ["get", "list"] })],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'],
    ],
    "verbs of one resource together": [
      [],
      [pods({ verbs: ["list", "get"] })],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["list" "get"]}'],
    ],
    "names one by one": [
      [pods({ resourceNames: ["a"] })],
      [pods({ resourceNames: ["a", "b"] })],
      ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
    ],
    "all objects, where some are held": [
      [pods({ resourceNames: ["a"] })],
      [pods()],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ],
    "nothing for single names, where all objects are held": [[pods()], [pods({ resourceNames: ["a"] })], []],
    "what only two rules together hold": [
      [pods({ verbs: ["list"] }), pods({ apiGroups: ["apps"] })],
      [pods({ apiGroups: ["apps"], verbs: ["list"] })],
      ['{APIGroups:["apps"], Resources:["pods"], Verbs:["list"]}'],
    ],
    "a path": [
      [{ verbs: ["get"], nonResourceURLs: ["/x/*"] }],
      [{ verbs: ["get"], nonResourceURLs: ["/x/y", "/z"] }],
      ['{NonResourceURLs:["/z"], Verbs:["get"]}'],
    ],
    "an asterisk, which only an asterisk holds": [
      [pods()],
      [pods({ resources: ["*"] })],
      ['{APIGroups:[""], Resources:["*"], Verbs:["get"]}'],
    ],
    "nothing of a rule without verbs": [[], [pods({ verbs: [] })], []],
  }
  for (const [name, [held, wanted, missing]] of Object.entries(cases))
    test(name, () => expect(missingRights(held, wanted)).toEqual(missing))
})

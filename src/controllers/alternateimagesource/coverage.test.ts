import { describe, expect, test } from "vitest"
import type { AlternateImageSourceSpec, Target } from "#api/v1alpha1/alternateimagesource/index.ts"
import { coverOf, type Named } from "./coverage.ts"

const [a, b, c] = ["a.example/app", "b.example/app", "c.example/app"]
const web: Named = {
  type: { group: "apps", kind: "deployment" },
  name: "web",
  labels: { team: "shop" },
  owner: { group: "shop.example", kind: "store", name: "berlin", uid: "1" },
}
const container = { name: "app", image: `${a}:1`, isInit: false }

const spec = (...sets: { equivalentRepositories: string[]; targets?: Target[] }[]) =>
  ({ imageSourceReplacements: sets }) as unknown as AlternateImageSourceSpec
const target = (kind: string, more: Partial<Target> = {}, group = "apps"): Target => ({
  type: { group, kind },
  ...(more.labelSelector ? {} : { name: "web" }),
  ...more,
})

describe("a target", () => {
  const cases: Record<string, [Target, boolean]> = {
    "as the seed writes it": [target("deployment"), true],
    "in other case": [target("Deployment"), true],
    "in the plural": [target("Deployments"), true],
    "without a group": [target("deployment", {}, ""), true],
    "with the version in the group": [target("deployment", {}, "apps/v1"), true],
    "of another group": [target("deployment", {}, "batch"), false],
    "of another kind": [target("statefulset"), false],
    "of another name": [target("deployment", { name: "web2" }), false],
    "by labels": [target("deployment", { labelSelector: { matchLabels: { team: "shop" } } }), true],
    "by other labels": [target("deployment", { labelSelector: { matchLabels: { team: "bank" } } }), false],
    "by labels of another kind": [target("job", { labelSelector: { matchLabels: { team: "shop" } } }), false],
    "for its container": [target("deployment", { container: "app" }), true],
    "for another container": [target("deployment", { container: "sidecar" }), false],
    "of a custom kind that owns it": [target("Store", { name: "berlin" }, "shop.example/v1"), true],
    "of a custom kind that owns another": [target("Store", { name: "paris" }, "shop.example"), false],
    "of a custom kind, by the workload's labels": [
      target("Store", { labelSelector: { matchLabels: { team: "shop" } } }, "shop.example"),
      false,
    ],
  }
  for (const [name, [each, isCovered]] of Object.entries(cases))
    test(`${name}: ${isCovered ? "covers it" : "does not"}`, () =>
      expect(coverOf(spec({ equivalentRepositories: [a, b], targets: [each] }), web, container) !== undefined).toBe(
        isCovered,
      ))
})

describe("the set that counts", () => {
  const cases: Record<string, [AlternateImageSourceSpec, string | undefined]> = {
    "without targets is for every workload": [spec({ equivalentRepositories: [a, b] }), b],
    "is the first of two that have the repository": [
      spec({ equivalentRepositories: [a, b] }, { equivalentRepositories: [a, c] }),
      b,
    ],
    "is the second if the first is for another workload": [
      spec({ equivalentRepositories: [a, b], targets: [target("job")] }, { equivalentRepositories: [a, c] }),
      c,
    ],
    "with an empty list of targets is for no workload": [
      spec({ equivalentRepositories: [a, b], targets: [] }),
      undefined,
    ],
    "has the image's repository": [spec({ equivalentRepositories: [b, c] }), undefined],
    "has it as a whole, not as the beginning of another": [
      spec({ equivalentRepositories: ["a.example/ap", b] }),
      undefined,
    ],
  }
  for (const [name, [each, second]] of Object.entries(cases))
    test(name, () => expect(coverOf(each, web, container)?.equivalentRepositories[1]).toBe(second))
})

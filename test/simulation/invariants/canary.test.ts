import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Commit, Run } from "#test/support/record.ts"
import { canaryViolationsOf } from "./canary.ts"
import { decisionAnnotation } from "./reading.ts"

// The invariants of Canaries are shown histories that break them, made by hand, and some that look alike and do not.

const begin = Date.parse("2026-01-01T00:00:00Z")
const at = formatInstant(begin)
const held = "autoimagemanager.io/held"

/** A Canary of two steps in a run, with one ready pod on each side. */
class Story {
  readonly run: Run & { commits: Commit[] } = { seed: 0, initial: [], commits: [], sent: [], lagMs: 0 }
  #now = begin
  readonly #live = new Map<string, Json>()

  constructor(status: Json = {}, spec: Json = {}) {
    this.write("Canary", "web", {
      spec: {
        targetRef: { kind: "Deployment", name: "web" },
        analysis: { threshold: 2, stepWeights: [20, 50], metrics: [{ name: "rate" }] },
        ...spec,
      },
      status: { phase: "Progressing", run: runOf(), history: [], ...status },
    })
    for (const [side, hash] of [
      ["primary", "old"],
      ["canary", "new"],
    ])
      this.write("Service", `web-${side}`, { spec: { selector: { hash } } }).pod(`p-${hash}`, hash!)
    this.weight(0)
  }

  write(kind: string, name: string, fields: Json): this {
    const before = this.#live.get(`${kind} ${name}`)
    const metadata = { name, namespace: "n", uid: `${kind}-${name}`, ...fields.metadata }
    const object = { apiVersion: kind === "Deployment" ? "apps/v1" : "v1", kind, ...fields, metadata }
    this.#live.set(`${kind} ${name}`, object)
    const revision = this.run.commits.length + 10
    const type = before ? "MODIFIED" : "ADDED"
    this.run.commits.push({
      revision,
      place: "",
      type,
      object,
      before,
      manager: "",
      at: this.#now,
    } as unknown as Commit)
    return this
  }

  pod(name: string, hash: string, metadata: Json = {}, isReady = true): this {
    const conditions = [{ type: "Ready", status: isReady ? "True" : "False" }]
    return this.write("Pod", name, { metadata: { labels: { hash }, ...metadata }, spec: {}, status: { conditions } })
  }

  weight(weight: number): this {
    return this.write("ConfigMap", "web", { data: { weight: String(weight) } })
  }

  /** The status, changed in these fields. */
  status(fields: Json): this {
    const { spec, status } = this.#live.get("Canary web")!
    return this.write("Canary", "web", { spec, status: { ...status, ...fields } })
  }

  later(ms: number): this {
    this.#now += ms
    return this
  }
}

const runOf = (fields: Json = {}): Json => ({
  id: "r1",
  checksum: "bbbb",
  failedChecks: 0,
  iterations: 0,
  weight: 0,
  metrics: [],
  reason: "Measuring",
  progressAt: at,
  target: { hash: "new", workload: "web-bbbb" },
  ...fields,
})
const metrics = (verdict: string) => [{ name: "rate", verdict }]
const promoted = (id: string) => [{ id, result: "Promoted", endedAt: at }]

const cases: Record<string, [Story, string | undefined]> = {
  "step by step": [new Story().weight(20).weight(50), undefined],
  "a set on its way to a step": [new Story().weight(10).weight(20).weight(30), undefined],
  "a step is skipped": [new Story().weight(50), "S27"],
  "beyond the last step": [new Story().weight(20).weight(50).weight(60), "S27"],
  "back to nothing": [new Story().weight(20).weight(0), undefined],
  "back a little": [new Story().weight(20).weight(10), "S27"],
  "all of it while promoting": [new Story({ phase: "Promoting" }).weight(100).weight(0), undefined],
  "a share without a run": [new Story({ phase: "Initialized", run: undefined }).weight(20), "S27"],
  "promoted by what was measured": [
    new Story().status({ phase: "Promoting", run: runOf({ metrics: metrics("Good") }) }),
    undefined,
  ],
  "promoted without data": [
    new Story().status({ phase: "Promoting", run: runOf({ metrics: metrics("NoData") }) }),
    "S29",
  ],
  "promoted by an error": [
    new Story().status({ phase: "Promoting", run: runOf({ metrics: metrics("Error") }) }),
    "S29",
  ],
  "promoted without a measurement": [new Story().status({ phase: "Promoting" }), "S29"],
  "promoted without one, as asked for": [
    new Story({}, { skipAnalysis: true }).status({ phase: "Promoting" }),
    undefined,
  ],
  "promoted after too many failed checks": [
    new Story().status({ phase: "Promoting", run: runOf({ metrics: metrics("Good"), failedChecks: 2 }) }),
    "S28",
  ],
  "a run with the checks of another": [new Story().status({ run: runOf({ id: "r2", failedChecks: 1 }) }), "S28"],
  "a run of its own": [new Story().status({ run: runOf({ id: "r2" }) }), undefined],
  "another run was promoted": [
    new Story({ phase: "Finalising" }).status({
      phase: "Succeeded",
      history: promoted("r0"),
      lastPromotedSpec: "bbbb",
    }),
    "S28",
  ],
  "another template was promoted": [
    new Story({ phase: "Finalising" }).status({
      phase: "Succeeded",
      history: promoted("r1"),
      lastPromotedSpec: "cccc",
    }),
    "S28",
  ],
  "the one that was judged was promoted": [
    new Story({ phase: "Finalising" }).status({
      phase: "Succeeded",
      history: promoted("r1"),
      lastPromotedSpec: "bbbb",
    }),
    undefined,
  ],
  "requests for a side without a ready pod": [new Story().pod("p-new", "new", {}, false).weight(20), "S30"],
  "requests back to a side without a ready pod": [
    new Story().weight(20).pod("p-old", "old", {}, false).weight(0),
    "S30",
  ],
  "the side that answers is taken away while promoting": [
    new Story()
      .weight(20)
      .status({ phase: "Promoting", run: runOf({ metrics: metrics("Good") }) })
      .pod("p-old", "old", { deletionTimestamp: at }),
    "S30",
  ],
  "the side without requests goes": [
    new Story({ phase: "Promoting" }).weight(100).pod("p-old", "old", { deletionTimestamp: at }),
    undefined,
  ],
  "a wait within its deadline": [
    new Story().later(9 * 60_000).status({ run: runOf({ reason: "WaitingForReady" }) }),
    undefined,
  ],
  "a wait beyond its deadline": [
    new Story().later(13 * 60_000).status({ run: runOf({ reason: "WaitingForReady" }) }),
    "S31",
  ],
  "a hold that changes hands": [
    new Story()
      .write("Deployment", "web", { metadata: { labels: { [held]: "canary" } } })
      .write("Deployment", "web", { metadata: { labels: { [held]: "in-place" } } }),
    "S32",
  ],
  "a hold that is released in between": [
    new Story()
      .write("Deployment", "web", { metadata: { labels: { [held]: "canary" } } })
      .write("Deployment", "web", {})
      .write("Deployment", "web", { metadata: { labels: { [held]: "in-place" } } }),
    undefined,
  ],
}

const owner = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  name: "web-bbbb",
  uid: "Deployment-web-bbbb",
  controller: true,
}
const failedOver = (phase: string) => {
  const labels = { hash: "new", "pod-template-hash": "new" }
  const pod = { labels, ownerReferences: [owner] }
  const annotations = { [decisionAnnotation]: JSON.stringify({ by: "alternateimagesource/n/demo", to: "b/app:1" }) }
  return new Story({ phase })
    .write("Deployment", "web-bbbb", {})
    .pod("p-x", "new", pod)
    .pod("p-x", "new", { ...pod, annotations })
}
cases["a pod is failed over during the analysis"] = [failedOver("Progressing"), undefined]
cases["a pod is failed over while its run goes back"] = [failedOver("Failed"), "S32"]

for (const [name, [{ run }, expected]] of Object.entries(cases))
  test(`${expected ?? "right"}: ${name}`, () => {
    const found = canaryViolationsOf(run)
    if (expected === undefined) expect(found).toEqual([])
    else expect(found.join("; ")).toContain(expected)
  })

test("nothing is said of a history without Canaries", () => {
  expect(canaryViolationsOf({ ...cases["a step is skipped"]![0].run, commits: [] })).toEqual([])
})

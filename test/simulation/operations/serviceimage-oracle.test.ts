import { readFile } from "node:fs/promises"
import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import type { Commit, Run } from "#test/support/record.ts"
import { dicom, early, image, tell } from "#test/support/rollout-story.ts"
import { wrongsOf } from "./serviceimage-oracle.ts"

// A judge that never convicts is of no use. One rollout is judged by the spec it had, and by others it never had: what
// it did was right by the first, and breaks a rule of each of the others.

const tiers = [
  { upgradeTier: "early", priority: 1 },
  { upgradeTier: "", priority: 0, steps: [{ percent: 50, soakSeconds: 20 }] },
]

const story = await tell([early("a"), early("b"), dicom("c"), dicom("d"), dicom("e"), dicom("f")], { spec: { tiers } })
await story.change({ defaultImage: image("v2") })
await story.complete()
await story.world.settle()
const run = story.world.record

/** The same history, under another spec from the beginning. */
function under(change: (spec: Json) => Json): string[] {
  const another = (object: Json | undefined): Json | undefined =>
    object?.kind === "ServiceImage" ? { ...object, spec: { ...object.spec, ...change(object.spec) } } : object
  const commits = run.commits.map(
    (commit): Commit => ({ ...commit, object: another(commit.object)!, before: another(commit.before) }),
  )
  const changed: Run = { ...run, commits }
  return [...new Set(wrongsOf({ run: changed, outages: [], restedAt: 0 }).map(ruleOf))]
}

const ruleOf = (wrong: string) => wrong.replace(/^(at rest|in the end), /, "").split(":")[0]!

const cases: Record<string, { spec: (spec: Json) => Json; breaks: string }> = {
  "the other priority first": {
    spec: ({ tiers }) => ({ tiers: tiers.map((tier: Json) => ({ ...tier, priority: -tier.priority })) }),
    breaks: "priority",
  },
  "one at once": {
    spec: ({ tiers }) => ({ tiers: tiers.map((tier: Json) => ({ ...tier, maxConcurrent: 1 })) }),
    breaks: "maxConcurrent",
  },
  "a longer soak": {
    spec: ({ tiers }) => ({
      tiers: tiers.map((tier: Json) => ({ ...tier, ...(tier.steps && { steps: [{ percent: 50, soakSeconds: 60 }] }) })),
    }),
    breaks: "soak",
  },
  "a smaller step": {
    spec: ({ tiers }) => ({
      tiers: tiers.map((tier: Json) => ({ ...tier, ...(tier.steps && { steps: [{ percent: 1 }, { percent: 50 }] }) })),
    }),
    breaks: "soak",
  },
  "a longer settling": {
    spec: ({ tiers }) => ({ tiers: tiers.map((tier: Json) => ({ ...tier, settleSeconds: 60 })) }),
    breaks: "complete",
  },
  "one pod a second": { spec: () => ({ pace: { podsPerSecond: 1 } }), breaks: "pace" },
  "an approval": {
    spec: ({ tiers }) => ({ tiers: tiers.map((tier: Json) => ({ ...tier, requireApproval: true })) }),
    breaks: "approval",
  },
  "a pause": { spec: () => ({ paused: true }), breaks: "pause" },
  "another image": { spec: () => ({ defaultImage: image("v9") }), breaks: "image" },
  "another image, in the end": { spec: () => ({ defaultImage: image("v9") }), breaks: "final" },
  "other objects": {
    spec: ({ target }) => ({ target: { ...target, selector: { matchLabels: { app: "another" } } } }),
    breaks: "owner",
  },
}

test("by its own spec nothing was wrong", () => expect(under(() => ({}))).toEqual([]))

for (const [name, { spec, breaks }] of Object.entries(cases))
  test(`${name}: ${breaks}`, () => expect(under(spec)).toContain(breaks))

test("nothing of src is used to judge it", async () => {
  for (const file of [
    "serviceimage-oracle.ts",
    "contract.ts",
    "failover-oracle.ts",
    "../invariants/reading.ts",
    "../invariants/images.ts",
  ]) {
    const text = await readFile(new URL(file, import.meta.url), "utf8")
    const imports = [...text.matchAll(/^import (type )?[^"]*"([^"]+)"/gm)]
    const used = imports.filter(([, isType, path]) => !isType && !path!.startsWith("."))
    expect(
      used.map(([line]) => line),
      file,
    ).toEqual([])
  }
})

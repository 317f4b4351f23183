import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { unjudgedSteps } from "./judged-tiers.ts"
import type { Reading, StatusWrite } from "./reading.ts"

// The invariant itself: a step that is passed by a good round, and one thing in it that is wrong.

const serviceImage = (tier: Json, { id = "g1", phase = "InProgress", image = "web:2" } = {}): Json => ({
  metadata: { name: "web", uid: "u", generation: 1 },
  spec: { defaultImage: "web:2", tiers: [{ upgradeTier: "", analysis: { threshold: 2 } }] },
  status: {
    operation: { id, phase, images: { "": image } },
    tierStatus: [{ upgradeTier: "", total: 4, conditions: [], ...tier }],
  },
})
const at = (percent: number, analysis?: Json) => ({ step: { percent }, ...(analysis && { analysis }) })
const found = (verdict: string, percent = 30, failedChecks = 0) => ({ verdict, percent, failedChecks })
const complete = { conditions: [{ type: "Complete", status: "True", reason: "AllUpToDate" }] }

const passing = (before: Json, after: Json) =>
  unjudgedSteps({
    stamps: [],
    lives: new Map(),
    run: {} as Reading["run"],
    statuses: [{ commit: { revision: 7, before }, serviceImage: after } as unknown as StatusWrite],
  })

const good = serviceImage(at(100, found("Good")))
const before = serviceImage(at(30))
const failed = serviceImage(at(30, found("BadMetric", 30, 2)))
const none = { total: 0, ...at(100, found("BadMetric", 30, 2)), ...complete }
test.each<[string, Json, Json, number]>([
  ["a good round of its own", before, good, 0],
  ["the same step still", before, serviceImage(at(30, found("BadMetric"))), 0],
  ["no round at all", before, serviceImage(at(100)), 1],
  ["a bad one", before, serviceImage(at(100, found("BadMetric", 30, 1))), 1],
  ["as many failed checks as threshold says", before, serviceImage(at(100, found("Good", 30, 2))), 1],
  ["the round of the step before", serviceImage(at(60)), good, 1],
  ["complete without a round", serviceImage(at(100)), serviceImage({ ...at(100), ...complete }), 1],
  ["an operation with another image", before, serviceImage(at(100), { id: "g2", image: "web:3" }), 0],
  ["another operation with the same image", before, serviceImage(at(100), { id: "g2" }), 1],
  ["a rollback", before, serviceImage(at(100), { phase: "RollingBack" }), 0],
  ["a tier without objects", before, serviceImage({ ...at(100), total: 0 }), 0],
  ["one that lost them after it had failed", failed, serviceImage({ ...failed.status.tierStatus[0], ...none }), 1],
])("%s", (_, was, is, violations) => expect(passing(was, is)).toHaveLength(violations))

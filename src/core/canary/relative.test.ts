import { expect, test } from "vitest"
import { judgeRelative } from "./relative.ts"
import type { Answer } from "./verdict.ts"

const one = (value: number): Answer => ({ ok: true, series: [{ labels: {}, value }] })
const none: Answer = { ok: true, series: [] }
const broken: Answer = { ok: false, message: "no connection" }
const most = (max: number) => ({ name: "latency", thresholdRange: { max } })
const least = (min: number) => ({ name: "rate", thresholdRange: { min } })

test.each([
  ["a little more than the source", most(1.2), one(110), one(100), { verdict: "Good", value: 1.1 }],
  ["too much more", most(1.2), one(150), one(100), { verdict: "Bad", why: "new by running: 1.5 is above 1.2" }],
  [
    "less than it should be",
    least(0.9),
    one(80),
    one(100),
    { verdict: "Bad", why: "new by running: 0.8 is below 0.9" },
  ],
  ["nothing in both", most(1.2), one(0), one(0), { verdict: "Good", value: 1 }],
  [
    "errors where the source has none",
    most(1.2),
    one(2),
    one(0),
    { verdict: "Bad", why: "2 where the running revision has 0" },
  ],
  ["successes where the source has none", least(0.9), one(2), one(0), { verdict: "Good" }],
  ["less than nothing", least(0.9), one(-2), one(0), { verdict: "Bad" }],
  [
    "no data of the target",
    most(1.2),
    none,
    one(1),
    { verdict: "NoData", why: "new revision: the query found no series" },
  ],
  [
    "no data of the source",
    most(1.2),
    one(1),
    none,
    { verdict: "NoData", why: "running revision: the query found no series" },
  ],
  ["no number of the source", most(1.2), one(1), one(Number.NaN), { verdict: "NoData" }],
  ["an error of the source", most(1.2), none, broken, { verdict: "Error", why: "running revision: no connection" }],
  ["more than every number", most(1.2), one(Number.POSITIVE_INFINITY), one(1), { verdict: "Error" }],
  ["an error of both", most(1.2), broken, broken, { verdict: "Error", why: "new revision: no connection" }],
] as const)("%s", (_, metric, target, source, expected) =>
  expect(judgeRelative(metric, target, source)).toMatchObject(expected),
)

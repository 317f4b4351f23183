import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { repository } from "#tools/kube/folders.ts"

// The cases that a Canary has to get right, and the test that shows each. A test that is renamed or removed fails here.

type Shown = readonly [file: string, ...names: string[]]

const of =
  (file: string) =>
  (...names: string[]): Shown => [file, ...names]
const story = of("test/scenarios/canary.test.ts")
const cases_ = of("test/scenarios/canary-cases.test.ts")
const person = of("test/scenarios/canary-person.test.ts")
const scaler = of("test/scenarios/canary-autoscaler.test.ts")
const traffic = of("test/scenarios/canary-traffic.test.ts")
const budgets = of("test/scenarios/canary-budgets.test.ts")
const deletion = of("test/scenarios/canary-deletion.test.ts")
const sets = of("test/scenarios/canary-sets.test.ts")
const config = of("test/scenarios/canary-config.test.ts")
const row = of("src/core/canary/run.test.ts")
const table = (name: string, ...names: string[]): Shown => [`src/core/canary/${name}.test.ts`, ...names]

const cases: readonly [what: string, ...Shown[]][] = [
  // The autoscaler keeps its minimum on the running revision, so a share of that is a share of the minimum too.
  ["1 an autoscaler's minimum above the share", table("size", "has the same share of pods, and at least one")],
  // The new revision has a Deployment of its own, which the autoscaler does not count.
  ["2 an autoscaler's maximum too small for both", cases_("bounds the running revision, and not both")],
  ["3 an autoscaler scales in the middle of a step", scaler("it scales the source up during a run, not down")],
  ["4 the autoscaler is missing", table("scaler", "one that is missing is named beside what goes on")],
  [
    "5 what was written into a ScaledObject is left behind",
    scaler("a ScaledObject of KEDA", "the process dies during the run: the next one goes on, and puts it back"),
  ],
  [
    "6 the target is changed during the analysis",
    story("the template changed during a run: the next one starts from the source"),
    row("a source at full size again is needed before requests go back"),
  ],
  [
    "7 the target is changed during the promotion",
    cases_("while it is handed over: the swap is finished, and the next run follows"),
    row("11 the template changed before: back"),
  ],
  ["8 back to the promoted template", story("reverted: the run is cancelled, and no pod of the source was touched")],
  ["9 two Canaries of one target", cases_("two Canaries of one target: the second is refused")],
  [
    "10 configuration that the template names",
    config("that changes starts a run, is promoted", "that is bad is taken back"),
  ],
  ["11 configuration that cannot be read", config("that cannot be read counts as it was last known")],
  ["12 credentials that are renewed", config("that another program renews is followed and not proven")],
  ["13 no result, or NaN", table("verdict", "no series and NaN are no data"), table("tally", "no data holds until")],
  ["14 infinite, or several series", table("verdict", "an infinite value, several series")],
  ["15 the metric service is down", table("tally", "errors hold for as long as they last")],
  ["16 a window older than the step", table("verdict", "no window reaches back before the present weight")],
  ["17 a cold start", table("rounds", "a cold start: the first round waits for initialDelay")],
  [
    "18 a hook that does not answer",
    ["src/controllers/hooks.test.ts", "an attempt has its own time"],
    row("6 at its deadline"),
  ],
  ["19 an answer that is neither yes nor no", table("hook", "only 2xx is yes")],
  ["20 an approval twice, or too late", person("each approval opens one gate, and an approval of an earlier run")],
  ["21 deleted in the middle", deletion("deleted at weight ", "deleted when ")],
  ["22 the new revision is deleted", cases_("the run has failed (TargetMissing)")],
  ["23 the running revision is deleted", cases_("nothing of it goes (SourceMissing)")],
  [
    "24 the controller restarts",
    ["test/simulation/canary-faults.test.ts", "a fault at each write of a run that is promoted"],
    ["test/simulation/canary-set-faults.test.ts", "a fault at each write of a run of a "],
    cases_("hooks that have passed are not called again by the next process"),
  ],
  [
    "25 the status is lost after the route was written",
    ["test/simulation/fates.ts", "its answer is lost"],
    row("the weight that is reported is the one that is routed"),
  ],
  ["26 a PodDisruptionBudget", budgets("the pods of before stay until the budget lets them go")],
  ["27 no pods at all", row("4 without pods the change waits")],
  ["28 no room in the cluster", cases_("no node takes them (Unschedulable)")],
  ["29 a quota", cases_("a quota has no room for them (QuotaExceeded)")],
  ["30 the running revision is not ready", row("15 a source that is not ready does not keep a ready target")],
  ["31 bad after promotion", person("taken back after promotion: within scaleDownDelaySeconds")],
  ["32 a failed run, then a fix", cases_("to a fix after a failed run: the fix is judged by itself")],
  [
    "33 the same template again and again",
    row("4 a template that failed waits", "a template that failed is tried again when a person asks"),
    sets("The same template is not tried again"),
  ],
  ["34 GitOps writes replicas", cases_("GitOps writes the replicas again and again during a run")],
  [
    "35 another version of the controller",
    cases_("another version of the controller starts: nothing runs for what did not change"),
    table("checksum", "the same checksum in every version"),
  ],
  ["36 stepWeights are edited", table("steps", "one that was edited is not jumped over")],
  ["37 a maximum between two steps", table("steps", "the last step ends at the maximum")],
  [
    "38 the route is edited by another hand",
    [
      "src/core/canary/routers/routers.test.ts",
      "one that was put back by its owner is divided again, and edits of its owner stay",
    ],
  ],
  ["39 the route is not accepted", row("15 a route that is not accepted holds everything")],
  [
    "40 long connections",
    row("the pods of before stay for a while"),
    traffic(" connections: promoted, and no request fails"),
  ],
  [
    "41 the owner's Service selects both",
    table("services", "selects the source alone while the target is another revision"),
  ],
  ["42 an image that cannot be pulled", story("an image that no node can pull ends the run after its grace")],
  ["43 clocks that differ", table("rounds", "a clock that is behind the one that wrote the status")],
  ["44 a node is drained or lost", cases_("a node is lost in the middle of a step")],
  ["45 the route's kind is missing", ["test/scenarios/canary-product.test.ts", "a cluster without HTTPRoutes"]],
  ["46 a template that is in the history", cases_("to a template that is still in the history")],
  ["47 held after a failure", cases_("held after a failure: new pods are of the old image")],
  ["48 the selector before the weight", table("turn", "the other Service turns", "it has no endpoints yet")],
  ["49 a filter that the gateway lacks", ["src/core/canary/routers/routers.test.ts", 'describe("problems"']],
]

test("every case has its number", () => {
  const all = Array.from({ length: 49 }, (_, index) => index + 1)
  expect(cases.map(([what]) => Number.parseInt(what, 10))).toEqual(all)
})

for (const [what, ...shown] of cases)
  test(what, async () => {
    for (const [file, ...names] of shown) {
      const source = await readFile(join(repository, file), "utf8")
      for (const name of names) expect(source, `${file} has ${name}`).toContain(name)
    }
  })

import type { Mutant } from "./mutants.ts"

const core = "src/core/canary"
const stories = "test/scenarios/canary"

type Caught = { tests: string; caughtBy: string; says?: string | undefined }
const mistake = (file: string, find: string, replace: string, { tests, caughtBy, says }: Caught): Mutant => ({
  ...{ file, edits: [{ find, replace }], tests, caughtBy, says },
})

/** Mistakes where a new revision earns its requests. */
export const canaryMutants: Record<string, Mutant> = {
  "a weight that rises before the target is ready": mistake(
    `${core}/arrange.ts`,
    '  if (targetGetsMore && !isReady(target, shares.target)) return { wait: "TargetNotReady" }\n',
    "",
    { tests: `${core}/arrange.test`, caughtBy: "no request goes where no pod is ready" },
  ),
  "requests that go back to a side that is not ready": mistake(
    `${core}/arrange.ts`,
    '  if (sourceGetsMore && !mayFallBack(source, target, shares)) return { wait: "SourceNotReady" }\n',
    "",
    { tests: `${core}/arrange.test`, caughtBy: "no request goes where no pod is ready" },
  ),
  "no data that promotes": {
    file: `${core}/tally.ts`,
    edits: [
      { find: 'check.verdict !== "NoData" || noData === "Hold"', replace: 'check.verdict !== "NoData"' },
      { find: 'return noData === "Pass" ?', replace: 'return noData !== "Fail" ?' },
    ],
    tests: "test/simulation/canary-set-faults",
    caughtBy: "has no data holds the weight",
  },
  "a gate that promotes whatever was measured last": mistake(
    `${core}/run.ts`,
    "return isGoodAtLast(sight, passage.run) ? confirmed(passage.run)",
    "return isGoodAtLast ? confirmed(passage.run)",
    { tests: `${core}/run.test`, caughtBy: "the last round said NoData: not yet" },
  ),
  "a window from before the present weight": mistake(
    `${core}/verdict.ts`,
    "Math.min(askedMs, Math.max(1000, Math.floor(atThisWeightMs / 1000) * 1000))",
    "Math.max(askedMs, Math.floor(atThisWeightMs / 1000) * 1000)",
    { tests: "src/controllers/measure.test", caughtBy: "no window reaches back before the present weight" },
  ),
  "a check too many before a run fails": mistake(
    `${core}/tally.ts`,
    "tally.failedChecks >= limits.threshold",
    "tally.failedChecks > limits.threshold",
    { tests: `${core}/tally.test`, caughtBy: "and the last one fails" },
  ),
  "a hand-over without its fence": mistake(
    `${core}/hand-over.ts`,
    '    if (!user.hasCounted) return { wait: "NotCounted" }\n',
    "",
    { tests: `${core}/run.test`, caughtBy: "it is counted before anything else" },
  ),
  "pods of before that go before the route is accepted": mistake(
    `${core}/turn.ts`,
    'if (weight === 0) return isAccepted ? "done" : { wait: "RouteNotAccepted" }',
    'if (weight === 0) return "done"',
    { tests: `${core}/turn.test`, caughtBy: "what serves the route has not taken it over" },
  ),
  "an approval of another run that counts": mistake(
    `${core}/gates.ts`,
    "approval.operation !== run.id || approval.checksum !== run.checksum",
    "approval.checksum !== run.checksum && approval.operation === run.id",
    { tests: `${stories}-person`, caughtBy: "an approval of an earlier run opens none" },
  ),
  "an autoscaler that is not put back": mistake(
    `${core}/scalers.ts`,
    'if (!before) return run ? "AsTheyAre" : "Free"',
    'if (!before) return "AsTheyAre"',
    { tests: `${stories}-autoscaler`, caughtBy: "and is as before afterwards" },
  ),
  "a rejected template that is tried again": mistake(
    `${core}/configs.ts`,
    'phase === "Failed" && lastAppliedSpec === checksum && !isRetried',
    'phase === "Failed" && lastAppliedSpec === checksum && isRetried',
    { tests: `${stories}.test`, caughtBy: "and the template waits" },
  ),
  "a deletion that does not give the requests back": mistake(`${core}/leave.ts`, "    if (step) return step\n", "", {
    tests: `${stories}-deletion`,
    caughtBy: "deleted at weight 34",
  }),
  "a hook that is called again after it has answered": mistake(
    "src/controllers/hooks.ts",
    "      if (!answer)\n        questions.ask(",
    "      if (id)\n        questions.ask(",
    { tests: "src/controllers/hooks.test", caughtBy: "and a key of the call, once" },
  ),
  "a run that takes over what another one was judged by": mistake(
    `${core}/idle.ts`,
    "    failedChecks: 0,\n    progressAt: at,",
    "    failedChecks: statusOf(sight).failedChecks ?? 0,\n    progressAt: at,",
    { tests: `${stories}-cases`, caughtBy: "the fix is judged by itself" },
  ),
  "a batch that begins behind the partition": mistake(`${core}/rollout-plan.ts`, "batch <= last", "batch >= 0", {
    tests: `${core}/rollout-plan.test`,
    caughtBy: "a batch behind batchPartition waits",
  }),
  "a metric of a plan that nothing judges": mistake(
    `${core}/rollout-plan.ts`,
    "metrics: [...analysis.metrics, ...metrics]",
    "metrics: [...analysis.metrics, ...metrics.slice(metrics.length)]",
    { tests: `${core}/rollout-plan.test`, caughtBy: "metrics, hooks and the pause are those of the Canary" },
  ),
  "a budget that is not asked": mistake(
    `${core}/run.ts`,
    "withBudgets(sight, decideRun(sight))",
    "withBudgets ? decideRun(sight) : decideRun(sight)",
    { tests: `${stories}-budgets`, caughtBy: "the pods of before stay until the budget lets them go" },
  ),
  "a pod of the new revision that is taken for one of before": mistake(
    `${core}/targets/daemon-set.ts`,
    ' || run.target.hash === ""',
    "",
    {
      tests: "test/simulation/canary-set-faults",
      caughtBy: "a view of controllerrevisions that is thirty seconds old",
    },
  ),
  "a partition that stays low during the analysis": mistake(
    `${core}/targets/stateful-set.ts`,
    'return isMade && due.length === workload!.size - set!.partition ? partitioned(everyOrdinal, held) : "done"',
    'return isMade && due.length > workload!.size ? partitioned(everyOrdinal, held) : "done"',
    { tests: `${stories}-sets.test`, caughtBy: "the partition stands above every ordinal" },
  ),
}

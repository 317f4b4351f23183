/** The controller with a mistake in it. */
export type Mutant = {
  /** A file, or a folder in which one file has the code. */
  file: string
  /** Each stands exactly once in the file. */
  edits: readonly { find: string; replace: string }[]
  /** Which tests must notice, by a part of their names. */
  caughtBy: string
  /** Where they are; those of the ServiceImage's simulation if nothing is said. */
  tests?: string | undefined
  /** What they must say, where it is not enough that they fail. */
  says?: string | undefined
}

const controllers = "src/controllers/serviceimage"
const edit = (file: string, find: string, replace: string, caughtBy: string): Mutant => ({
  file,
  edits: [{ find, replace }],
  caughtBy,
})

/** Possible mistakes, each of which the simulation has to find. */
export const mutants: Record<string, Mutant> = {
  "a stamp without the version it was decided from": edit(
    "src/core/workloads/target-reader.ts",
    "const metadata = { resourceVersion: member.resourceVersion, annotations }",
    "const metadata = { annotations }",
    "withdrawn",
  ),
  "a successor that does not touch what was declared": edit(
    `${controllers}/memory.ts`,
    "for (const key of status.inflight ?? []) memory.doubts.inherit(key)",
    "",
    "withdrawn",
  ),
  "a list of intents that is cleared before they are touched": edit(
    `${controllers}/plan.ts`,
    "[...new Set([...unsure, ",
    "[...new Set([...[...unsure].slice(0, 0), ",
    "withdrawn",
  ),
  "a stamp that was not declared": edit(
    `${controllers}/stamps.ts`,
    "return { stamps: now, intents, declares: true }",
    "return { stamps: now, intents, declares: false }",
    "withdrawn",
  ),
  "leaders that all have the same name": edit(
    "src/runtime/manager.ts",
    "const identity = random.uuid()",
    'const identity = "aim"',
    "withdrawn",
  ),
  "a status that is written whatever has happened since": edit(
    "src/runtime/status.ts",
    'await client.replace(resource, { ...object, status }, { subresource: "status" })',
    'await client.patch<O>(resource, object.metadata, { type: "merge", body: { status: status as object } }, { subresource: "status" })',
    "withdrawn",
  ),
  "a tenant's own image that is overwritten": edit(
    "src/core/workloads/custom-target.ts",
    'isUnmanaged: object => fieldOf(fieldOf(object, "spec"), "manuallySpecifiedImage") === true,',
    "isUnmanaged: () => false,",
    "withdrawn",
  ),
  "the lowest priority first": edit(
    "src/core/fleet/tiers.ts",
    "b.priority - a.priority",
    "a.priority - b.priority",
    "an upgrade over two tiers",
  ),
  "a halted rollout that goes on": edit(
    `${controllers}/checks.ts`,
    'name: "halted",\n    stops: true,',
    'name: "halted",',
    "halts the rollout",
  ),
  "a paused rollout that goes on": edit(
    `${controllers}/checks.ts`,
    'name: "paused", stops: true,',
    'name: "paused",',
    "change of mind",
  ),
  "health that speaks of an older generation, believed": {
    file: "src/core/workloads/custom-target.ts",
    edits: [
      { find: "  if (!isObserved(object)) return false\n", replace: "" },
      { find: "(wholeNumber(found.observedGeneration) ?? generation) >= generation", replace: "generation >= 0" },
    ],
    // In a story settling hides it: the next report of the operator begins the time anew.
    tests: "src/core/fleet/member.test.ts",
    caughtBy: "UpToDate counts only when",
  },
  "a next tier that does not wait for the health of the one before": edit(
    `${controllers}/judge.ts`,
    "if (halt || stale > 0 || waiting > 0 || settling > 0)",
    "if (halt || stale > 0)",
    "an upgrade over two tiers",
  ),
  "a judged step that is passed before a round was good": edit(
    `${controllers}/judge.ts`,
    "if (soaksUntil > now || judging?.isGood === false) {",
    "if (soaksUntil > now) {",
    "bad, and a fixed image",
  ),
  "failed checks that are counted from nothing in every round": edit(
    `${controllers}/analysis.ts`,
    "failedChecks: was?.failedChecks ?? 0,",
    "failedChecks: 0,",
    "bad, and a fixed image",
  ),
  "a step that no round found good, passed because another step has the same objects": {
    file: `${controllers}/judge.ts`,
    edits: [{ find: "!isFoundGood(tier, view, step, found)", replace: "!addsNone" }],
    tests: "src/controllers/serviceimage/analysis.test.ts",
    caughtBy: "other steps in the spec",
  },
  "a step that begins anew with each process": {
    file: `${controllers}/judge.ts`,
    edits: [{ find: "upToDateAt: isSeenAnew ? since : undefined", replace: "upToDateAt: undefined" }],
    tests: "test/scenarios/serviceimage-analysis.test.ts",
    caughtBy: "starts in the middle of a judgement",
  },
  "a touch that has the same value each time": edit(
    `${controllers}/controller.ts`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: source text
    "`${identity}.${++memory.touches}`",
    '"touched"',
    "successor soon after",
  ),
  "a write without an answer, taken for answered": edit(
    `${controllers}/apply.ts`,
    'if (outcome.is === "Unknown") return outcomes.unknown(key, outcome.error)\n    outcomes.answered(key)\n',
    'if (outcome.is === "Unknown") return outcomes.answered(key)\n    outcomes.answered(key)\n',
    "withdrawn.*it arrives a minute late, at",
  ),
  "Complete, while a write of the predecessor may be on its way": edit(
    `${controllers}/checks.ts`,
    "(fence.unsure.size > 0 || fence.isBehind)",
    "fence.isBehind",
    "withdrawn",
  ),
  "a time that moves with every status": edit(
    "src/runtime/conditions.ts",
    "before?.status === stated.status ?",
    "before?.status === stated.reason ?",
    "withdrawn",
  ),
}

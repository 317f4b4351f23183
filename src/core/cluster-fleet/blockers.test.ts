import { expect, test } from "vitest"
import { blockedBy, type OtherRun } from "./blockers.ts"

const run = (outcome: OtherRun["outcome"], blockers: string[] = [], completed: string[] = []): OtherRun => ({
  outcome,
  blockers,
  completed,
})
const blocker = (name: string, rest: Partial<{ completion: "Full" | "Partial"; onlyItsCompleted: boolean }> = {}) => ({
  name,
  completion: "Full" as const,
  onlyItsCompleted: false,
  ...rest,
})

const cases: Record<
  string,
  { blockers: ReturnType<typeof blocker>[]; others: Record<string, OtherRun>; gives: string }
> = {
  "no blockers": { blockers: [], others: {}, gives: "Free" },
  "one that succeeded": { blockers: [blocker("a")], others: { a: run("Succeeded") }, gives: "Free" },
  "one that runs": { blockers: [blocker("a")], others: { a: run("Running") }, gives: "IncompleteBlockingCR" },
  "one that is missing": { blockers: [blocker("a")], others: {}, gives: "MissingBlockingCR" },
  "one that failed": { blockers: [blocker("a")], others: { a: run("Failed") }, gives: "FailedBlockingCR" },
  "one that is partly done, where all is wanted": {
    blockers: [blocker("a")],
    others: { a: run("Partial") },
    gives: "FailedBlockingCR",
  },
  "one that is partly done, where that is enough": {
    blockers: [blocker("a", { completion: "Partial" })],
    others: { a: run("Partial") },
    gives: "Free",
  },
  "only clusters that all blockers completed": {
    blockers: [blocker("a", { onlyItsCompleted: true }), blocker("b", { onlyItsCompleted: true })],
    others: { a: run("Succeeded", [], ["x", "y"]), b: run("Succeeded", [], ["y", "z"]) },
    gives: "Free y",
  },
  "a run that waits for itself": { blockers: [blocker("me")], others: {}, gives: "me waits for me" },
  "a cycle over two others": {
    blockers: [blocker("a")],
    others: { a: run("Running", ["b"]), b: run("Running", ["me"]) },
    gives: "me waits for a waits for b waits for me",
  },
  "a cycle of others is theirs": {
    blockers: [blocker("a")],
    others: { a: run("Running", ["b"]), b: run("Running", ["a"]) },
    gives: "IncompleteBlockingCR",
  },
}

for (const [name, { blockers, others, gives }] of Object.entries(cases))
  test(name, () => {
    const found = blockedBy("me", blockers, new Map(Object.entries(others)))
    if (found.is === "Free") expect(["Free", ...(found.onlyThese ?? [])].join(" ")).toBe(gives)
    else expect(found.reason === "UnresolvableDependency" ? found.message : found.reason).toContain(gives)
  })

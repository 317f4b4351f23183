import type { Mutant } from "./mutants.ts"

const controller = "src/controllers/serviceimage"

const mistake = (file: string, caughtBy: string, ...edits: [find: string, replace: string][]): Mutant => ({
  file: `${controller}/${file}`,
  edits: edits.map(([find, replace]) => ({ find, replace })),
  tests: "test/simulation/pre-cache-faults",
  caughtBy,
  says: "S17",
})

/** Mistakes where a tier waits for its images. */
export const preCacheMutants: Record<string, Mutant> = {
  "a tier that starts before the proof": mistake("checks.ts", "two tiers, the second", [
    'name: "preCaching", stops: true,',
    'name: "preCaching",',
  ]),
  "a proof of another digest": mistake("pre-cache.ts", "a digest whose tag has moved on", [
    "  image,\n  selector: { names },",
    '  image: image.split("@")[0]!,\n  selector: { names },',
  ]),
  "a node without an agent, counted as there": mistake("pre-cache.ts", "until it is there", [
    "if (has === names.length && said?.isReady) continue",
    'if (has + (said?.failed.filter(({ reason }) => reason === "AgentMissing").length ?? 0) === names.length) continue',
  ]),
  "a proof for the nodes that the job had before": mistake(
    "pre-cache-jobs.ts",
    "a pod that moves.*killed before it, at each write of the manager",
    ["status?.observedGeneration === generation ?", "status ?"],
  ),
  "a proof of the operation before": mistake(
    "pre-cache.ts",
    "another image in the middle",
    ["hash([uid, operation, tier])", "hash([uid, tier])"],
    ["const said = job && isSame(job.spec, spec) ? job.said : undefined", "const said = job?.said"],
  ),
  "Proceed before its time": mistake("pre-cache.ts", "until the time is up", [
    "if (now < endsAt) return",
    "if (now < endsAt && !mayProceed) return",
  ]),
  "a tier that is opened by an object of another one": {
    ...mistake("", "moves to the next tier", [
      "decision?.tier === tier && decision.reason",
      "(decision?.tier === tier || tier === tier) && decision?.reason",
    ]),
    file: "src/core/fleet/tier.ts",
  },
}

import type { Mutant } from "./mutants.ts"

const [tiers, pods] = ["test/scenarios/in-place-tiers", "test/scenarios/in-place-failover"]

const edit = (file: string, find: string, replace: string, tests: string, caughtBy: string): Mutant => ({
  file,
  edits: [{ find, replace }],
  tests,
  caughtBy,
})

/** Possible mistakes where an update in place meets a rollout or a failover. */
export const sideBySideMutants: Record<string, Mutant> = {
  "a stamp that changes the image and does not hold": edit(
    "src/core/in-place/own-hold.ts",
    "    spec: stops[kind]!.spec,\n",
    "",
    tiers,
    "the stamp holds the Deployment",
  ),
  "a held workload that counts as up to date": edit(
    "src/core/workloads/workload-target.ts",
    "isObserved(object) && !isUnderWay(object) && ",
    "isObserved(object) && ",
    tiers,
    "the stamp holds the Deployment",
  ),
  "an update that failed, and whose pods look well": edit(
    "src/core/fleet/judge-object.ts",
    'const isGivenUp = isRejected || blocked?.reason === "UpdateFailed"',
    "const isGivenUp = isRejected",
    tiers,
    "does not look well again",
  ),
  "an image that is tried again after it was taken back": edit(
    "src/core/fleet/judge-object.ts",
    "if (!inPlace?.takenBack || !sameImage(inPlace.takenBack.image, wanted)) return false",
    "if (inPlace?.takenBack || !wanted) return false",
    tiers,
    "is not tried again",
  ),
  "a failover of a pod that an update works on": {
    ...edit(
      "src/controllers/alternateimagesource/decide.ts",
      "const free = group.failing.filter(pod => !isLeft(group, pod))",
      "const free = group.failing",
      pods,
      "is not failed over",
    ),
    says: "S32",
  },
  "an update of a pod that a failover has just changed": {
    ...edit(
      "src/core/in-place/next.ts",
      "if (repaired !== undefined) {",
      "if (repaired === 0) {",
      pods,
      "is left alone by an update in place",
    ),
    says: "S32",
  },
  "an update to the image that a pod stands for": edit(
    "src/core/in-place/standing.ts",
    "if (standsFor(failover, { name, image: container.image }) === image) return false",
    "if (failover === null) return false",
    pods,
    "changing the image back restarts nothing",
  ),
}

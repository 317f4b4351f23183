// Seeds that once failed, and what each taught. They are played whatever AIM_RUNS says.

export const serviceImageSeeds: Record<number, string> = {
  42: "first images that are being written count towards maxConcurrent",
  365: "on a first rollout, what gets its first image has the target, and takes a place in maxConcurrent",
  154: "an object that is not up to date when its tier is complete already is counted as regressed",
  487: "an object that is created while a complete rollout is paused gets no image, and that is not stuck",
  819: "an object that moves to a complete tier and never was up to date holds back the others after its settling time",
  1796: "an object that lost its health while no controller ran holds back the tiers after its own",
  1983: "an object that loses its health in the second of its deadline had been up to date in time",
  2396: "what a ServiceImage of the same name stamped before it was created again has nothing to prove",
  2704: "a failure that is marked as one that halts, after the operation was complete, is told as before",
  2894: "what has settled stays so when settleSeconds is raised during the operation",
  3331: "a first image that is taken back gives way to the last one that was complete in its tier, not in the last operation",
  4683: "an object that is created during a rollback gets the image that the status names for new ones",
  5783: "a tier that was complete in an operation before keeps its proof: an object that regresses gets its whole deadline under a new leader",
  6266: "a contest begins when it is seen, and not with the last look before it",
  6766: "what was settling at its deadline and breaks for a moment has not failed: a new leader's touch is such a moment",
  6074: "an object that moves to another tier and back gets the image of its tier again",
}

export const failoverSeeds: Record<number, string> = {
  490: "an incident whose repaired pods are all replaced is over",
}

/** Of several faults in one story about AlternateImageSources. */
export const failoverFaultSeeds: Record<number, string> = {
  2378: "a status that was lost is written again with every repository that pods were taken from",
}

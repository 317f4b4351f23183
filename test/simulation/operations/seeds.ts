// Seeds that once failed, and what each taught. They are played whatever AIM_RUNS says.

export const serviceImageSeeds: Record<number, string> = {
  42: "first images that are being written count towards maxConcurrent",
  365: "on a first rollout, what gets its first image has the target, and takes a place in maxConcurrent",
  154: "an object that is not up to date when its tier is complete already is counted as regressed",
  487: "an object that is created while a complete rollout is paused gets no image, and that is not stuck",
  819: "an object that moves to a complete tier and never was up to date holds back the others after its settling time",
}

export const failoverSeeds: Record<number, string> = {
  490: "an incident whose repaired pods are all replaced is over",
}

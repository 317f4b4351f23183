// Seeds that once failed, and what each taught. They are played whatever AIM_RUNS says.

export const serviceImageSeeds: Record<number, string> = {
  42: "first images that are being written count towards maxConcurrent",
  365: "on a first rollout, what gets its first image has the target, and takes a place in maxConcurrent",
  154: "an object that is not up to date when its tier is complete already is counted as regressed",
}

export const failoverSeeds: Record<number, string> = {}

// Seeds that once failed, and what each taught. They are played whatever AIM_RUNS says.

export const serviceImageSeeds: Record<number, string> = {
  42: "first images that are being written count towards maxConcurrent",
}

export const failoverSeeds: Record<number, string> = {}

// Seeds that once failed, and what each taught. They are played whatever AIM_RUNS says.

export const serviceImageSeeds: Record<number, string> = {
  42: "first images that are being written count towards maxConcurrent",
}

export const failoverSeeds: Record<number, string> = {}

/** Seeds that fail and are not understood yet: left out of the many, and to be looked at by AIM_SEED. */
export const openSeeds: Record<number, string> = {
  154: "S3: Complete is said while one object is not up to date, and counted neither as failed nor as regressed",
}

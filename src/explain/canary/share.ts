import type { CanaryStatus } from "#api/v1alpha1/canary/index.ts"

/**
 * How many percent of the requests the new revision has. From Finalising on, the weight is 0 as with Flagger, because the
 * Service of the source selects the new revision: that one has them all.
 */
export const shareOf = ({ phase, canaryWeight = 0 }: Partial<CanaryStatus>): number =>
  phase === "Finalising" ? 100 : canaryWeight

import { expect, test } from "vitest"
import { forecast } from "./forecast.ts"

const minute = 60_000
const calm = {
  batchMs: [10 * minute, 20 * minute],
  batchesLeft: 4,
  clustersLeft: 40,
  leftMs: 60 * minute,
  windowMs: 240 * minute,
}

const cases: Record<string, { given: Partial<Parameters<typeof forecast>[0]>; fits: boolean; says: string }> = {
  "a batch and its rollback fit": { given: {}, fits: true, says: "about 60 min; the window is open for 60 min" },
  "they do not": { given: { leftMs: 29 * minute }, fits: false, says: "one batch with its rollback takes 30 min" },
  exactly: { given: { leftMs: 30 * minute }, fits: true, says: "open for 30 min" },
  "no window is long enough for both, and the batch alone fits": {
    given: { windowMs: 20 * minute, leftMs: 15 * minute },
    fits: true,
    says: "open for 15 min",
  },
  "no window is long enough for both, and the batch alone does not fit": {
    given: { windowMs: 20 * minute, leftMs: 14 * minute },
    fits: false,
    says: "open for 14 min",
  },
  "no window is long enough for a batch": {
    given: { windowMs: 10 * minute, leftMs: 5 * minute },
    fits: true,
    says: "open for 5 min",
  },
  "without a window": { given: { leftMs: undefined }, fits: true, says: "40 clusters in 4 batches left, about 60 min" },
  "nothing measured yet": { given: { batchMs: [] }, fits: true, says: "is not known yet" },
  "only the pull is known": {
    given: { batchMs: [], bytes: 60e9, bytesPerSecond: 10e6, leftMs: 60 * minute },
    fits: false,
    says: "one batch with its rollback takes 200 min",
  },
  "nothing left": { given: { batchesLeft: 0, clustersLeft: 0 }, fits: true, says: "nothing is left" },
}

for (const [name, { given, fits, says }] of Object.entries(cases))
  test(name, () => {
    const found = forecast({ ...calm, ...given })
    expect(found.fits).toBe(fits)
    expect(found.message).toContain(says)
  })

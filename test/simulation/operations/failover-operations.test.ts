import { expect, test } from "vitest"
import { failoverViolationsOf } from "../invariants/failover.ts"
import { playSeeds } from "../runs.ts"
import { wrongsOf } from "./failover-oracle.ts"
import { play } from "./failover-play.ts"
import { failoverSeeds } from "./seeds.ts"

/** Plays one seed, and says everything that was wrong with it. */
async function wrongsOfSeed(seed: number): Promise<{ wrongs: string[]; told: string[] }> {
  const { world, told, ...rest } = await play(seed)
  return { wrongs: [...wrongsOf({ run: world.record, ...rest }), ...failoverViolationsOf(world.record)], told }
}

playSeeds("random operations on AlternateImageSources", { short: 40, share: 0.2 }, wrongsOfSeed)

for (const [seed, lesson] of Object.entries(failoverSeeds))
  test(`seed ${seed}: ${lesson}`, async () => expect((await wrongsOfSeed(Number(seed))).wrongs).toEqual([]))

import { expect, test } from "vitest"
import { violationsOf } from "../invariants/invariants.ts"
import { playSeeds } from "../runs.ts"
import { serviceImageSeeds } from "./seeds.ts"
import { wrongsOf } from "./serviceimage-oracle.ts"
import { play } from "./serviceimage-play.ts"

/** Plays one seed, and says everything that was wrong with it. */
async function wrongsOfSeed(seed: number): Promise<{ wrongs: string[]; told: string[] }> {
  const { world, told, ...rest } = await play(seed)
  return { wrongs: [...wrongsOf({ run: world.record, ...rest }), ...violationsOf(world.record)], told }
}

playSeeds("random operations on ServiceImages", { short: 160, share: 0.8 }, wrongsOfSeed)

for (const [seed, lesson] of Object.entries(serviceImageSeeds))
  test(`seed ${seed}: ${lesson}`, async () => expect((await wrongsOfSeed(Number(seed))).wrongs).toEqual([]))

import { seededRandom } from "./random.ts"

/** All chance of one run, from one seed. */
export type Chance = {
  /** A whole number below `end`. */
  below(end: number): number
  /** True so often. */
  often(share: number): boolean
  pick<T>(list: readonly T[]): T
  /** Each of them, or not. */
  some<T>(list: readonly T[], share?: number): T[]
}

export function chanceOf(seed: number): Chance {
  const random = seededRandom(seed)
  const below = (end: number) => Math.floor(random.next() * end)
  const often = (share: number) => random.next() < share
  return {
    below,
    often,
    pick: list => list[below(list.length)]!,
    some: (list, share = 0.5) => list.filter(() => often(share)),
  }
}

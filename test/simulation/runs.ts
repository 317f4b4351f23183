import { expect, test } from "vitest"
import { unjudgedRuns, wasJudged } from "#test/support/record.ts"

/** What was wrong with one seed, and everything that was done in it. */
type Judged = { wrongs: readonly string[]; told: readonly string[] }

type Amount = {
  /** How many seeds in the short form. */
  short: number
  /** In the long form, the part of AIM_RUNS. */
  share?: number
}

/** This many seeds form one test: progress is visible, and no test takes long. */
const atOnce = 10
const failuresMost = 3

/**
 * Plays seeds from 1 on; AIM_SEED plays that one alone and prints its operations, be it right or wrong, or goes on with
 * a range such as 2401-16000. Whatever play throws is wrong with the seed too. Prints the seeds that fail, and stops
 * after a few.
 */
export function playSeeds(title: string, { short, share = 1 }: Amount, play: (seed: number) => Promise<Judged>): void {
  const { AIM_RUNS, AIM_SEED } = process.env
  const many = AIM_RUNS === undefined ? short : Math.ceil(Number(AIM_RUNS) * share)
  const [begin = 1, end = begin] = AIM_SEED === undefined ? [1, many] : AIM_SEED.split("-").map(Number)
  const isAlone = AIM_SEED !== undefined && begin === end
  let failed = 0
  for (let first = begin; first <= end; first += atOnce) {
    const last = Math.min(first + atOnce - 1, end)
    test(`${title}, seeds ${first} to ${last}`, async () => {
      const failures: string[] = []
      for (let seed = first; seed <= last && failed < failuresMost; seed++) {
        const { wrongs, told } = await play(seed).catch((error: Error) => ({ wrongs: [error.message], told: [] }))
        // Each was judged already, and thousands of them must not be kept.
        for (const run of unjudgedRuns()) wasJudged(run)
        if (wrongs.length > 0) failed++
        if (wrongs.length > 0 || isAlone)
          failures.push(`seed ${seed}: ${[...wrongs.slice(0, 5), ...told].join("\n  ")}`)
      }
      expect(failures.join("\n\n")).toBe("")
    })
  }
}

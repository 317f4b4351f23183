import { describe, expect, test } from "vitest"
import { addSample, leftWords, outlook, rateWords, type Sample } from "./rate.ts"

const second = 1000
const minute = 60 * second

/** Seconds and counts, as the watch showed them. */
const series = (...points: [seconds: number, done: number][]) =>
  points.reduce<Sample[]>((samples, [at, done]) => addSample(samples, { at: at * second, done }), [])

describe("rate and estimate", () => {
  const cases: Record<string, { seen: [number, number][]; now: number; left: number; want: object }> = {
    "nothing seen, nothing known": { seen: [], now: 60, left: 5, want: {} },
    "one look is no rate": { seen: [[0, 3]], now: 60, left: 5, want: {} },
    "two looks within seconds are a guess": {
      seen: [
        [0, 3],
        [5, 9],
      ],
      now: 5,
      left: 5,
      want: {},
    },
    "ten a minute, forty to go": {
      seen: [
        [0, 0],
        [30, 5],
        [60, 10],
      ],
      now: 60,
      left: 40,
      want: { perMinute: 10, msLeft: 4 * minute },
    },
    "it counts from what was there at the first look, not from nothing": {
      seen: [
        [0, 500],
        [60, 510],
      ],
      now: 60,
      left: 10,
      want: { perMinute: 10, msLeft: minute },
    },
    "silence since the last change makes it slower": {
      seen: [
        [0, 0],
        [60, 10],
      ],
      now: 120,
      left: 5,
      want: { perMinute: 5, msLeft: minute },
    },
    "three minutes of silence, and nothing is known": {
      seen: [
        [0, 0],
        [60, 10],
      ],
      now: 241,
      left: 5,
      want: {},
    },
    "only the last three minutes count": {
      seen: [
        [0, 0],
        [60, 600],
        [300, 606],
      ],
      now: 300,
      left: 4,
      want: { perMinute: 2, msLeft: 2 * minute },
    },
    "nothing left, no estimate": {
      seen: [
        [0, 0],
        [60, 10],
      ],
      now: 60,
      left: 0,
      want: { perMinute: 10 },
    },
    "a count that falls begins anew": {
      seen: [
        [0, 100],
        [60, 200],
        [70, 0],
        [130, 6],
      ],
      now: 130,
      left: 6,
      want: { perMinute: 6, msLeft: minute },
    },
  }
  for (const [name, { seen, now, left, want }] of Object.entries(cases))
    test(name, () => expect(outlook(series(...seen), { left, now: now * second })).toEqual(want))

  test("however long one watches, the samples stay few", () => {
    const points = Array.from({ length: 5000 }, (_, i): [number, number] => [i, i])
    expect(series(...points).length).toBeLessThan(200)
  })
})

describe("in words", () => {
  for (const [perMinute, words] of [
    [123.4, "123 a minute"],
    [9.6, "10 a minute"],
    [4.52, "4.5 a minute"],
    [2, "2 a minute"],
    [0.5, "30 an hour"],
    [0.001, "1 an hour"],
  ] as const)
    test(words, () => expect(rateWords(perMinute)).toBe(words))
  for (const [minutes, words] of [
    [0.4, "less than a minute left"],
    [3.6, "about 4 min left"],
    [89, "about 89 min left"],
    [130, "about 2 h left"],
    [60 * 50, "about 2 days left"],
  ] as const)
    test(words, () => expect(leftWords(minutes * minute)).toBe(words))
})

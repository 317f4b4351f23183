import { beforeAll, expect, test } from "vitest"
import { createMeasuring } from "#controllers/measure.ts"
import { canaryWith, judgingWorld, roundOf, untilThere } from "#controllers/test-judging.ts"
import { prepareGraphite, startGraphite } from "../support/graphite.ts"

const seconds = 1000

// Its packages are many, and other files may be installing theirs.
beforeAll(prepareGraphite, 1_800_000)

test("metrics of a real Graphite are judged as those of a Prometheus are", async () => {
  const graphite = await startGraphite()
  const provider = { type: "graphite", address: graphite.url }
  const templates = Object.fromEntries(
    Object.entries({
      mean: "target=shop.{{ service }}-canary.errors",
      most: "target=consolidateBy(shop.{{ service }}-canary.errors, 'max')",
      sum: 'target=summarize(\n  sumSeries(shop.{{ service }}-*.errors),\n  "{{ interval }}", "sum", true\n)',
      several: "target=shop.{{ service }}-*.errors",
      gone: "target=shop.{{ service }}-{canary,before}.errors",
      longer: "target=shop.{{ service }}-canary.errors&from=-15min",
      none: "target=shop.other.errors",
      unquoted: "target=summarize(shop.{{ service }}-canary.errors, {{ interval }}, 'sum')",
    }).map(([name, query]) => [`shop/${name}`, { provider, query }]),
  )
  const { wiring, deps } = judgingWorld({ templates, allow: [`shop=127.0.0.1:${graphite.port}`] })
  const measuring = createMeasuring(wiring, deps)
  const metrics = Object.keys(templates).map(key => ({
    name: key.slice("shop/".length),
    templateRef: { name: key.slice("shop/".length) },
    interval: "2m",
    thresholdRange: { max: 10 },
  }))
  const judged = async (number: number, atThisWeightMs: number) => {
    const checks = await untilThere(() =>
      measuring.checksOf(roundOf(canaryWith({ metrics }), { number, atThisWeightMs })),
    )
    return Object.fromEntries(checks.map(({ name, ...verdict }) => [name, verdict]))
  }
  const now = Date.now()
  const points = (service: string, values: readonly number[], ago: number) =>
    values.map((value, index) => ({ name: `shop.${service}.errors`, value, at: now - (ago - index) * seconds }))
  await graphite.write([
    ...points("web-canary", [900, 900], 600),
    ...points("web-before", [5], 600),
    ...points("web-canary", [2, 4, 12], 8),
    ...points("web-primary", [1, 1, 1], 8),
  ])
  const first = await judged(1, 3600 * seconds)
  expect(first).toEqual({
    mean: { verdict: "Good", value: 6 },
    most: { verdict: "Bad", value: 12, why: "12 is above 10" },
    sum: { verdict: "Bad", value: 21, why: "21 is above 10" },
    several: {
      verdict: "Error",
      why: "the query found 2 series, which differ in name: it must give one, as with sum()",
    },
    gone: { verdict: "Good", value: 6 },
    longer: { verdict: "Bad", value: expect.closeTo(363.6, 5), why: "363.6 is above 10" },
    none: { verdict: "NoData", why: "the query found no series" },
    unquoted: { verdict: "Error", why: expect.stringContaining("a duration stands within quotes") },
  })

  // The same questions again: this Graphite keeps answers for a minute, which would be about what was before.
  await graphite.write(points("web-canary", [26], 5))
  expect(await judged(2, 3600 * seconds)).toMatchObject({ mean: { verdict: "Bad", value: 11 }, most: { value: 26 } })

  // A weight that began a second ago has seen none of these points.
  expect(await judged(3, seconds)).toMatchObject({ mean: { verdict: "NoData" }, most: { verdict: "NoData" } })
})

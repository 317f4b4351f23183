import { describe, expect, test } from "vitest"
import { KubeError } from "#runtime/client/errors.ts"
import { complete, operation, serviceImage, testCluster, testWorld, tierStatus } from "../test-world.ts"
import { run as status } from "./status.ts"

const view = { isTerminal: true, columns: 80, rows: 24, colours: false }

/** A watch on a terminal: `frame` is what is on it. */
async function watching(live: ReturnType<typeof testCluster>, over: object = {}) {
  const { world, drawn, said, clock, interrupt } = testWorld(live, { view: { ...view, ...over } })
  const done = status({ arguments: [], options: { watch: true } }, world)
  await clock.advance(0)
  const end = async () => {
    interrupt()
    await done
  }
  return { clock, said, frame: () => drawn.at(-1)!, end }
}

describe("a lost connection", () => {
  const unreachable = new KubeError("Unreachable", "connection refused")

  test("is in the picture, which then stands still, until there is one again", async () => {
    const live = testCluster(serviceImage("web"))
    const { clock, frame, end, said } = await watching(live)
    await clock.advance(30_000)
    live.put(serviceImage("web"))
    await clock.advance(100)
    const before = frame()
    expect(before).toContain("for 4m42s")

    live.fail("list", unreachable)
    live.fail("watch", unreachable)
    live.tell("cut")
    await clock.advance(12_100)
    const [banner, ...picture] = frame().split("\n")
    expect(banner).toBe("not connected for 12s; this is as of 00:10:30 UTC")
    expect(picture.join("\n")).toBe(before)
    await clock.advance(60_000)
    expect(frame()).toMatch(/^not connected for 1m12s; this is as of 00:10:30 UTC\nweb {2}● InProgress/)

    live.heal()
    await clock.advance(35_000)
    expect(frame()).toMatch(/^web {2}● InProgress 3\/12 {2}Dicom {2}for 6m/)
    live.put(serviceImage("web", complete()))
    await clock.advance(100)
    expect(frame()).toMatch(/^web {2}✓ Complete/)
    expect(said).toEqual([])
    await end()
  })

  test("is reported in a log, and so is its return", async () => {
    const live = testCluster(serviceImage("web"))
    const { said, clock, end } = await watching(live, { isTerminal: false })
    live.tell("cut")
    await clock.advance(5000)
    expect(said).toEqual(["lost the connection to the cluster, reconnecting", "connected again"])
    await end()
  })
})

describe("what does not fit", () => {
  const tiers = Array.from({ length: 40 }, (_, index) => `tier-${index + 1}`)
  const fleet = (name: string) =>
    serviceImage(name, {
      spec: { tiers: tiers.map((upgradeTier, index) => ({ upgradeTier, priority: 40 - index })) },
      status: {
        currentPriority: 20,
        tierStatus: tiers.map((upgradeTier, index) =>
          tierStatus({
            upgradeTier,
            total: 3,
            upToDate: index < 20 ? 3 : 1,
            is: index < 20 ? "Complete" : index === 20 ? "InProgress" : "Waiting",
          }),
        ),
      },
    })

  test("of 40 tiers at 24 lines, the one that is worked is there and the others are counted", async () => {
    const { frame, end } = await watching(testCluster(fleet("web")))
    const lines = frame().trimEnd().split("\n")
    expect(lines.length).toBeLessThan(24)
    expect(lines[0]).toMatch(/^web {2}● InProgress 80\/120/)
    expect(frame()).toContain("  tier-21  ")
    expect(lines.at(-1)).toMatch(/^ {2}… \d+ more tiers: \d+ complete, 20 waiting$/)
    const shown = lines.filter(line => line.includes("  tier-")).length
    expect(lines.at(-1)).toContain(`… ${41 - shown} more tiers`)
    await end()
  })

  test("of many rollouts, those that fit and how many more", async () => {
    const { frame, end } = await watching(testCluster(...Array.from({ length: 30 }, (_, i) => fleet(`web-${i + 10}`))))
    const lines = frame().trimEnd().split("\n")
    expect(lines).toHaveLength(23)
    expect(lines.at(-1)).toBe("… and 8 more rollouts")
    await end()
  })

  test("a long tier name and a digest stay in the window", async () => {
    const name = "a".repeat(63)
    const image = `registry.example.com/team/dicom:v3@sha256:${"0123456789abcdef".repeat(4)}`
    const object = serviceImage("web", {
      spec: { tiers: [{ upgradeTier: name, priority: 1, image }] },
      status: { tierStatus: [tierStatus({ upgradeTier: name, total: 5, upToDate: 2, is: "InProgress" })] },
    })
    const { frame, end } = await watching(testCluster(object))
    for (const line of frame().split("\n")) expect(line.length).toBeLessThanOrEqual(80)
    expect(frame()).toMatch(/a{23}….*2\/5 {2}….*@sha256:01234567$/m)
    await end()
  })

  test("what an analysis found stands beside its tier", async () => {
    const analysis = { verdict: "BadMetric", message: "errors: 9 is above 5", failedChecks: 1, percent: 100 }
    const tier = { ...tierStatus({ upgradeTier: "early", total: 5, upToDate: 5, is: "InProgress" }), analysis }
    const { frame, end } = await watching(testCluster(serviceImage("web", { status: { tierStatus: [tier] } })))
    expect(frame().replaceAll(/\s+/g, " ")).toContain("BadMetric errors: 9 is above 5 (1 failed check)")
    await end()
  })

  test("the reason is broken between words, and not cut", async () => {
    const message =
      "tier early: 1 of 4 up to date at step 25%; soaking until 2026-11-15T12:00:00Z and then a few more words follow"
    const { frame, end } = await watching(
      testCluster(
        serviceImage("web", {
          conditions: { Complete: ["False", "Soaking", message], InProgress: ["True", "Soaking"] },
        }),
      ),
    )
    expect(frame().replaceAll(/\n\s+/g, " ")).toContain(`Soaking: ${message} 1`)
    for (const line of frame().split("\n")) expect(line.length).toBeLessThanOrEqual(80)
    await end()
  })
})

test("what was rolled back shows what runs, where that is known", async () => {
  const back = (newDeploymentImage: string) =>
    serviceImage("web", {
      conditions: { Complete: ["False", "RolledBack", "all are back"] },
      spec: { tiers: [] },
      status: {
        operation: operation("g2", "RolledBack"),
        tierStatus: [tierStatus({ upgradeTier: "", total: 5, upToDate: 5, is: "Waiting", newDeploymentImage })],
      },
    })
  const shown = async (image: string, terminal: boolean) =>
    (
      await status(
        { arguments: [], options: {} },
        testWorld(testCluster(back(image)), { view: { ...view, isTerminal: terminal } }).world,
      )
    ).text
  expect(await shown("registry.example.com/dicom:v1", true)).toMatch(/5\/5 {2}back to ….*dicom:v1$/m)
  expect(await shown("registry.example.com/dicom:v1", false)).toContain(
    "as before, back to registry.example.com/dicom:v1\n",
  )
  expect(await shown("registry.example.com/dicom:v2", false)).toContain(
    "as before, not registry.example.com/dicom:v2\n",
  )
})

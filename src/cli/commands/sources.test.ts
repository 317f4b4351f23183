import { describe, expect, test } from "vitest"
import type { KubeObject } from "#runtime/resource.ts"
import { testCluster, testWorld } from "../test-world.ts"
import { run as history } from "./history.ts"
import { run as status } from "./status.ts"
import { run as wait } from "./wait.ts"

// What status, wait and history say of AlternateImageSources.

const [here, mirror] = ["quay.io/team/app", "docker.io/team/app"]
const condition = (type: string, is: string, reason: string, message = "") => ({
  type,
  status: is,
  reason,
  message,
  observedGeneration: 1,
})
const source = (conditions: object[], over: object = {}, generation = 1) =>
  ({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "AlternateImageSource",
    metadata: { name: "demo", namespace: "shop", generation },
    spec: { imageSourceReplacements: [] },
    ...(conditions.length > 0 && {
      status: { conditions, targets: 0, switched: 0, incidents: 0, targetsAvailable: [], ...over },
    }),
  }) as unknown as KubeObject

const target = (name: string, over: object = {}) => ({
  name,
  container: "app",
  type: { group: "apps", kind: "deployment" },
  uid: "1",
  currentRepository: here,
  ...over,
})
const switches = [
  { oldImage: `${here}:1`, newImage: `${mirror}:1`, time: "2026-01-01T00:00:00Z", reason: "Unreachable", pods: 3 },
]
const switched = source([condition("Ready", "True", "Switched", "1 of 3 containers runs from elsewhere")], {
  targets: 3,
  switched: 1,
  targetsAvailable: [
    target("web", {
      currentRepository: mirror,
      switches,
      incident: { since: "2026-01-01T00:00:00Z", reason: "Unreachable", image: `${here}:1`, failing: here },
    }),
    target("api"),
    target("old"),
  ],
})

const ask = async (
  run: typeof status,
  object: KubeObject,
  words = ["ais/demo"],
  options: Record<string, unknown> = {},
  over = {},
) => {
  const { world, said } = testWorld(testCluster(object), over)
  return {
    ...(await run({ arguments: words, options: { namespace: "shop", timeout: "10m", ...options } }, world)),
    said,
  }
}

describe("status", () => {
  test("names what does not go as its workload says", async () => {
    expect((await ask(status, switched)).text).toBe(
      `ais/demo -n shop Ready (Switched: 1 of 3 containers runs from elsewhere)
  deployment/web app is pulled from docker.io/team/app (Unreachable since 2026-01-01T00:00:00Z: quay.io/team/app:1)
  2 other containers as the workload says
`,
    )
    expect((await ask(status, source([]), ["ais"])).text).toBe(
      "ais/demo -n shop NotSeenYet (no controller has observed it yet)\n",
    )
  })
  test("-w keeps it up to date, and knows a lost connection", async () => {
    const live = testCluster(switched)
    const view = { isTerminal: true, columns: 80, colours: false }
    const { world, drawn, clock, interrupt } = testWorld(live, { view })
    const done = status({ arguments: ["ais/demo"], options: { watch: true, namespace: "shop" } }, world)
    await clock.advance(0)
    expect(drawn.at(-1)).toMatch(/^demo {2}✓ Ready {2}shop\n {2}Switched: 1 of 3/)
    for (const line of drawn.at(-1)!.split("\n")) expect(line.length).toBeLessThanOrEqual(80)
    live.put(source([condition("Ready", "True", "Watching")]))
    await clock.advance(100)
    expect(drawn.at(-1)).toContain("Watching")
    live.tell("cut")
    await clock.advance(100)
    expect(drawn.at(-1)).toMatch(/^not connected for /)
    interrupt()
    await done
  })
})

describe("wait", () => {
  test("is over when it is ready for the generation that was last written", async () => {
    expect(await ask(wait, switched)).toMatchObject({
      exitCode: 0,
      text: expect.stringMatching(/^ais\/demo -n shop Ready/),
    })
    const old = source([condition("Ready", "True", "Watching")], {}, 2)
    await expect(ask(wait, old, ["ais/demo"], { timeout: "0" })).rejects.toThrow(
      "not ready now: ais/demo -n shop NotSeenYet",
    )
  })
  test("fails when it is stalled, or is not there", async () => {
    const stalled = [
      condition("Ready", "False", "DiskFull"),
      condition("Stalled", "True", "DiskFull", "node-1 has no space left"),
    ]
    await expect(ask(wait, source(stalled))).rejects.toThrow(
      "ais/demo -n shop Stalled (DiskFull: node-1 has no space left)",
    )
    await expect(ask(wait, switched, ["ais/demoo"])).rejects.toThrow(
      "there is no AlternateImageSource demoo in namespace shop; did you mean ais/demo?",
    )
  })
})

test("history is what was switched", async () => {
  expect((await ask(history, switched)).text).toBe(
    `WHEN      WORKLOAD         CONTAINER   FROM                 TO                     REASON        PODS
10m ago   deployment/web   app         quay.io/team/app:1   docker.io/team/app:1   Unreachable   3
`,
  )
  expect(await ask(history, source([]))).toMatchObject({ text: "", said: ["ais/demo has switched nothing yet."] })
})

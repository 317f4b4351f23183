import { describe, expect, test } from "vitest"
import { parse as parseYaml } from "yaml"
import { complete, halted, operation, serviceImage, testCluster, testWorld, tierStatus } from "../test-world.ts"
import { run as get } from "./get.ts"
import { run as status } from "./status.ts"

const cluster = () =>
  testCluster(serviceImage("api", complete()), serviceImage("shop", halted), serviceImage("web"), {
    ...serviceImage("young"),
    status: undefined,
  } as never)
const ask = async (run: typeof get, words: string[], options: Record<string, unknown> = {}, over = {}) => {
  const { world, said } = testWorld(cluster(), over)
  return { ...(await run({ arguments: words, options }, world)), said }
}

describe("get", () => {
  test("is a table", async () => {
    expect(
      (await ask(get, [])).text,
    ).toBe(`NAME    STATE        PROGRESS   PRIORITY   IMAGE                              AGE
api     Complete     12/12      1          registry.example.com/dicom:v3 +1   10m
shop    Halted       0/5        1          registry.example.com/dicom:v3 +1   10m
web     InProgress   3/12       1          registry.example.com/dicom:v3 +1   10m
young   NotSeenYet   -          0          registry.example.com/dicom:v2 +1   10m
`)
  })
  test("ages are counted by the cluster's own clock, which may run faster than time", async () => {
    const { world, clock } = testWorld(cluster())
    const connect: typeof world.connect = async options => {
      const client = await world.connect(options)
      return { ...client, serverTime: () => clock.now() + 5 * 3_600_000 }
    }
    for (const [run, options] of [
      [get, {}],
      [status, { output: "wide" }],
    ] as const) {
      // biome-ignore format: two rows
      const { text } = await run({ arguments: ["si/web"], options }, { ...world, connect })
      expect(text).toContain("5h")
    }
  })
  test("-o wide says why", async () => {
    const { text } = await ask(get, ["si/shop"], { output: "wide" })
    expect(text).toMatch(
      /TARGET\s+REASON\s+MESSAGE\n.* Dicom {4}AllFailed {3}no object of earlyAccess can pull the image\n$/,
    )
  })
  test("-o name, json and yaml are for programs", async () => {
    expect((await ask(get, ["si", "api", "web"], { output: "name" })).text).toBe(
      "serviceimage.autoimagemanager.io/api\nserviceimage.autoimagemanager.io/web\n",
    )
    expect(JSON.parse((await ask(get, [], { output: "json" })).text)).toMatchObject({
      kind: "List",
      items: { length: 4 },
    })
    expect(parseYaml((await ask(get, ["si/web"], { output: "yaml" })).text)).toMatchObject({
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "ServiceImage",
      metadata: { name: "web" },
    })
  })
  test("-o yaml begins as people write it", async () => {
    const { text } = await ask(get, ["si/web"], { output: "yaml" })
    expect(text.match(/^\w+/gm)).toEqual(["apiVersion", "kind", "metadata", "spec", "status"])
  })
  test("-l chooses by labels", async () => {
    const labelled = serviceImage("web")
    const one = { ...labelled, metadata: { ...labelled.metadata, labels: { service: "dicom" } } }
    const { world } = testWorld(testCluster(one, serviceImage("shop")))
    const options = { selector: "service=dicom", output: "name" }
    expect((await get({ arguments: [], options }, world)).text).toBe("serviceimage.autoimagemanager.io/web\n")
    await expect(ask(get, ["si/web"], { selector: "a=b" })).rejects.toThrow("cannot be combined")
  })
  test("-w is the table, then a line for each object that reads differently", async () => {
    const live = testCluster(serviceImage("shop"), serviceImage("web"))
    const { world, written, clock, interrupt } = testWorld(live)
    const done = get({ arguments: [], options: { watch: true } }, world)
    await clock.advance(0)
    expect(written.join("")).toMatch(/^NAME +STATE .*\nshop +InProgress .*\nweb +InProgress .*\n$/)
    live.put(serviceImage("web"))
    await clock.advance(60_000)
    expect(written).toHaveLength(1)
    live.put(serviceImage("web", complete()))
    await clock.advance(0)
    live.remove({ name: "shop" })
    await clock.advance(0)
    interrupt()
    expect(await done).toEqual({ text: "", exitCode: 0 })
    const [table, line, gone] = written as [string, string, string]
    expect(line).toMatch(/^web +Complete +12\/12 .* 11m\n$/)
    expect(line.indexOf("Complete")).toBe(table.indexOf("STATE"))
    expect(gone).toBe("si/shop deleted\n")
    await expect(ask(get, [], { watch: true, output: "json" })).rejects.toThrow("leave one of them out")
  })
  test("names what was meant", async () => {
    await expect(ask(get, ["si/wev"])).rejects.toThrow("there is no ServiceImage wev; did you mean si/web?")
  })
})

describe("get ais", () => {
  const source = (name: string, namespace: string, status?: object) =>
    ({
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "AlternateImageSource",
      metadata: { name, namespace, creationTimestamp: "2026-01-01T00:00:00Z" },
      spec: { imageSourceReplacements: [] },
      ...(status && { status }),
    }) as never
  const ready = { type: "Ready", status: "True", reason: "Switched", message: "1 of 3 containers run from elsewhere" }
  const sources = () =>
    testCluster(
      source("demo", "shop", { conditions: [ready], targets: 3, switched: 1, incidents: 0 }),
      source("young", "lab"),
    )
  const askFor = async (words: string[], options: Record<string, unknown>) => {
    const { world, said } = testWorld(sources())
    return { ...(await get({ arguments: words, options }, world)), said }
  }

  test("is a table", async () => {
    expect(
      (await askFor(["ais"], { allNamespaces: true })).text,
    ).toBe(`NAMESPACE   NAME    READY   REASON       TARGETS   SWITCHED   INCIDENTS   AGE
shop        demo    True    Switched     3         1          0           10m
lab         young   -       NotSeenYet   -         -          -           10m
`)
  })
  test("one, in its namespace", async () => {
    expect((await askFor(["ais/demo"], { namespace: "shop", output: "wide" })).text).toBe(
      "NAME   READY   REASON     TARGETS   SWITCHED   INCIDENTS   AGE   MESSAGE\n" +
        "demo   True    Switched   3         1          0           10m   1 of 3 containers run from elsewhere\n",
    )
    expect((await askFor(["ais/demo"], { namespace: "shop", output: "name" })).text).toBe(
      "alternateimagesource.autoimagemanager.io/demo\n",
    )
    expect(parseYaml((await askFor(["ais/demo"], { namespace: "shop", output: "yaml" })).text)).toMatchObject({
      kind: "AlternateImageSource",
      metadata: { name: "demo", namespace: "shop" },
    })
  })
  test("names what was meant, and where it was sought", async () => {
    await expect(askFor(["ais/dem"], { namespace: "shop" })).rejects.toThrow(
      "there is no AlternateImageSource dem in namespace shop; did you mean ais/demo?",
    )
    await expect(askFor(["ais/demo"], { allNamespaces: true })).rejects.toThrow("write -n NAMESPACE")
    await expect(askFor(["ais"], { namespace: "../x" })).rejects.toThrow("is not a namespace")
  })
})

describe("status", () => {
  test("is lines where it is read by no one", async () => {
    expect(
      (await ask(status, [])).text,
    ).toBe(`si/api Complete 12/12 up to date (AllUpToDate: 12 objects run their image)
  tier earlyAccess priority 1 Complete 5/5 up to date registry.example.com/dicom:v3
  default tier priority 0 Complete 7/7 up to date, 1 unmanaged registry.example.com/dicom:v2
si/shop Halted 0/5 up to date (AllFailed: no object of earlyAccess can pull the image)
  tier earlyAccess priority 1 InProgress 0/5 up to date, 5 under way registry.example.com/dicom:v3
    all failing: ImagePullFailed (shop/a, shop/b, …)
  default tier priority 0 Halted 0/0 up to date registry.example.com/dicom:v2
si/web InProgress 3/12 up to date, priority 1 (WaitingForHealth: 2 objects are on their way)
  tier earlyAccess priority 1 InProgress 3/5 up to date, 2 under way registry.example.com/dicom:v3
  default tier priority 0 Waiting 0/7 up to date registry.example.com/dicom:v2
si/young NotSeenYet (no controller has observed it yet)
  tier earlyAccess priority 1 Waiting 0/0 up to date registry.example.com/dicom:v3
  default tier priority 0 Waiting 0/0 up to date registry.example.com/dicom:v2
`)
  })
  test("is a picture on a terminal", async () => {
    const view = { isTerminal: true, columns: 80, colours: false }
    expect(
      (await ask(status, ["si/web", "si/shop", "si/api"], {}, { view })).text,
    ).toBe(`api  ✓ Complete 12/12  Dicom  done 10s ago, took 4m2s
  AllUpToDate: 12 objects run their image
  1  earlyAccess   ████████████████████████  5/5  registry.example.com/dicom:v3
  0  default tier  ████████████████████████  7/7  registry.example.com/dicom:v2
                   1 unmanaged

shop  ✗ Halted 0/5  Dicom  for 4m12s
  AllFailed: no object of earlyAccess can pull the image
  1  earlyAccess   ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  0/5  registry.example.com/dicom:v3
                   all failing: ImagePullFailed (shop/a, shop/b, …)
  0  default tier  ░░░░░░░░░░░░░░░░░░░░░░░░  0/0  registry.example.com/dicom:v2

web  ● InProgress 3/12  Dicom  for 4m12s
  WaitingForHealth: 2 objects are on their way
  1  earlyAccess   ██████████████▒▒▒▒▒▒▒▒▒▒  3/5  registry.example.com/dicom:v3
  0  default tier  ░░░░░░░░░░░░░░░░░░░░░░░░  0/7  registry.example.com/dicom:v2
`)
  })
  test("-w adds lines when they read differently, and ends well when interrupted", async () => {
    const live = testCluster(serviceImage("web"))
    const { world, drawn, clock, interrupt } = testWorld(live)
    const done = status({ arguments: ["si/web"], options: { watch: true } }, world)
    await clock.advance(0)
    live.put(serviceImage("web"))
    await clock.advance(0)
    live.put(serviceImage("web", complete()))
    await clock.advance(0)
    live.remove({ name: "web" })
    await clock.advance(0)
    interrupt()
    expect(await done).toEqual({ text: "", exitCode: 0 })
    expect(drawn.map(frame => frame.split("\n")[0]!.slice(0, 20))).toEqual([
      "si/web InProgress 3/",
      "si/web Complete 12/1",
      "si/web deleted",
    ])
  })
  test("-w draws a terminal at most ten times a second, and once a second when nothing happens", async () => {
    const live = testCluster(serviceImage("web"))
    const view = { isTerminal: true, columns: 80, colours: false }
    const { world, drawn, clock, interrupt } = testWorld(live, { view })
    const done = status({ arguments: [], options: { watch: true } }, world)
    await clock.advance(0)
    for (let i = 0; i < 200; i++) {
      live.put(serviceImage("web"))
      await clock.advance(5)
    }
    expect(drawn.length).toBeGreaterThan(5)
    expect(drawn.length).toBeLessThan(15)
    const before = drawn.length
    await clock.advance(5000)
    expect(drawn.length - before).toBeGreaterThanOrEqual(4)
    interrupt()
    await done
  })
  describe("of a rollout with steps and approvals", () => {
    const steps = [{ percent: 25, soakSeconds: 1500 }, { percent: 100 }]
    const spec = { tiers: [{ upgradeTier: "early", priority: 1, steps }, { upgradeTier: "" }] }
    const stepped = (upToDate: number, over: object = {}) =>
      serviceImage("web", {
        spec,
        status: {
          operation: operation("g4", "InProgress"),
          tierStatus: [
            tierStatus({
              upgradeTier: "early",
              total: 400,
              updated: 100,
              upToDate,
              is: "InProgress",
              step: { percent: 25 },
              ...over,
            }),
            tierStatus({ upgradeTier: "", total: 7, is: "Waiting", reason: "AwaitingApproval" }),
          ],
        },
      })
    const shown = async (object: ReturnType<typeof stepped>) =>
      (await status({ arguments: [], options: {} }, testWorld(testCluster(object)).world)).text
    test("the step, its soak and what waits for approval are named", async () => {
      expect(await shown(stepped(60))).toContain("60/400 up to date, 40 under way, step 25% ")
      const soaking = await shown(stepped(100, { step: { percent: 25, upToDateAt: "2026-01-01T12:05:00Z" } }))
      expect(soaking).toContain("step 25%, soaking until 2026-01-01 12:30:00 UTC ")
      expect(soaking).toContain("default tier priority 0 Waiting 0/7 up to date, waits for approval ")
    })
    test("-w adds the rate of the last minutes, and what is left of the step at that rate", async () => {
      const live = testCluster(stepped(40))
      const view = { isTerminal: true, columns: 80, colours: false }
      const { world, drawn, clock, interrupt } = testWorld(live, { view })
      const done = status({ arguments: [], options: { watch: true } }, world)
      await clock.advance(0)
      expect(drawn.at(-1)).toContain("step 25%\n")
      await clock.advance(30_000)
      live.put(stepped(50))
      await clock.advance(30_000)
      live.put(stepped(60))
      await clock.advance(100)
      expect(drawn.at(-1)).toContain("step 25%, 20 a minute, about 2 min left in this step\n")
      await clock.advance(60_000)
      expect(drawn.at(-1)).toContain("step 25%, 10 a minute, about 4 min left in this step\n")
      live.put(stepped(100, { step: { percent: 25, upToDateAt: "2026-01-01T00:12:00Z" } }))
      await clock.advance(100)
      expect(drawn.at(-1)).toContain("step 25%, soaking for 24m59s more\n")
      interrupt()
      await done
    })
    test("-w does not count the time in which a tier had to wait", async () => {
      const live = testCluster(stepped(0, { is: "Waiting" }))
      const { world, drawn, clock, interrupt } = testWorld(live)
      const done = status({ arguments: [], options: { watch: true } }, world)
      await clock.advance(120_000)
      live.put(stepped(0, { is: "Waiting", updated: 10 }))
      await clock.advance(0)
      live.put(stepped(0))
      await clock.advance(60_000)
      live.put(stepped(20))
      await clock.advance(0)
      expect(drawn.at(-1)).toContain("20 a minute, about 4 min left in this step")
      interrupt()
      await done
    })
    test("-w in a log prints the rate when something changes, and nothing when only time passes", async () => {
      const live = testCluster(stepped(40))
      const { world, drawn, clock, interrupt } = testWorld(live)
      const done = status({ arguments: [], options: { watch: true } }, world)
      await clock.advance(60_000)
      live.put(stepped(60))
      await clock.advance(60_000)
      live.put(stepped(60))
      await clock.advance(0)
      expect(drawn).toHaveLength(2)
      expect(drawn[1]).toContain("step 25%, 20 a minute, about 2 min left in this step registry")
      interrupt()
      await done
    })
  })

  test("a rollback is a state of its own, unless the spec cannot be carried out at all", async () => {
    const taken = (phase: string, conditions: NonNullable<Parameters<typeof serviceImage>[1]>["conditions"]) =>
      serviceImage("web", { conditions: conditions!, status: { operation: operation("g1", phase), lostPods: 2 } })
    const lines = async (object: ReturnType<typeof taken>) =>
      (await status({ arguments: [], options: {} }, testWorld(testCluster(object)).world)).text.split("\n")
    const back = await lines(
      taken("RollingBack", { Complete: ["False", "RollingBack", "2 of 5 are back"], Halted: ["True", "RollingBack"] }),
    )
    expect(back[2]).toMatch(/ 3\/5 as before, 2 under way, not registry.example.com\/dicom:v3$/)
    expect(back.slice(0, 2)).toEqual([
      "si/web RollingBack 3/12 as before (2 of 5 are back)",
      "  2 pods on nodes that no longer answer may still run another image",
    ])
    expect((await lines(taken("RolledBack", { Stalled: ["True", "RolledBack"] })))[0]).toBe(
      "si/web RolledBack 3/12 as before",
    )
    const invalid = { Stalled: ["True", "InvalidImage", "no"], Invalid: ["True", "InvalidImage", "no"] } as const
    expect((await lines(taken("RolledBack", invalid as never)))[0]).toMatch(/^si\/web Stalled/)
    expect((await lines(taken("RollingBack", { Paused: ["True", "Paused"] })))[0]).toMatch(/^si\/web Paused/)
  })
  test("what others wrote cannot move the cursor", async () => {
    const nasty = testCluster(
      serviceImage("web", { conditions: { Paused: ["True", "Paused", "a\u001b[2Jb\u202ec\nd"] } }),
    )
    const { text } = await status({ arguments: [], options: {} }, testWorld(nasty).world)
    expect(text).toContain("a\ufffd[2Jb\ufffdc\ufffdd")
  })
})

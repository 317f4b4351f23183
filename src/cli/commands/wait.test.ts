import { describe, expect, test } from "vitest"
import { KubeError } from "#runtime/client/errors.ts"
import { complete, halted, operation, serviceImage, testCluster, testWorld } from "../test-world.ts"
import { run, sentence, waitFor } from "./wait.ts"

const minute = 60_000

/** Waits in the background; `ending` is what it came to, once time and events have brought it there. */
function waiting(cluster: ReturnType<typeof testCluster>, timeoutMs = 10 * minute) {
  const { world, said, clock, interrupt } = testWorld(cluster)
  const promise = waitFor(["web"], { client: cluster.client, world, timeoutMs }).then(([ending]) => ending!)
  let ending: Awaited<typeof promise> | undefined
  promise.then(
    value => (ending = value),
    () => {},
  )
  return { said, clock, interrupt, promise, settle: () => clock.advance(0), now: () => ending }
}

describe("it is complete", () => {
  test("at once, when it is so already", async () => {
    const cluster = testCluster(serviceImage("web", complete()))
    expect(await waiting(cluster).promise).toMatchObject({ is: "complete" })
    expect(cluster.calls).toEqual(["list serviceimages"])
  })

  test("when the watch reports it, and progress is printed once per change", async () => {
    const cluster = testCluster(serviceImage("web"))
    const wait = waiting(cluster)
    await wait.settle()
    cluster.put(serviceImage("web"))
    await wait.settle()
    expect(wait.now()).toBeUndefined()
    cluster.put(serviceImage("web", complete()))
    await wait.settle()
    expect(wait.now()).toMatchObject({ is: "complete" })
    expect(wait.said).toEqual([
      "si/web InProgress 3/12 up to date, priority 1 (WaitingForHealth: 2 objects are on their way)",
    ])
  })

  test("never for an earlier generation: neither an old status nor an old condition counts", async () => {
    const cluster = testCluster(serviceImage("web", complete(2, 1)))
    const wait = waiting(cluster)
    await wait.settle()
    expect(wait.now()).toBeUndefined()
    const lagging = serviceImage("web", complete(2, 1))
    cluster.put({ ...lagging, status: { ...lagging.status, observedGeneration: 2 } } as typeof lagging)
    await wait.settle()
    expect(wait.now()).toBeUndefined()
    cluster.put(serviceImage("web", complete(2)))
    await wait.settle()
    expect(wait.now()).toMatchObject({ is: "complete" })
  })
})

describe("it is not going to be", () => {
  test("when it is halted, with reason and message", async () => {
    const ending = await waiting(testCluster(serviceImage("web", halted))).promise
    expect(sentence(ending)).toBe(
      "si/web Halted 0/5 up to date (AllFailed: no object of earlyAccess can pull the image)",
    )
  })

  test("when it was complete and its objects have lost their health since", async () => {
    const object = serviceImage("web", complete())
    const lost = { type: "Ready", status: "False", reason: "Degraded", message: "2 of 12 objects lost their health" }
    const conditions = [
      ...(object.status?.conditions ?? []),
      { ...lost, observedGeneration: object.metadata.generation },
    ]
    const degraded = { ...object, status: { ...object.status, conditions } } as typeof object
    const ending = await waiting(testCluster(degraded)).promise
    expect(ending.is).toBe("failed")
    expect(sentence(ending)).toContain("si/web Degraded 12/12 up to date (2 of 12 objects lost their health)")
  })

  test("when it was rolled back, but not before", async () => {
    const phase = (is: string) => serviceImage("web", { status: { operation: operation("g1", is) } })
    const cluster = testCluster(phase("RollingBack"))
    const wait = waiting(cluster)
    await wait.settle()
    expect(wait.now()).toBeUndefined()
    cluster.put(phase("RolledBack"))
    expect(await wait.promise).toMatchObject({ is: "failed", rollout: { state: "RolledBack" } })
  })

  test("but a halt of an earlier generation is no longer true", async () => {
    const wait = waiting(testCluster(serviceImage("web", { ...halted, generation: 2, observed: 1 })))
    await wait.settle()
    expect(wait.now()).toBeUndefined()
    wait.interrupt()
    await expect(wait.promise).rejects.toThrow("interrupted")
  })

  test("when it is deleted, also if another of its name is there at once", async () => {
    const cluster = testCluster(serviceImage("web"))
    const first = waiting(cluster)
    await first.settle()
    cluster.remove({ name: "web" })
    expect(await first.promise).toMatchObject({ is: "deleted" })

    const replaced = testCluster(serviceImage("web"))
    const second = waiting(replaced)
    await second.settle()
    const other = serviceImage("web", complete())
    replaced.put({ ...other, metadata: { ...other.metadata, uid: "another" } })
    expect(await second.promise).toMatchObject({ is: "deleted" })
  })

  test("when there is none, naming the one that was meant", async () => {
    const ending = await waiting(testCluster(serviceImage("webb"))).promise
    expect(sentence(ending)).toBe("there is no ServiceImage web; did you mean si/webb?")
  })

  test("when the time is up, saying what it was waiting for", async () => {
    const wait = waiting(testCluster(serviceImage("web")))
    await wait.clock.advance(10 * minute)
    expect(sentence((await wait.promise)!)).toBe(
      "not complete after 10m: si/web InProgress 3/12 up to date, priority 1 (WaitingForHealth: 2 objects are on their way)",
    )
  })
})

describe("the connection", () => {
  test("is sought again when it breaks, and what happened meanwhile is seen", async () => {
    const cluster = testCluster(serviceImage("web"))
    const wait = waiting(cluster)
    await wait.settle()
    cluster.tell({ type: "ERROR", object: { code: 410 } })
    await wait.settle()
    cluster.tell("cut")
    await wait.settle()
    expect(wait.said.at(-1)).toBe("si/web: lost the connection to the cluster, reconnecting")
    await wait.clock.advance(5000)
    cluster.put(serviceImage("web", complete()))
    expect(await wait.promise).toMatchObject({ is: "complete" })
  })

  test("that never existed is reported at once", async () => {
    const cluster = testCluster()
    cluster.fail("list", new KubeError("Unreachable", "connection refused"))
    await expect(waiting(cluster).promise).rejects.toThrow("connection refused")
  })
})

describe("the command", () => {
  const answer = (words: string[], timeout = "10m") =>
    run(
      { arguments: words, options: { timeout } },
      testWorld(testCluster(serviceImage("web", complete()), serviceImage("shop"))).world,
    )
  test("says what is complete", async () => {
    expect(await answer(["si/web"])).toEqual({
      exitCode: 0,
      text: "si/web Complete 12/12 up to date (AllUpToDate: 12 objects run their image)\n",
    })
  })
  test("looks once with --timeout 0, and fails for the one of several that is not complete", async () => {
    await expect(answer(["si/web", "si/shop"], "0")).rejects.toThrow("not complete now: si/shop InProgress")
  })
  test("wants a duration it understands", async () => {
    await expect(answer(["si/web"], "10")).rejects.toThrow("--timeout: 10 is not a duration: write 90s, 10m or 1h30m")
  })
})

import { describe, expect, test } from "vitest"
import { readPod, withStopped } from "./pod-facts.ts"
import { isLooping, settlesAt } from "./steady.ts"
import { crashOf, diagnose, traceOf } from "./trace.ts"

const second = 1000
const start = Date.parse("2026-01-01T00:00:00Z")
const time = (seconds: number) => new Date(start + seconds * second).toISOString()

type Words = {
  ready?: boolean
  restarts?: number
  waiting?: string
  ended?: object
  before?: object
  startedAt?: number
}

const container = (name: string, words: Words) => ({
  name,
  ready: words.ready ?? false,
  restartCount: words.restarts ?? 0,
  state: {
    ...(words.waiting && { waiting: { reason: words.waiting } }),
    ...(words.ended && { terminated: words.ended }),
    ...(words.startedAt !== undefined && { running: { startedAt: time(words.startedAt) } }),
  },
  ...(words.before && { lastState: { terminated: words.before } }),
})
const exit = (exitCode: number, seconds: number, more: object = {}) => ({
  exitCode,
  finishedAt: time(seconds),
  ...more,
})

const pod = (statuses: object[], readySince?: number) =>
  readPod({
    metadata: {},
    spec: {
      containers: [
        { name: "app", image: "shop/web:2" },
        { name: "proxy", image: "shop/proxy:1" },
      ],
    },
    status: {
      phase: "Running",
      conditions:
        readySince === undefined ? [] : [{ type: "Ready", status: "True", lastTransitionTime: time(readySince) }],
      containerStatuses: statuses,
    },
  } as never)

describe("a crash loop", () => {
  const cases: Record<string, { given: Words; isLoop: boolean | undefined; isOver?: boolean }> = {
    "is none without an exit": { given: { ready: true }, isLoop: undefined },
    "is none after a good exit": { given: { restarts: 3, before: exit(0, 1), ready: true }, isLoop: undefined },
    "is none after one bad exit": {
      given: { restarts: 1, before: exit(1, 1), ready: true },
      isLoop: false,
      isOver: true,
    },
    "is none while it is down for the first time": { given: { ended: exit(1, 1) }, isLoop: false, isOver: false },
    "is one at the second bad exit": { given: { restarts: 1, ended: exit(1, 5) }, isLoop: true, isOver: false },
    "is one when the kubelet says so": {
      given: { restarts: 1, waiting: "CrashLoopBackOff" },
      isLoop: true,
      isOver: false,
    },
    "is one though it runs again": {
      given: { restarts: 2, before: exit(1, 5), ready: true },
      isLoop: true,
      isOver: true,
    },
  }
  for (const [name, { given, isLoop, isOver }] of Object.entries(cases))
    test(name, () => {
      const { crash } = pod([container("app", given)])
      expect(crash && { isLoop: crash.isLoop, isOver: crash.isOver }).toEqual(
        isLoop === undefined ? undefined : { isLoop, isOver },
      )
    })

  test("names the container, its exit code and its last words, bounded and without control characters", () => {
    const words = { reason: "Error", message: `cannot open\u001b[31m ${"x".repeat(500)}` }
    const { crash } = pod([container("app", { restarts: 2, ended: exit(3, 5, words) })])
    expect(crash).toMatchObject({ image: "shop/web:2", message: "container app exited with 3 (Error)" })
    expect(crash!.said).toMatch(/^cannot open \[31m x+…$/)
    expect(crash!.said.length).toBeLessThanOrEqual(128)
  })

  test("of a sidecar is not the image's fault", () => {
    const facts = pod([container("app", {}), container("proxy", { restarts: 5, waiting: "CrashLoopBackOff" })])
    const trace = traceOf([["a/p", facts]], [], () => false)
    expect(crashOf(trace, "shop/web:2")).toBeUndefined()
    expect(diagnose(trace, "shop/web:2")?.reason).toBe("Unhealthy")
    expect(diagnose(trace, "shop/proxy:1")?.reason).toBe("CrashLoop")
  })

  test("is over when the container has run for long enough, not when its back-off was long", () => {
    const { crash } = pod([container("app", { restarts: 4, before: exit(1, 5), ready: true, startedAt: 305 })])
    expect(isLooping(crash!, 10 * second, start + 310 * second)).toBe(true)
    expect(isLooping(crash!, 10 * second, start + 315 * second)).toBe(false)
  })
})

describe("pods are steady", () => {
  const steadyAt = (...pods: ReturnType<typeof pod>[]) => {
    const found = traceOf(
      pods.map((each, index) => [`a/${index}`, each]),
      [],
      () => false,
    ).steadyAt
    return found === 0 ? undefined : (found - start) / second
  }
  test("since the last of them became ready", () => {
    expect(steadyAt(pod([container("app", { ready: true })], 5), pod([container("app", { ready: true })], 9))).toBe(9)
  })
  test("since the last bad exit, also where readiness was never lost", () => {
    expect(steadyAt(pod([container("app", { ready: true, restarts: 1, before: exit(1, 30) })], 5))).toBe(30)
  })
  test("not at all while none is ready", () => {
    expect(steadyAt(pod([container("app", {})]))).toBeUndefined()
  })
})

describe("a container that a request has stopped", () => {
  const stopped = new Map([["containerd://1", "app"]])
  const asked = (seconds: number, code = 137) => exit(code, seconds, { containerID: "containerd://1" })
  const own = (seconds: number, id = 2) => exit(3, seconds, { containerID: `containerd://${id}` })
  const judged = (given: Words, readySince?: number) => withStopped(pod([container("app", given)], readySince), stopped)
  const isReady = (given: Words) => judged({ ...given, ready: true }, 5)

  test("has no bad exit, whatever its code and however long the kubelet waits", () => {
    const cases: Words[] = [
      { ended: asked(9) },
      { ended: asked(9, 143) },
      { restarts: 1, before: asked(9), waiting: "CrashLoopBackOff" },
      { restarts: 1, before: asked(9, 0), waiting: "CrashLoopBackOff" },
    ]
    for (const given of cases) {
      expect(pod([container("app", given)])).toMatchObject({ trouble: { isTentative: false } })
      const { crash, trouble } = judged(given)
      expect({ crash, trouble }).toEqual({ crash: undefined, trouble: expect.objectContaining({ isTentative: true }) })
    }
  })
  test("leaves the pod as steady as it was", () => {
    expect(pod([container("app", { ready: true, restarts: 1, before: asked(30) })], 5).steadySeconds).toBe(
      start / 1000 + 30,
    )
    expect(isReady({ restarts: 1, before: asked(30) }).steadySeconds).toBe(start / 1000 + 5)
  })
  test("does not make a loop of one bad exit that follows", () => {
    expect(judged({ restarts: 1, ended: own(20) }).crash).toMatchObject({ isLoop: false })
    expect(judged({ restarts: 2, waiting: "CrashLoopBackOff", before: own(20) }).crash).toMatchObject({ isLoop: false })
  })
  test("does not hide a loop", () => {
    expect(judged({ restarts: 2, ended: own(20) }).crash).toMatchObject({ isLoop: true })
    expect(judged({ restarts: 3, waiting: "CrashLoopBackOff", before: own(20) }).crash).toMatchObject({ isLoop: true })
  })
  test("excuses no other container", () => {
    const both = pod([
      container("app", { ended: asked(9) }),
      container("proxy", { restarts: 4, waiting: "CrashLoopBackOff", before: own(9) }),
    ])
    expect(withStopped(both, stopped)).toMatchObject({
      crash: { image: "shop/proxy:1", isLoop: true },
      trouble: { message: "CrashLoopBackOff: container proxy exited with 3" },
    })
  })
})

test("minReadySeconds counts towards settling, and never makes it longer", () => {
  const seen = { upToDateAt: 100, podsSteadyAt: 0, settleMs: 10 }
  expect(settlesAt({ ...seen, minReadyMs: 0 })).toBe(110)
  expect(settlesAt({ ...seen, minReadyMs: 4 })).toBe(106)
  expect(settlesAt({ ...seen, minReadyMs: 60 })).toBeLessThan(100)
  expect(settlesAt({ ...seen, minReadyMs: 60, podsSteadyAt: 95 })).toBe(105)
})

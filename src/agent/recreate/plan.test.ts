import { expect, test } from "vitest"
import type { ContainerRecreateRequest, ContainerState } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { formatMicroInstant } from "#lib/instant.ts"
import { virtualClock } from "#runtime/clock.ts"
import { observe } from "./observe.ts"
import { StopPace } from "./pace.ts"
import { type Found, plan, type Snapshot, type StopState } from "./plan.ts"

const now = Date.parse("2026-01-01T00:10:00Z")

const state = (name: string, fields: Partial<ContainerState> = {}): ContainerState => ({
  name,
  phase: "Pending",
  containerID: `containerd://${name}-0`,
  restartCount: 0,
  ...fields,
})
const begun = { phase: "Recreating", stopTime: formatMicroInstant(now - 4000) } as const

const request = (states: ContainerState[], strategy: object = {}, status: object = {}) =>
  ({
    metadata: { name: "restart", namespace: "shop", uid: "u" },
    spec: { podName: "web-0", containers: states.map(({ name }) => ({ name })), strategy: { ...usual, ...strategy } },
    status: { phase: "Recreating", nodeName: "node-a", containerRecreateStates: states, ...status },
  }) as unknown as ContainerRecreateRequest
const usual = { failurePolicy: "Fail", orderedRecreate: false, forceRecreate: false, minStartedSeconds: 0 }

type Given = {
  request: ContainerRecreateRequest
  found?: Record<string, Found["is"]>
  stops?: Record<string, StopState>
  freeAt?: number
}
type Want = { stops: string | undefined; states: string[]; says?: string; lookAgainAt?: number }

const cases: Record<string, { given: Given; want: Want }> = {
  "the first container is stopped, and the others wait": {
    given: { request: request([state("app"), state("sidecar")]) },
    want: { stops: "app-0", states: ["app Recreating", "sidecar Pending"] },
  },
  "nothing is done for another node": {
    given: { request: request([state("app")], {}, { nodeName: "node-b" }) },
    want: { stops: undefined, states: ["app Pending"] },
  },
  "nothing is done before it is handed over, and nothing afterwards": {
    given: { request: request([state("app")], {}, { phase: "Completed" }) },
    want: { stops: undefined, states: ["app Pending"] },
  },
  "while a stop is under way": {
    given: { request: request([state("app", begun), state("sidecar")]), stops: { app: { is: "UnderWay" } } },
    want: { stops: undefined, states: ["app Recreating", "sidecar Pending"] },
  },
  "after the stop the next one is stopped": {
    given: { request: request([state("app", begun), state("sidecar")]), found: { app: "Ended" } },
    want: { stops: "sidecar-0", states: ["app Recreating", "sidecar Recreating"] },
  },
  "ordered: not before the first is ready again": {
    given: {
      request: request([state("app", begun), state("sidecar")], { orderedRecreate: true }),
      found: { app: "Ended" },
    },
    want: { stops: undefined, states: ["app Recreating", "sidecar Pending"] },
  },
  "ordered: then it is": {
    given: { request: request([state("app", { phase: "Succeeded" }), state("sidecar")], { orderedRecreate: true }) },
    want: { stops: "sidecar-0", states: ["app Succeeded", "sidecar Recreating"] },
  },
  "a stop whose caller has died is repeated for the same ID": {
    given: { request: request([state("app", begun)]) },
    want: { stops: "app-0", states: ["app Recreating"] },
  },
  "a failed stop ends it": {
    given: {
      request: request([state("app", begun), state("sidecar")]),
      stops: { app: { is: "Failed", message: "no" } },
    },
    want: { stops: undefined, states: ["app Failed", "sidecar Pending"], says: "no" },
  },
  "with Ignore the next one is stopped": {
    given: {
      request: request([state("app", begun), state("sidecar")], { failurePolicy: "Ignore" }),
      stops: { app: { is: "Failed", message: "no" } },
    },
    want: { stops: "sidecar-0", states: ["app Failed", "sidecar Recreating"] },
  },
  "a container that has ended is not stopped": {
    given: { request: request([state("app")]), found: { app: "Ended" } },
    want: { stops: undefined, states: ["app Recreating"] },
  },
  "a forced one waits for its next start": {
    given: { request: request([state("app")], { forceRecreate: true }), found: { app: "Ended" } },
    want: { stops: undefined, states: ["app Pending"], says: "next start" },
  },
  "a container of another pod is never stopped": {
    given: { request: request([state("app"), state("sidecar")]), found: { app: "Foreign" } },
    want: { stops: undefined, states: ["app Failed", "sidecar Pending"], says: "not a container of this pod" },
  },
  "not even if its stop has begun": {
    given: { request: request([state("app", begun)]), found: { app: "Foreign" } },
    want: { stops: undefined, states: ["app Failed"] },
  },
  "the limit of the node": {
    given: { request: request([state("app")]), freeAt: now + 7000 },
    want: { stops: undefined, states: ["app Pending"], says: "10 stops a minute", lookAgainAt: now + 7000 },
  },
  "the limit does not hold up a stop that has begun": {
    given: { request: request([state("app", begun)]), freeAt: now + 7000 },
    want: { stops: "app-0", states: ["app Recreating"] },
  },
}

for (const [name, { given, want }] of Object.entries(cases))
  test(name, () => {
    const seen: Snapshot = {
      request: given.request,
      node: "node-a",
      found: container => ({ is: given.found?.[container] ?? "Running" }),
      stop: container => given.stops?.[container],
      limit: { perMinute: 10, freeAt: given.freeAt ?? now },
      now,
    }
    const next = plan(seen)
    expect(next.states.map(({ name: container, phase }) => `${container} ${phase}`)).toEqual(want.states)
    expect(next.stop?.containerID.replace("containerd://", "")).toBe(want.stops)
    if (want.says) expect(next.states[0]?.message).toContain(want.says)
    if (want.lookAgainAt !== undefined) expect(next.lookAgainAt).toBe(want.lookAgainAt)
  })

test("a repeated stop counts from the beginning of the first", () =>
  expect(
    plan({
      request: request([state("app", begun)]),
      node: "node-a",
      found: () => ({ is: "Running" }),
      stop: () => undefined,
      limit: { perMinute: 10, freeAt: now },
      now,
    }).stop?.since,
  ).toBe(now - 4000))

test("in any minute no more stops begin than the limit", async () => {
  const clock = virtualClock(now)
  const pace = new StopPace(clock, 2)
  pace.take()
  await clock.advance(20_000)
  expect(pace.freeAt(clock.now())).toBe(clock.now())
  pace.take()
  expect(pace.freeAt(clock.now())).toBe(now + 60_000)
  await clock.advance(40_000)
  expect(pace.freeAt(clock.now())).toBe(clock.now())
  pace.take()
  expect(pace.freeAt(clock.now())).toBe(now + 80_000)
})

test("where the limit is not reached, nothing waits, although time passes between look and plan", () => {
  let time = now
  const pace = new StopPace({ monotonic: () => time++ }, 2)
  const look = { key: "shop/a", object: request([state("app")]), now }
  const seen = observe({ node: "node-a", looks: new Map(), stops: new Map(), pace }, look)
  time += 5
  expect(seen.limit.freeAt).toBe(now)
})

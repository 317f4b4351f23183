import { createHmac } from "node:crypto"
import { expect, test } from "vitest"
import type { Webhook } from "#api/v1alpha1/canary/index.ts"
import { serve } from "#egress/test-servers.ts"
import { systemClock } from "#runtime/clock.ts"
import { createHooks, type HookCall, type HooksDeps } from "./hooks.ts"
import { canaryWith, type JudgingWorld, judgingWorld, untilThere } from "./test-judging.ts"

/** Pauses pass at once; what ends a call does not. */
const quick = {
  ...systemClock,
  after: (ms: number, call: () => void) => systemClock.after(ms <= 4000 ? 0 : ms, call),
}

function calling(
  hook: Partial<Webhook> & { url: string },
  world: JudgingWorld = {},
  more: Partial<HookCall> = {},
  other: Partial<HooksDeps> = {},
) {
  const { wiring, deps, enqueued, end } = judgingWorld(world)
  const hooks = createHooks({ ...wiring, clock: quick }, { ...deps, ...other })
  const canary = canaryWith({ webhooks: [{ name: "check", ...hook }] })
  const call = (round = 1): HookCall => ({
    key: "shop/web",
    caller: { name: "web", namespace: "shop", uid: "u1" },
    intervalMs: 60_000,
    hook: canary.spec.analysis.webhooks[0]!,
    runId: "run1",
    round,
    phase: "Waiting",
    checksum: "c1",
    ...more,
  })
  return { answer: (round?: number) => untilThere(() => hooks.answerOf(call(round))), call, hooks, enqueued, end }
}
const at = (port: number, path = "") => ({
  url: `http://127.0.0.1:${port}/${path}`,
  world: { allow: [`shop=127.0.0.1:${port}`] },
})

test("a hook is sent Flagger's payload and a key of the call, once", async () => {
  const { port, seen } = await serve((_, response) => response.end())
  const { url, world } = at(port, "gate")
  const { answer, enqueued } = calling({ url, type: "confirm-rollout", metadata: { cmd: "hey" } }, world)
  expect(await answer()).toMatchObject({ yes: true, why: "answered 200", isFailure: false, at: expect.any(Number) })
  await answer()
  expect(seen).toHaveLength(1)
  expect(enqueued).toContain("shop/web")
  expect(seen[0]).toMatchObject({
    method: "POST",
    url: "/gate",
    headers: { "aim-call": expect.stringMatching(/^[0-9a-f]{32}$/), "aim-attempt": "1" },
  })
  expect(JSON.parse(seen[0]!.body)).toEqual({
    name: "web",
    namespace: "shop",
    phase: "Waiting",
    checksum: "c1",
    metadata: { cmd: "hey" },
  })
  await answer(2)
  expect(seen[1]!.headers["aim-call"]).not.toBe(seen[0]!.headers["aim-call"])
})

test.each([
  [200, true, false],
  [204, true, false],
  [301, false, false],
  [403, false, false],
  [500, false, true],
])("status %s", async (status, yes, isFailure) => {
  const { port } = await serve((_, response) =>
    response.writeHead(status, { location: "http://169.254.169.254/" }).end("not now"),
  )
  const { url, world } = at(port)
  const why = yes ? `answered ${status}` : `answered ${status}: not now`
  expect(await calling({ url }, world).answer()).toMatchObject({ yes, isFailure, why })
})

test("what may pass is tried again with the same key, and a no is not", async () => {
  let left = 2
  const { port, seen } = await serve((_, response) => response.writeHead(left-- > 0 ? 503 : 200).end())
  const { url, world } = at(port)
  expect(await calling({ url, retries: 3 }, world).answer()).toMatchObject({ yes: true })
  expect(seen.map(({ headers }) => headers["aim-attempt"])).toEqual(["1", "2", "3"])
  expect(new Set(seen.map(({ headers }) => headers["aim-call"])).size).toBe(1)
  const refusing = await serve((_, response) => response.writeHead(403).end())
  const no = at(refusing.port)
  expect(await calling({ url: no.url, retries: 3 }, no.world).answer()).toMatchObject({ yes: false, isFailure: false })
  expect(refusing.seen).toHaveLength(1)
})

test("an attempt has its own time", async () => {
  const { port, seen } = await serve(() => {})
  const { url, world } = at(port)
  expect(await calling({ url, timeout: "1s" }, world).answer()).toMatchObject({
    yes: false,
    isFailure: true,
    why: expect.stringContaining("within 1 s"),
  })
  expect(seen).toHaveLength(1)
})

test("a signed call proves its body and its time, and its answer is not quoted", async () => {
  const { port, seen } = await serve(({ headers }, response) =>
    response.writeHead(400).end(String(headers["aim-signature"])),
  )
  const { url, world } = at(port)
  const { answer } = calling(
    { url, secretRef: { name: "hook" } },
    { ...world, secrets: { "shop/hook": { key: "s3cret" } } },
  )
  expect(await answer()).toMatchObject({ yes: false, why: "answered 400" })
  const [, t, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(seen[0]!.headers["aim-signature"]))!
  expect(mac).toBe(createHmac("sha256", "s3cret").update(`${t}.${seen[0]!.body}`).digest("hex"))
  expect(Math.abs(Number(t) * 1000 - systemClock.now())).toBeLessThan(60_000)
})

test.each<[string, JudgingWorld["secrets"], unknown]>([
  ["no Secret", {}, { reason: "SecretMissing" }],
  [
    "a Secret that may not be read",
    { "shop/hook": null },
    { reason: "Forbidden", why: expect.stringContaining("aim grant shop --secrets hook") },
  ],
  ["a Secret without the key", { "shop/hook": { other: "x" } }, { reason: "SecretMissing" }],
  ["an empty key", { "shop/hook": { key: "" } }, { reason: "SecretMissing" }],
])("%s: nothing is sent", async (_, secrets, expected) => {
  const { port, seen } = await serve((_, response) => response.end())
  const { url, world } = at(port)
  const { answer } = calling({ url, secretRef: { name: "hook" } }, { ...world, secrets: secrets! })
  expect(await answer()).toMatchObject({ yes: false, isFailure: true, ...(expected as object) })
  expect(seen).toEqual([])
})

test("one namespace's calls that hang are few, and others are called", async () => {
  const hanging = await serve(() => {})
  const well = await serve((_, response) => response.end())
  const { wiring, deps } = judgingWorld({ allow: [`*=127.0.0.1:${hanging.port}`, `*=127.0.0.1:${well.port}`] })
  const hooks = createHooks(wiring, deps)
  const of = (namespace: string, port: number, round: number): HookCall => {
    const canary = canaryWith({ webhooks: [{ name: "x", url: `http://127.0.0.1:${port}/` }] }, {}, { namespace })
    return {
      key: `${namespace}/web`,
      caller: { name: "web", namespace, uid: "u1" },
      intervalMs: 60_000,
      hook: canary.spec.analysis.webhooks[0]!,
      runId: "r",
      round,
      phase: "",
      checksum: "",
    }
  }
  for (let round = 0; round < 50; round++) expect(hooks.answerOf(of("shop", hanging.port, round))).toBeUndefined()
  const asked = of("other", well.port, 0)
  expect(await untilThere(() => hooks.answerOf(asked))).toMatchObject({ yes: true })
  expect(hanging.seen.length).toBeLessThanOrEqual(6)
  expect(hooks.areOpen).toBe(true)
})

test("two hooks of one type and name are two calls", async () => {
  const { port, seen } = await serve((_, response) => response.end())
  const { world } = at(port)
  for (const metadata of [{ cmd: "a" }, { cmd: "b" }])
    await calling({ url: `http://127.0.0.1:${port}/`, metadata }, world).answer()
  expect(new Set(seen.map(({ headers }) => headers["aim-call"])).size).toBe(2)
})

test("a process that ends says nothing of a call that is under way: it did not say no", async () => {
  const { port, seen } = await serve(() => {})
  const { url, world } = at(port)
  const { hooks, call, end, enqueued } = calling({ url }, world)
  expect(hooks.answerOf(call())).toBeUndefined()
  await untilThere(() => seen[0])
  end()
  await untilThere(() => enqueued[0])
  expect(hooks.answerOf(call())).toBeUndefined()
  expect(hooks.areOpen).toBe(false)
})

test("a hook that could not be called has not said no, and needs no person", async () => {
  const { port, seen } = await serve((_, response) => response.end())
  const { url, world } = at(port)
  const secrets = { read: async () => Promise.reject(new Error("the server is down")) }
  const { answer } = calling({ url, secretRef: { name: "hook" } }, world, {}, { secrets })
  expect(await answer()).toMatchObject({ yes: false, isFailure: true, isUncalled: true })
  expect(seen).toEqual([])
})

import { expect, test } from "vitest"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { serve } from "#egress/test-servers.ts"
import { systemClock } from "#runtime/clock.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { canaryWith, type JudgingWorld, judgingWorld } from "../test-judging.ts"
import { type CanaryMessage, createAlerts } from "./alerts.ts"

/** Pauses pass at once. */
const clock = { ...systemClock, after: (ms: number, call: () => void) => systemClock.after(ms <= 2000 ? 0 : ms, call) }
const message: CanaryMessage = { severity: "warn", text: "held", phase: "Progressing", checksum: "c1" }

async function sending(
  analysis: Pick<CanarySpecInput["analysis"], "alerts" | "webhooks">,
  world: JudgingWorld,
  more: Partial<CanaryMessage> = {},
) {
  const { wiring, deps, secretsRead } = judgingWorld(world)
  const [told, counted]: [string[], string[]] = [[], []]
  const counter = {
    add: ({ result = "" } = {}, by = 1) => void (by && counted.push(result)),
    remove: () => {},
  }
  const alerts = createAlerts(
    {
      ...wiring,
      clock,
      log: silentLogger,
      events: { record: (_, { reason, message }) => void told.push(`${reason} ${message}`), flush: async () => {} },
      metrics: { counter: () => counter } as never,
    },
    deps,
  )
  alerts.send(canaryWith(analysis), { ...message, ...more })
  await alerts.drain()
  return { told, counted, secretsRead }
}
const world = (port: number, more: JudgingWorld = {}): JudgingWorld => ({ allow: [`*=127.0.0.1:${port}`], ...more })
const alerts = (severity: "" | "info" | "warn" | "error" = "") => [
  { name: "on-call", severity, providerRef: { name: "chat" } },
]

test("an alert is sent as its provider says, with the token of its Secret", async () => {
  const { url, port, seen } = await serve((_, response) => response.end())
  const providers = { "shop/chat": { type: "slack", channel: "ops", secretRef: { name: "chat" } } }
  const secrets = { "shop/chat": { address: `${url}/hook\n`, token: "t0ken" } }
  const { told, counted } = await sending({ alerts: alerts() }, world(port, { providers, secrets }))
  expect(told).toEqual([])
  expect(counted).toEqual(["sent"])
  expect(seen).toMatchObject([{ method: "POST", url: "/hook", headers: { authorization: "Bearer t0ken" } }])
  expect(JSON.parse(seen[0]!.body)).toMatchObject({
    channel: "ops",
    username: "flagger",
    attachments: [{ author_name: "web.shop", text: "held" }],
  })
})

test("only what is meant for an alert is sent, and nothing about a hook that is muted", async () => {
  const { url, port, seen } = await serve((_, response) => response.end())
  const there = world(port, { providers: { "shop/chat": { type: "slack", address: url } } })
  await sending({ alerts: alerts("error") }, there)
  await sending({ alerts: alerts("info") }, there, { isMuted: true })
  expect(seen).toEqual([])
  await sending({ alerts: alerts("warn") }, there)
  expect(seen).toHaveLength(1)
})

test("an event hook is sent what happened", async () => {
  const { url, port, seen } = await serve((_, response) => response.end())
  const webhooks = [
    { name: "log", type: "event" as const, url, metadata: { team: "a" } },
    { name: "x", url },
  ]
  await sending({ webhooks }, world(port), { isMuted: true })
  expect(seen.map(({ body }) => JSON.parse(body))).toEqual([
    {
      name: "web",
      namespace: "shop",
      phase: "Progressing",
      checksum: "c1",
      metadata: { team: "a", eventMessage: "held", eventType: "Warning", timestamp: expect.stringMatching(/^\d{13}$/) },
    },
  ])
})

test("a failing alert is told, not quoted, and tried again only where that may help", async () => {
  for (const [status, times] of [
    [500, 3],
    [404, 1],
    [302, 1],
  ] as const) {
    const { url, port, seen } = await serve((_, response) =>
      response.writeHead(status, { location: "/x" }).end("s3cret"),
    )
    const { told, counted } = await sending(
      { alerts: alerts() },
      world(port, { providers: { "shop/chat": { type: "slack", address: url } } }),
    )
    expect(told).toEqual([`AlertFailed alert on-call: it answered ${status}`])
    expect(counted).toEqual(["failed"])
    expect(seen).toHaveLength(times)
  }
})

test.each<[string, JudgingWorld, RegExp]>([
  ["no provider", {}, /AlertProvider chat does not exist in shop/],
  [
    "a proxy",
    { providers: { "shop/chat": { type: "slack", address: "http://a.test", proxy: "http://p.test" } } },
    /proxy is not supported/,
  ],
  [
    "no Secret",
    { providers: { "shop/chat": { type: "slack", secretRef: { name: "s" } } } },
    /Secret s does not exist in shop/,
  ],
  [
    "no address in it",
    { providers: { "shop/chat": { type: "slack", secretRef: { name: "s" } } }, secrets: { "shop/s": {} } },
    /has no address/,
  ],
])("%s", async (_, there, expected) => {
  const { told } = await sending({ alerts: alerts() }, there)
  expect(told).toEqual([expect.stringMatching(expected)])
})

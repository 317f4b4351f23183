import { expect, test } from "vitest"
import type { Request, Transport } from "#runtime/client/transport.ts"
import { virtualClock } from "#runtime/clock.ts"
import { impatient } from "./connect.ts"

const request = (over: Partial<Request> = {}): Request => ({
  method: "GET",
  path: "/",
  headers: {},
  signal: new AbortController().signal,
  ...over,
})

test("a server that does not answer is reported after three seconds, once, and not for a watch", async () => {
  const clock = virtualClock(0)
  const said: string[] = []
  const answers: (() => void)[] = []
  const silent: Transport = {
    send: () => new Promise(resolve => answers.push(() => resolve({ status: 200, headers: {}, body: [] as never }))),
    close() {},
  }
  const transport = impatient(silent, { clock, say: line => void said.push(line), server: "https://example.com" })
  void transport.send(request({ longLived: true }))
  await clock.advance(10_000)
  expect(said).toEqual([])

  const first = transport.send(request())
  const second = transport.send(request())
  await clock.advance(2900)
  expect(said).toEqual([])
  await clock.advance(100)
  expect(said).toEqual(["https://example.com has not answered for 3s; still waiting (Ctrl-C ends it)"])
  await clock.advance(30_000)
  expect(said).toHaveLength(1)
  for (const answer of answers) answer()
  expect(await Promise.all([first, second])).toMatchObject([{ status: 200 }, { status: 200 }])
})

test("one that answers in time is not", async () => {
  const clock = virtualClock(0)
  const said: string[] = []
  const quick: Transport = { send: async () => ({ status: 200, headers: {}, body: [] as never }), close() {} }
  const transport = impatient(quick, { clock, say: line => void said.push(line), server: "https://example.com" })
  await transport.send(request())
  await clock.advance(10_000)
  expect(said).toEqual([])
})

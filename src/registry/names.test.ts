import { createSocket, type Socket } from "node:dgram"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, test } from "vitest"
import { systemClock } from "#runtime/clock.ts"
import { addressesIn, type NamesOptions, nameLookup, spellingsOf } from "./names.ts"
import { cleanups, client, internet, movableClock, referenceTo, registry, resolved, serve } from "./test-registry.ts"

/**
 * A name server that knows these names, says nothing about `*.evil.test` nor about the IPv6 of `four.test`, and that there
 * are no others.
 */
async function nameServer(names: Record<string, string>) {
  const asked: string[] = []
  const socket: Socket = createSocket("udp4")
  socket.on("message", (query, from) => {
    const { name, type, end } = questionOf(query)
    asked.push(name)
    if (name.endsWith(".evil.test") || (name === "four.test" && type !== 1)) return
    const address = type === 1 ? names[name] : undefined
    const known = names[name] !== undefined
    const head = Buffer.from(query.subarray(0, end))
    head.writeUInt16BE(known ? 0x8180 : 0x8183, 2)
    head.writeUInt16BE(address ? 1 : 0, 6)
    head.writeUInt16BE(0, 8)
    head.writeUInt16BE(0, 10)
    const answer = address
      ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)])
      : Buffer.alloc(0)
    socket.send(Buffer.concat([head, answer]), from.port, from.address)
  })
  socket.bind(0, "127.0.0.1")
  await once(socket, "listening")
  cleanups.push(() => socket.close())
  return { asked, servers: [`127.0.0.1:${(socket.address() as AddressInfo).port}`] }
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

const look = (
  options: Omit<NamesOptions, "clock">,
  hostname: string,
  how: { isAllowed?: boolean; signal?: AbortSignal } = {},
) =>
  nameLookup({ ...options, clock: systemClock })(hostname, {
    isAllowed: false,
    signal: new AbortController().signal,
    ...how,
  })

describe("a registry client with a name server that says nothing about some names", () => {
  async function world(timeoutMs: number) {
    const { asked, servers } = await nameServer({ "good.test": "1.1.1.1" })
    const server = await serve(registry())
    const { dial } = internet(server.port, {}).options
    const { clock, advance } = movableClock()
    const lookup = nameLookup({ clock, servers, timeoutMs, tries: 1 })
    const { resolve } = client({ dial, clock, lookup, limits: { lookupMs: 60_000, wholeMs: 60_000 } })
    const gaveUp = new AbortController()
    cleanups.push(() => gaveUp.abort())
    const ask = (host: string, tenant: string) => resolve(referenceTo(`${host}/app`), { tenant, signal: gaveUp.signal })
    return { ask, asked, advance }
  }

  test("answers about the others while those are open", async () => {
    const { ask, asked } = await world(60_000)
    for (let at = 0; at < 64; at++) ask(`n${at}.evil.test`, "evil").catch(() => {})
    while (asked.length < 16) await nextTurn() // eight names, two families
    for (let at = 0; at < 4; at++) expect(await ask("good.test", "shop")).toEqual(resolved)
    expect(new Set(asked.filter(name => name.endsWith(".evil.test"))).size).toBe(8)
  })

  test("does not ask for a minute about what it learned nothing of", async () => {
    const { ask, asked, advance } = await world(300)
    for (const host of ["x.evil.test", "none.test"]) {
      const about = () => asked.filter(name => name === host).length
      expect(await ask(host, "evil")).toMatchObject({ class: "Unreachable" })
      const before = about()
      expect(before).toBeGreaterThan(0)
      expect(await ask(host, "shop")).toMatchObject({ class: "Unreachable" })
      advance(59_000)
      expect(await ask(host, "evil")).toMatchObject({ class: "Unreachable" })
      expect(about()).toBe(before)
      advance(2000)
      await ask(host, "evil")
      expect(about()).toBeGreaterThan(before)
    }
  })
})

test("a lookup ends with its signal, and the name server is not asked on", async () => {
  const { servers, asked } = await nameServer({})
  const gaveUp = new AbortController()
  const looked = look({ servers, timeoutMs: 60_000 }, "x.evil.test", { signal: gaveUp.signal })
  const ended = expect(looked).rejects.toMatchObject({ code: "ECANCELLED" })
  while (asked.length < 2) await nextTurn() // both families were asked for
  gaveUp.abort()
  await ended
})

test("a name server that says nothing about one family is not waited for", async () => {
  const { servers } = await nameServer({ "four.test": "1.1.1.1" })
  expect(await look({ servers, timeoutMs: 60_000 }, "four.test")).toEqual(["1.1.1.1"])
})

test("the hosts file and the search list are for hosts that were allowed", async () => {
  const { servers, asked } = await nameServer({
    "inside.test": "1.1.1.1",
    "registry.infra.svc.cluster.local": "10.96.0.7",
    "quay.io.svc.cluster.local": "10.96.0.66",
    "quay.io": "1.1.1.2",
  })
  const folder = await mkdtemp(join(tmpdir(), "aim-names-"))
  cleanups.push(() => rm(folder, { recursive: true }))
  const [hostsFile, configFile] = [join(folder, "hosts"), join(folder, "resolv.conf")]
  await writeFile(hostsFile, "# ours\n10.1.2.3  inside.test INSIDE\nfd00::1 inside.test # both\n")
  await writeFile(configFile, "search svc.cluster.local cluster.local\noptions ndots:5 timeout:1\n")
  const options = { servers, hostsFile, configFile }
  const at = (hostname: string, isAllowed: boolean) => look(options, hostname, { isAllowed })
  expect(await at("inside.test", true)).toEqual(["10.1.2.3", "fd00::1"])
  expect(await at("inside.test", false)).toEqual(["1.1.1.1"])
  expect(await at("registry.infra", true)).toEqual(["10.96.0.7"])
  await expect(at("registry.infra", false)).rejects.toMatchObject({ code: "ENOTFOUND" })
  expect(await at("quay.io", false)).toEqual(["1.1.1.2"])
  expect(asked).not.toContain("quay.io.svc.cluster.local")
})

test("localhost is this machine, whatever a name server says", async () => {
  const { servers, asked } = await nameServer({ localhost: "1.1.1.1" })
  expect(await look({ servers }, "localhost")).toEqual(["127.0.0.1", "::1"])
  expect(asked).toEqual([])
})

test.each([
  ["inside.test", "10.0.0.1 inside.test", ["10.0.0.1"]],
  ["Inside.Test.", "10.0.0.1 other inside.test\n::1 inside.test", ["10.0.0.1", "::1"]],
  ["inside.test", "#10.0.0.1 inside.test\nnonsense inside.test", []],
  ["inside", "10.0.0.1 inside.test", []],
])("%s in %j", (name, text, expected) => expect(addressesIn(text, name)).toEqual(expected))

test.each([
  ["a.b", "", ["a.b"]],
  ["a.b", "search x y\n", ["a.b", "a.b.x", "a.b.y"]],
  ["a", "search x.\noptions rotate", ["a.x", "a"]],
  ["a.b", "search x\noptions ndots:2", ["a.b.x", "a.b"]],
  ["a.b.", "search x\noptions ndots:5", ["a.b."]],
  ["a.b", "search x\nsearch y", ["a.b", "a.b.y"]],
])("%s with %j", (name, config, expected) => expect(spellingsOf(name, config)).toEqual(expected))

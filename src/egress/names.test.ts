import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, test } from "vitest"
import { systemClock } from "#runtime/clock.ts"
import { addressesIn, type NamesOptions, nameLookup, spellingsOf } from "./names.ts"
import { nameServer } from "./test-name-server.ts"
import { cleanups } from "./test-servers.ts"

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

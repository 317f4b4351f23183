import { setImmediate as nextTurn } from "node:timers/promises"
import { describe, expect, test } from "vitest"
import { nameLookup } from "#egress/names.ts"
import { nameServer } from "#egress/test-name-server.ts"
import { cleanups, internet, movableClock, serve } from "#egress/test-servers.ts"
import { client, referenceTo, registry, resolved } from "./test-registry.ts"

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

import { describe, expect, test } from "vitest"
import { internet, movableClock, serve } from "#egress/test-servers.ts"
import { json, type Reply } from "#runtime/client/test-server.ts"
import type { ResolveOptions } from "./client.ts"
import { client, referenceTo, registry, resolveAt, resolved, resolveImage, shown, status } from "./test-registry.ts"

const ann = { username: "ann", password: "s3cret:ä" }
const basicOfAnn = `Basic ${Buffer.from("ann:s3cret:ä").toString("base64")}`

/** Requires a token, which its own /token gives to every caller (or only to those of `knows`). */
function guarded(realm: () => string, { expiresIn = 300, knows }: { expiresIn?: number; knows?: string } = {}): Reply {
  let issued = 0
  return (seen, response) => {
    if (seen.url.startsWith("/token")) {
      if (knows !== undefined && seen.headers.authorization !== knows) return status(401)(seen, response)
      return json(response, { access_token: `token-${++issued}`, expires_in: expiresIn })
    }
    if (seen.headers.authorization?.startsWith("Bearer token-")) return registry()(seen, response)
    const challenge = `Bearer realm="${realm()}",service="the registry",scope="repository:app:pull,push"`
    return status(401, { "www-authenticate": challenge })(seen, response)
  }
}

async function serveGuarded(options: Parameters<typeof guarded>[1] = {}) {
  let place = ""
  const server = await serve(guarded(() => `http://${place}/token?extra=1`, options))
  place = `127.0.0.1:${server.port}`
  return { server, place, image: `${place}/app:v1` }
}

describe("tokens", () => {
  test("are asked for with the right to pull and no more", async () => {
    const { server, place, image } = await serveGuarded()
    expect(await resolveImage(image, { allow: [place] })).toEqual(resolved)
    expect(server.seen.map(shown)).toEqual([
      "HEAD /v2/app/manifests/v1",
      "GET /token?extra=1&service=the+registry&scope=repository%3Aapp%3Apull",
      "HEAD /v2/app/manifests/v1",
    ])
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined, "Bearer token-1"])
  })

  test("are bought with the credentials of that host", async () => {
    const { server, place, image } = await serveGuarded({ knows: basicOfAnn })
    const bob = { username: "bob", password: "b" }
    const credentials = new Map([
      [place, ann],
      ["docker.io", bob],
    ])
    expect(await resolveImage(image, { allow: [place] }, { credentials })).toEqual(resolved)
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([undefined, basicOfAnn, "Bearer token-1"])
    const others = new Map([["docker.io", ann]])
    expect(await resolveImage(image, { allow: [place] }, { credentials: others })).toMatchObject({ class: "Denied" })
    expect(server.seen.at(-1)!.headers.authorization).toBeUndefined()
  })

  test("are kept for their time, by repository and user", async () => {
    const { server, place, image } = await serveGuarded({ expiresIn: 100 })
    const { clock, advance } = movableClock()
    const { resolve } = client({ allow: [place], clock })
    const tokensFor = async (image: string, how?: ResolveOptions) => {
      const before = server.seen.length
      expect(await resolve(referenceTo(image), how)).toEqual(resolved)
      return server.seen.slice(before).filter(({ url }) => url.startsWith("/token")).length
    }
    const credentials = new Map([[place, ann]])
    expect(await tokensFor(image)).toBe(1)
    expect(await tokensFor(image)).toBe(0)
    expect(await tokensFor(`${place}/app:v2`)).toBe(0)
    expect(await tokensFor(`${place}/other:v1`)).toBe(1)
    expect(await tokensFor(image, { credentials })).toBe(1)
    advance(89_000)
    expect(await tokensFor(image)).toBe(0)
    advance(2000) // ten seconds early
    expect(await tokensFor(image)).toBe(1)
  })

  test("over TLS are not sent to the plain port of the same host", async () => {
    const server = await serve(guarded(() => "https://both.test/token"))
    const net = internet(server.port, { "both.test": ["10.0.0.1"] })
    const { resolve } = client({ ...net.options, allow: ["http://both.test:80", "https://both.test:443"] })
    expect(await resolve(referenceTo("both.test:443/app"))).toEqual(resolved)
    const before = server.seen.length
    await resolve(referenceTo("both.test:80/app"))
    expect(server.seen[before]!.headers.authorization).toBeUndefined()
  })

  test("that are refused all of a sudden are replaced, once", async () => {
    let refusals = 1
    const server = await serve((seen, response) => {
      if (seen.url.startsWith("/token")) return json(response, { token: "new" })
      const refusal = status(401, { "www-authenticate": `Bearer realm="${server.url}/token"` })
      return (refusals-- > 0 ? refusal : registry())(seen, response)
    })
    const place = `127.0.0.1:${server.port}`
    const { resolve } = client({ allow: [place] })
    const again = async (times: number) => {
      refusals = times
      const before = server.seen.length
      const resolution = await resolve(referenceTo(`${place}/app:v1`))
      return { resolution, requests: server.seen.slice(before).map(seen => shown(seen).split("?")[0]) }
    }
    const [head, token] = ["HEAD /v2/app/manifests/v1", "GET /token"]
    expect(await again(1)).toEqual({ resolution: resolved, requests: [head, token, head] })
    expect(await again(0)).toEqual({ resolution: resolved, requests: [head] })
    expect(await again(1)).toEqual({ resolution: resolved, requests: [head, token, head] })
    const stubborn = await again(1000)
    expect(stubborn.resolution).toMatchObject({ class: "Denied" })
    expect(stubborn.requests).toEqual([head, token, head])
  })

  test.each([
    ["not JSON", (_, response) => response.end("token")],
    ["no token", (_, response) => json(response, { tokens: [] })],
    ["a line break in it", (_, response) => json(response, { token: "a\r\nx-evil: 1" })],
    ["one of 20 kB", (_, response) => json(response, { token: "a".repeat(20_000) })],
    ["an answer of 100 kB", (_, response) => json(response, { token: "a", more: "a".repeat(100_000) })],
    ["a redirect", status(302, { location: "http://169.254.169.254/" })],
    ["nothing there", status(404)],
  ] satisfies [string, Reply][])("a token server with %s is no good", async (_, reply) => {
    let realm = ""
    const server = await serve((seen, response) =>
      (seen.url.startsWith("/token") ? reply : status(401, { "www-authenticate": `Bearer realm="${realm}"` }))(
        seen,
        response,
      ),
    )
    const place = `127.0.0.1:${server.port}`
    realm = `http://${place}/token`
    expect(await resolveImage(`${place}/app`, { allow: [place] })).toMatchObject({ class: "InvalidAnswer" })
    expect(server.seen).toHaveLength(2)
  })

  describe("the server that a registry names", () => {
    const at = async (realm: string, allow: string[] = []) => {
      const server = await serve(guarded(() => realm))
      const net = internet(server.port, {
        "registry.example.com": ["1.1.1.1"],
        "auth.example.com": ["8.8.8.8"],
        "rebound.example.com": ["127.0.0.1"],
        "inside.test": ["10.0.0.1"],
      })
      const credentials = new Map([["registry.example.com", ann]])
      const resolution = await resolveImage("registry.example.com/app", { ...net.options, allow }, { credentials })
      const places = net.dialled.map(({ address, secureFor }) => `${address} ${secureFor}`)
      return { resolution, places, sent: server.seen.map(({ headers }) => headers.authorization) }
    }

    test("gets its credentials, over TLS, on another host too", async () => {
      const { resolution, places, sent } = await at("https://auth.example.com/token")
      expect(resolution).toEqual(resolved)
      expect(places).toEqual([
        "1.1.1.1 registry.example.com",
        "8.8.8.8 auth.example.com",
        "1.1.1.1 registry.example.com",
      ])
      expect(sent).toEqual([undefined, basicOfAnn, "Bearer token-1"])
    })

    test.each([
      ["http://auth.example.com/token", "InvalidAnswer"],
      ["http://inside.test:5000/token", "InvalidAnswer"],
      ["https://user:pass@auth.example.com/token", "InvalidAnswer"],
      ["file:///etc/passwd", "InvalidAnswer"],
      ["/token", "InvalidAnswer"],
      ["https://169.254.169.254/token", "Denied"],
      ["https://rebound.example.com/token", "Denied"],
      ["https://[::ffff:169.254.169.254]/token", "Denied"],
      ["https://inside.test/token", "Denied"],
      ["https://inside.test:5001/token", "Denied"], // allowed, but not for a registry that was not
    ])("is not asked at %s", async (realm, expected) => {
      const { resolution, places, sent } = await at(realm, ["http://inside.test:5000", "inside.test:5001"])
      expect(resolution).toMatchObject({ class: expected, ...(expected === "Denied" && { isFinal: true }) })
      expect(places).toEqual(["1.1.1.1 registry.example.com"])
      expect(sent).toEqual([undefined])
    })
  })
})

describe("Basic", () => {
  const asksBasic: Reply = (seen, response) =>
    (seen.headers.authorization === basicOfAnn ? registry() : status(401, { "www-authenticate": 'Basic realm="r"' }))(
      seen,
      response,
    )
  test("credentials are shown when they are asked for", async () => {
    const server = await serve(asksBasic)
    const place = `127.0.0.1:${server.port}`
    const credentials = new Map([[place, ann]])
    expect(await resolveImage(`${place}/app`, { allow: [place] }, { credentials })).toEqual(resolved)
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([undefined, basicOfAnn])
  })
  test("wrong ones are shown once", async () => {
    const server = await serve(asksBasic)
    const place = `127.0.0.1:${server.port}`
    const credentials = new Map([[place, { username: "ann", password: "wrong" }]])
    const resolution = await resolveImage(`${place}/app`, { allow: [place] }, { credentials })
    expect(resolution).toMatchObject({ class: "Denied" })
    expect(JSON.stringify(resolution)).not.toContain("wrong")
    expect(server.seen).toHaveLength(2)
  })
  test("without any nothing is shown", async () => {
    const { resolution, requests } = await resolveAt(asksBasic)
    expect(resolution).toMatchObject({ class: "Denied", message: expect.stringContaining("none were given") })
    expect(requests).toHaveLength(1)
  })
})

import { once } from "node:events"
import fc from "fast-check"
import { afterEach, describe, expect, test } from "vitest"
import { virtualClock } from "../clock.ts"
import { seededRandom } from "../random.ts"
import { core, type KubeObject, type Resource } from "../resource.ts"
import type { ClientOptions, RequestInfo } from "./calls.ts"
import type { Client, WatchEvent, WatchOptions } from "./client.ts"
import { createClient } from "./create-client.ts"
import { type FailureKind, KubeError } from "./errors.ts"
import { httpsTransport } from "./https-transport.ts"
import { ConfigError } from "./server-config.ts"
import { configFor, json, type Reply, statusBody, testServer } from "./test-server.ts"
import type { Transport } from "./transport.ts"

const pods = core("pods", "Pod")
const nodes = core("nodes", "Node", false)
const deployments: Resource = {
  group: "apps",
  version: "v1",
  plural: "deployments",
  kind: "Deployment",
  namespaced: true,
}
const pod = { metadata: { name: "a", namespace: "web" } }
const a = { name: "a", namespace: "web" }

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A client in virtual time before a real server. */
async function world(reply: Reply, options: Partial<ClientOptions> = {}) {
  const server = await testServer(reply)
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const client = createClient({ transport: httpsTransport(server.config), clock, random: seededRandom(1), ...options })
  cleanups.push(
    () => client.close(),
    () => server.close(),
  )
  return { server, clock, client }
}
const ok: Reply = (_, response) => json(response, { metadata: {} })
const failureOf = async (promise: Promise<unknown>): Promise<KubeError> => {
  const error = await promise.then(
    () => undefined,
    error => error,
  )
  expect(error).toBeInstanceOf(KubeError)
  return error
}
/** Answers the first requests with these, all later ones with 200. */
const inTurn =
  (...replies: Reply[]): Reply =>
  (seen, response) =>
    (replies.shift() ?? ok)(seen, response)
const cut: Reply = ({ socket }) => socket.destroy()
const cutInBody: Reply = ({ socket }, response) => {
  response.writeHead(200, { "content-length": 1000 })
  response.write('{"metadata":', () => socket.destroy())
}

/** Every verb that writes, for tests of all of them. */
const writes: Record<string, (client: Client) => Promise<unknown>> = {
  create: client => client.create(pods, pod),
  replace: client => client.replace(pods, pod),
  patch: client => client.patch(pods, a, { type: "merge", body: {} }),
  delete: client => client.delete(pods, a),
}
const reads: Record<string, (client: Client) => Promise<unknown>> = {
  get: client => client.get(pods, a),
  list: client => client.list(pods),
  discover: client => client.discover("apps/v1", "Deployment"),
  raw: client => client.raw("/version"),
}

describe("requests", () => {
  const write = "fieldManager=aim&fieldValidation=Strict&timeout=30s"
  const cases: Record<
    string,
    { ask: (client: Client) => Promise<unknown>; sent: [string, string, unknown?, string?] }
  > = {
    get: { ask: client => client.get(pods, a), sent: ["GET", "/api/v1/namespaces/web/pods/a"] },
    "get, cluster-scoped": { ask: client => client.get(nodes, { name: "n1" }), sent: ["GET", "/api/v1/nodes/n1"] },
    "list everywhere": { ask: client => client.list(deployments), sent: ["GET", "/apis/apps/v1/deployments"] },
    "list a page": {
      ask: client => client.list(pods, { namespace: "web", labelSelector: "a in (b,c)", limit: 5, continue: "x/y=" }),
      sent: ["GET", "/api/v1/namespaces/web/pods?labelSelector=a+in+%28b%2Cc%29&limit=5&continue=x%2Fy%3D"],
    },
    create: {
      ask: client => client.create(pods, pod),
      sent: [
        "POST",
        `/api/v1/namespaces/web/pods?${write}`,
        { apiVersion: "v1", kind: "Pod", ...pod },
        "application/json",
      ],
    },
    "replace the status": {
      ask: client => client.replace(deployments, pod, { subresource: "status", fieldManager: "other" }),
      sent: [
        "PUT",
        "/apis/apps/v1/namespaces/web/deployments/a/status?fieldManager=other&fieldValidation=Strict&timeout=30s",
        { apiVersion: "apps/v1", kind: "Deployment", ...pod },
        "application/json",
      ],
    },
    "replace the scale": {
      ask: client =>
        client.replace(deployments, { ...pod, kind: "Scale", apiVersion: "autoscaling/v1" }, { subresource: "scale" }),
      sent: [
        "PUT",
        `/apis/apps/v1/namespaces/web/deployments/a/scale?${write}`,
        { apiVersion: "autoscaling/v1", kind: "Scale", ...pod },
        "application/json",
      ],
    },
    "merge patch, dry": {
      ask: client => client.patch(pods, a, { type: "merge", body: { x: null } }, { dryRun: true, deadlineMs: 1500 }),
      sent: [
        "PATCH",
        "/api/v1/namespaces/web/pods/a?fieldManager=aim&fieldValidation=Strict&dryRun=All&timeout=2s",
        { x: null },
        "application/merge-patch+json",
      ],
    },
    "strategic patch": {
      ask: client => client.patch(pods, a, { type: "strategic", body: {} }),
      sent: ["PATCH", `/api/v1/namespaces/web/pods/a?${write}`, {}, "application/strategic-merge-patch+json"],
    },
    "json patch": {
      ask: client => client.patch(pods, a, { type: "json", body: [{ op: "test" }] }),
      sent: ["PATCH", `/api/v1/namespaces/web/pods/a?${write}`, [{ op: "test" }], "application/json-patch+json"],
    },
    "forced apply": {
      ask: client => client.patch(pods, a, { type: "apply", body: { spec: {} }, force: true }),
      sent: [
        "PATCH",
        "/api/v1/namespaces/web/pods/a?fieldManager=aim&fieldValidation=Strict&force=true&timeout=30s",
        { apiVersion: "v1", kind: "Pod", spec: {} },
        "application/apply-patch+yaml",
      ],
    },
    "delete with preconditions": {
      ask: client =>
        client.delete(pods, a, { uid: "u", resourceVersion: "7", propagationPolicy: "Orphan", dryRun: true }),
      sent: [
        "DELETE",
        "/api/v1/namespaces/web/pods/a?timeout=30s",
        {
          apiVersion: "v1",
          kind: "DeleteOptions",
          preconditions: { uid: "u", resourceVersion: "7" },
          propagationPolicy: "Orphan",
          dryRun: ["All"],
        },
        "application/json",
      ],
    },
    raw: { ask: client => client.raw("/readyz?verbose"), sent: ["GET", "/readyz?verbose"] },
  }
  for (const [name, { ask, sent }] of Object.entries(cases))
    test(name, async () => {
      const { server, client } = await world(ok)
      await ask(client)
      const [{ method, url, body, headers }] = server.seen as [(typeof server.seen)[0]]
      const [wantMethod, wantUrl, wantBody, wantType] = sent
      expect([method, url, body === "" ? undefined : JSON.parse(body), headers["content-type"]]).toEqual([
        wantMethod,
        wantUrl,
        wantBody,
        wantType,
      ])
      expect(headers["user-agent"]).toBe("aim")
    })

  test("list items say what they are, and an empty list may be null", async () => {
    const lists = [
      { metadata: { resourceVersion: "1" }, items: [{ metadata: { name: "a" } }] },
      { metadata: {}, items: null },
    ]
    const { client } = await world((_, response) => json(response, lists.shift()))
    expect((await client.list(deployments)).items).toEqual([
      { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "a" } },
    ])
    expect((await client.list(pods)).items).toEqual([])
  })

  test("discovery finds the kind and not its subresources", async () => {
    const resources = [
      { name: "deployments/status", kind: "Deployment", namespaced: true },
      { name: "deployments", kind: "Deployment", namespaced: true },
    ]
    const { server, client } = await world(({ url }, response) =>
      url === "/apis/apps/v1" ? json(response, { resources }) : json(response, statusBody(404, "NotFound"), 404),
    )
    expect(await client.discover("apps/v1", "Deployment")).toEqual(deployments)
    expect(await client.discover("apps/v1", "Nothing")).toBeUndefined()
    expect(await client.discover("gone.example.com/v1", "Deployment")).toBeUndefined()
    expect(await client.discover("v1", "Pod")).toBeUndefined()
    expect(server.seen.map(({ url }) => url).slice(-1)).toEqual(["/api/v1"])
    await expect(client.discover("a/b/c", "Pod")).rejects.toThrow("is not GROUP/VERSION")
  })

  test("warnings and every request are reported", async () => {
    const told: unknown[] = []
    const clockless = (info: RequestInfo) => told.push({ ...info, durationMs: 0 })
    const warned: Reply = (_, response) => json(response, {}, 200, { warning: '299 - "old \\"API\\"", 299 - "second"' })
    const { client } = await world(warned, { onRequest: clockless, onWarning: text => told.push(text) })
    await client.patch(deployments, a, { type: "merge", body: {} }, { subresource: "status" })
    expect(told).toEqual([
      { verb: "patch", resource: "deployments.apps/status", code: 200, durationMs: 0 },
      'old "API"',
      "second",
    ])
  })
})

describe("paths", () => {
  test("any name is refused or arrives as exactly one segment", async () => {
    const { server, client } = await world(ok)
    const nasty = fc.constantFrom(
      "..",
      ".",
      "",
      "a/b",
      "%2e%2e",
      "a%2fb",
      "a?b",
      "a#b",
      "a b",
      "ä",
      "\ud800",
      "a\r\nb",
      "system:node",
      "a\\b",
      ";x",
      "a".repeat(254),
    )
    const utf16 = fc.array(fc.nat({ max: 0xffff })).map(units => String.fromCharCode(...units))
    const anyName = fc.oneof(nasty, utf16, fc.string())
    let arrived = 0
    await fc.assert(
      fc.asyncProperty(anyName, async name => {
        server.seen.length = 0
        const error = await client.delete(nodes, { name }).then(
          () => undefined,
          error => error,
        )
        if (error) {
          expect([error.kind, server.seen]).toEqual(["Invalid", []])
          return
        }
        arrived++
        const [path = ""] = server.seen[0]!.url.split("?", 1)
        expect(path.split("/").map(decodeURIComponent)).toEqual(["", "api", "v1", "nodes", name])
      }),
      { numRuns: 300 },
    )
    expect(arrived).toBeGreaterThan(50)
  })

  test("namespaces, resources and raw paths are held to what they can be", async () => {
    const { server, client } = await world(ok)
    const refused = [
      // Encoded they would arrive as one segment here, but not behind a proxy that decodes once too often.
      client.get(nodes, { name: "a/b" }),
      client.get(nodes, { name: "..%2fsecrets" }),
      client.get(nodes, { name: ".." }),
      client.get(pods, { namespace: "..", name: "a" }),
      client.get(pods, { namespace: "a/../b", name: "a" }),
      client.get(pods, { namespace: "", name: "a" }),
      client.get(pods, { name: "a" }),
      client.get(nodes, { name: "a", namespace: "web" }),
      client.get({ ...pods, plural: "pods/a" }, a),
      client.get({ ...pods, group: "../api" }, a),
      client.create(pods, { metadata: { name: "a" } }),
      client.delete(pods, { namespace: "web" } as never), // or all pods of the namespace would go
      client.replace(nodes, { metadata: {} } as KubeObject),
      client.raw("version"),
      client.raw("/a/../b"),
      client.raw("//evil"),
      client.raw("/a b"),
      client.raw("/a?b?c"),
    ]
    for (const request of refused) expect((await failureOf(request)).kind).toBe("Invalid")
    expect(server.seen).toEqual([])
  })
})

describe("failures", () => {
  const statuses: [number, string, FailureKind, FailureKind?][] = [
    [301, "", "Invalid"],
    [400, "BadRequest", "Invalid"],
    [401, "Unauthorized", "Forbidden"],
    [403, "Forbidden", "Forbidden"],
    [404, "NotFound", "NotFound"],
    [405, "MethodNotAllowed", "Invalid"],
    [406, "NotAcceptable", "Invalid"],
    [409, "Conflict", "Conflict"],
    [409, "AlreadyExists", "Exists"],
    [410, "Expired", "Gone"],
    [413, "RequestEntityTooLarge", "Invalid"],
    [415, "UnsupportedMediaType", "Invalid"],
    [422, "Invalid", "Invalid"],
    [429, "TooManyRequests", "Throttled"],
    [500, "InternalError", "Unreachable", "UnknownOutcome"],
    [502, "", "Unreachable", "UnknownOutcome"],
    [503, "ServiceUnavailable", "Unreachable", "UnknownOutcome"],
    [504, "Timeout", "Unreachable", "UnknownOutcome"],
  ]
  for (const [status, reason, onRead, onWrite = onRead] of statuses)
    test(`${status} ${reason}: ${onRead} for a read, ${onWrite} for a write`, async () => {
      const { clock, client } = await world((_, response) => json(response, statusBody(status, reason), status))
      const told = Promise.all([failureOf(client.get(pods, a)), failureOf(client.create(pods, pod))])
      await untilSettled(clock, told)
      const [read, write] = await told
      expect([read.kind, write.kind]).toEqual([onRead, onWrite])
      expect([read.status, read.reason]).toEqual([status, reason || undefined])
    })

  const refusedByAdmission = [
    'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://x/": EOF',
    'admission webhook "a.example.com" denied the request: not today',
  ]
  for (const message of refusedByAdmission)
    for (const status of [404, 409, 410, 429, 500, 503])
      test(`${status} for a write that admission did not let through is certainly not applied: ${message}`, async () => {
        const { client } = await world((_, response) =>
          json(response, { ...statusBody(status, "Any"), message }, status),
        )
        const error = await failureOf(client.create(pods, pod))
        expect([error.kind, error.status, error.said]).toEqual(["Refused", status, message])
      })

  test("what a webhook puts into its words does not count: only the server's own do", async () => {
    const message = 'conversion webhook for x failed: Internal error occurred: failed calling webhook "a": no'
    const { client } = await world((_, response) => json(response, { ...statusBody(500, "Any"), message }, 500))
    expect((await failureOf(client.create(pods, pod))).kind).toBe("UnknownOutcome")
  })

  test("the message says what was tried and what the server said, causes it left out included", async () => {
    const causes = [
      { field: "spec.a", message: "Required value" },
      { field: "spec.b", message: "said already: because Invalid" },
    ]
    const body = { ...statusBody(422, "Invalid", { causes }), message: "said already: because Invalid" }
    const { client } = await world((_, response) => json(response, body, 422))
    const error = await failureOf(client.replace(deployments, pod))
    expect(error.message).toBe(
      "replacing deployments.apps web/a: 422 Invalid: said already: because Invalid: spec.a: Required value",
    )
    expect(error.causes).toEqual(causes)
  })

  test("an object the server quotes whole is left out, and what is wrong with it stays", async () => {
    const object = JSON.stringify(JSON.stringify({ env: "secret", more: 'x"y\\'.repeat(100) }))
    const message = `"" is invalid: patch: Invalid value: ${object}: strict decoding error: unknown field "spec.imge"`
    const body = { ...statusBody(422, "Invalid", { causes: [{ field: "patch", message }] }), message }
    const { client } = await world((_, response) => json(response, body, 422))
    const error = await failureOf(client.replace(deployments, pod))
    const told = '"" is invalid: patch: Invalid value: "…": strict decoding error: unknown field "spec.imge"'
    expect(error.message).toBe(`replacing deployments.apps web/a: 422 Invalid: ${told}`)
    expect(error.causes).toEqual([{ field: "patch", message: told }])
  })

  test("what a proxy says in HTML is one short line, and a flood of it does not get in", async () => {
    const bodies = [`<html>\n  <b>bad</b>\n${"x".repeat(500)}`, "y".repeat(2 << 20)]
    const { client } = await world((_, response) => response.writeHead(403).end(bodies.shift()))
    expect((await failureOf(client.get(pods, a))).message).toMatch(
      /^getting pods web\/a: 403: <html> <b>bad<\/b> x{180,190}…$/,
    )
    expect((await failureOf(client.get(pods, a))).message).toBe("getting pods web/a: 403")
  })

  test("no server: Unreachable, for writes, too", async () => {
    const { server, clock, client } = await world(ok)
    await server.close()
    for (const ask of [...Object.values(reads), ...Object.values(writes)]) {
      const told = failureOf(ask(client))
      await untilSettled(clock, told)
      expect((await told).kind).toBe("Unreachable")
      expect((await told).message).toContain("ECONNREFUSED")
    }
  })

  for (const [how, breaks] of Object.entries({ "before the answer": cut, "within the answer": cutInBody })) {
    for (const [verb, ask] of Object.entries(writes))
      test(`${verb} cut ${how}: sent once, UnknownOutcome`, async () => {
        const { server, client } = await world(inTurn(breaks))
        expect((await failureOf(ask(client))).kind).toBe("UnknownOutcome")
        expect(server.seen.length).toBe(1)
      })
    for (const [verb, ask] of Object.entries(reads))
      test(`${verb} cut ${how}: asked again at once`, async () => {
        const { server, client } = await world(inTurn(breaks))
        await ask(client)
        expect(server.seen.length).toBe(2)
      })
  }

  test("a read that is cut each time is given up after a few", async () => {
    const { server, clock, client } = await world(cut)
    const told = failureOf(client.get(pods, a))
    await untilSettled(clock, told)
    expect((await told).kind).toBe("Unreachable")
    expect(server.seen.length).toBe(3)
  })

  test("credentials that cannot be had are tried for once, and the message is the user's", async () => {
    let asked = 0
    const current = async () => {
      asked++
      throw new ConfigError("config: users[me].user.exec: login failed")
    }
    const credentials = { current, renew: async () => undefined }
    const { server } = await world(ok)
    const transport = httpsTransport({ ...server.config, credentials })
    const client = createClient({ transport, clock: virtualClock(), random: seededRandom(1) })
    const error = await failureOf(client.get(pods, a))
    expect([error.kind, error.message]).toEqual([
      "Unreachable",
      "getting pods web/a: config: users[me].user.exec: login failed",
    ])
    expect([asked, server.seen.length]).toEqual([1, 0])
  })

  test("a kept connection that the server hangs up on: a read is asked again, a write is not", async () => {
    const used = new Set<unknown>()
    const { server, client } = await world((seen, response) => {
      if (used.has(seen.socket)) return seen.socket.destroy()
      used.add(seen.socket)
      ok(seen, response)
    })
    await client.get(pods, a)
    await client.get(pods, a)
    expect(server.seen.length).toBe(3)
    expect((await failureOf(client.patch(pods, a, { type: "merge", body: {} }))).kind).toBe("UnknownOutcome")
    expect(server.seen.length).toBe(4)
  })

  test("an answer that is not JSON: a write may be applied", async () => {
    const html: Reply = (_, response) => response.writeHead(200, { "content-type": "application/json" }).end("<html>")
    const { client } = await world(html)
    expect((await failureOf(client.raw("/version"))).kind).toBe("Unreachable")
    expect((await failureOf(client.get(pods, a))).kind).toBe("Unreachable")
    expect((await failureOf(client.create(pods, pod))).kind).toBe("UnknownOutcome")
  })

  test("an endless answer is refused at its bound", async () => {
    const flood = Buffer.alloc(1 << 20, "x")
    const { server, client } = await world((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(flood));
        response.once("drain", more)
      }
      more()
    })
    const error = await failureOf(client.get(pods, a))
    expect([error.kind, error.message]).toEqual([
      "Invalid",
      "getting pods web/a: the answer is larger than 16 MB: ask for less (limit)",
    ])
    expect((await failureOf(client.create(pods, pod))).kind).toBe("UnknownOutcome")
    expect(server.seen.length).toBe(2)
  })
})

/** Lets virtual time go on, as real answers come in, until the promise is settled. */
async function untilSettled(clock: ReturnType<typeof virtualClock>, promise: Promise<unknown>) {
  let isSettled = false
  const settled = () => {
    isSettled = true
  }
  promise.then(settled, settled)
  while (!isSettled) {
    await new Promise(resolve => setImmediate(resolve))
    // Deadlines are 30 s and more away; waits before a retry are shorter. Real I/O decides when they begin.
    const next = clock.nextAt()
    if (next !== undefined && next - clock.now() < 15_000) await clock.advance(next - clock.now())
  }
}

describe("time", () => {
  test("a write without an answer ends at its deadline, as unknown", async () => {
    const { server, clock, client } = await world(() => {})
    const told = failureOf(client.create(pods, pod, { deadlineMs: 5_000 }))
    await server.arrived(1)
    const gone = once(server.seen[0]!.socket, "close")
    await clock.advance(4_999)
    expect(server.seen[0]!.socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(await told).toMatchObject({ kind: "UnknownOutcome", message: "creating pods web/a: no answer within 5 s" })
    await gone
    expect(clock.nextAt()).toBeUndefined()
  })

  test("a slow body counts: a list ends at 60 s, and is not asked for again", async () => {
    const { server, clock, client } = await world((_, response) => response.write('{"metadata":'))
    const told = failureOf(client.list(pods))
    await server.arrived(1)
    await clock.advance(59_999)
    expect(server.seen[0]!.socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(await told).toMatchObject({ kind: "Unreachable", message: "listing pods: no answer within 60 s" })
    expect(server.seen.length).toBe(1)
  })

  test("the caller ends a list", async () => {
    const codes: number[] = []
    const { server, clock, client } = await world(() => {}, { onRequest: ({ code }) => codes.push(code) })
    const over = new AbortController()
    const told = failureOf(client.list(pods, {}, over.signal))
    await server.arrived(1)
    over.abort(new Error("the process ends"))
    expect(await told).toMatchObject({ kind: "Unreachable", message: "listing pods: the process ends" })
    expect(codes).toEqual([0]) // one request, and no other after it
    expect(clock.nextAt()).toBeUndefined()
  })

  const throttled =
    (seconds: string): Reply =>
    (_, response) =>
      json(response, statusBody(429, "TooManyRequests"), 429, { "retry-after": seconds })

  for (const [verb, ask] of Object.entries({ ...reads, ...writes }))
    test(`${verb} throttled: asked again after Retry-After, not sooner`, async () => {
      const { server, clock, client } = await world(inTurn(throttled("3")))
      const asked = ask(client)
      await timerWithin(clock, 10_000)
      await clock.advance(2_999)
      expect(server.seen.length).toBe(1)
      await clock.advance(601) // and at most a fifth later
      await asked
      expect(server.seen.length).toBe(2)
    })

  test("asks for an eviction as a dry run, and never for another", async () => {
    const { server, client } = await world(ok)
    expect(await client.mayEvict(pods, a)).toEqual({ is: "Allowed" })
    const [{ method, url, body }] = server.seen as [(typeof server.seen)[0]]
    expect([method, url]).toEqual(["POST", "/api/v1/namespaces/web/pods/a/eviction?dryRun=All"])
    expect(JSON.parse(body)).toMatchObject({ kind: "Eviction", metadata: a, deleteOptions: { dryRun: ["All"] } })
  })

  test("a spent budget is an answer: it is not asked again, and the server's words are kept", async () => {
    const message = "The disruption budget web needs 3 healthy pods and has 3 currently"
    const details = { causes: [{ reason: "DisruptionBudget", message }] }
    const spent: Reply = (_, response) => json(response, { ...statusBody(429, "TooManyRequests"), details }, 429)
    const { server, client } = await world(spent)
    expect(await client.mayEvict(pods, a)).toEqual({ is: "Spent", said: message })
    expect(server.seen.length).toBe(1)
  })

  test("a server that is busy says nothing about a budget", async () => {
    const { server, client } = await world(throttled("3"))
    expect((await failureOf(client.mayEvict(pods, a))).kind).toBe("Throttled")
    expect(server.seen.length).toBe(1)
  })

  test("Retry-After may be a date", async () => {
    const { client } = await world(throttled("Thu, 01 Jan 2026 00:02:00 GMT"))
    expect(await failureOf(client.create(pods, pod))).toMatchObject({ kind: "Throttled", retryAfterMs: 120_000 })
  })

  test("a wait beyond the deadline is not begun", async () => {
    const { server, client } = await world(throttled("31"))
    expect(await failureOf(client.create(pods, pod))).toMatchObject({
      kind: "Throttled",
      retryAfterMs: 31_000,
      status: 429,
    })
    expect(server.seen.length).toBe(1)
  })

  test("a server that throttles on is left alone after a few", async () => {
    const { server, clock, client } = await world(throttled("1"))
    const told = failureOf(client.get(pods, a))
    await untilSettled(clock, told)
    expect((await told).kind).toBe("Throttled")
    expect(server.seen.length).toBe(5)
  })

  test("503 with Retry-After: a read waits, a write is unknown at once", async () => {
    const busy: Reply = (_, response) => json(response, {}, 503, { "retry-after": "2" })
    const { server, clock, client } = await world(inTurn(busy, busy))
    expect((await failureOf(client.create(pods, pod))).kind).toBe("UnknownOutcome")
    const asked = client.get(pods, a)
    await timerWithin(clock, 10_000)
    await clock.advance(1_999)
    expect(server.seen.length).toBe(2)
    await clock.advance(401)
    await asked
  })
})

/** Waits in real time until a timer of the client's is due within `ms` of virtual time. */
async function timerWithin(clock: ReturnType<typeof virtualClock>, ms: number) {
  while ((clock.nextAt() ?? Number.POSITIVE_INFINITY) - clock.now() > ms)
    await new Promise(resolve => setImmediate(resolve))
}

describe("guard", () => {
  const refuse = () => {
    throw new Error("lease lost")
  }
  for (const [verb, ask] of Object.entries(writes))
    test(`${verb} is refused and never reaches the server`, async () => {
      const { server, client } = await world(ok, { guard: refuse })
      await client.get(pods, a) // the guard is not called for reads
      const error = await failureOf(ask(client))
      expect([error.kind, server.seen.length]).toEqual(["WritesRefused", 1])
      expect(error.message).toContain("lease lost")
    })

  test("is asked again before a retry", async () => {
    let asked = 0
    const guard = () => {
      if (++asked > 1) refuse()
    }
    const throttled: Reply = (_, response) => json(response, {}, 429, { "retry-after": "1" })
    const { server, clock, client } = await world(inTurn(throttled), { guard })
    const told = failureOf(client.create(pods, pod))
    await untilSettled(clock, told)
    expect([(await told).kind, server.seen.length]).toEqual(["WritesRefused", 1])
  })
})

describe("watch", () => {
  const event = (name: string, more: object = {}) => ({ type: "ADDED", object: { metadata: { name, ...more } } })
  const line = (value: unknown) => `${JSON.stringify(value)}\n`
  const open = (client: Client, options: WatchOptions = {}, signal = new AbortController().signal) =>
    client.watch<KubeObject>(pods, options, signal)
  async function all(events: AsyncIterable<WatchEvent<KubeObject>>) {
    const seen: WatchEvent<KubeObject>[] = []
    for await (const event of events) seen.push(event)
    return seen
  }

  test("asks for bookmarks, and for the present state where requested", async () => {
    const { server, client } = await world((_, response) => response.end())
    await all(open(client, { resourceVersion: "7", timeoutSeconds: 300, fieldSelector: "a=b" }))
    await all(open(client, { namespace: "web", sendInitialEvents: true }))
    expect(server.seen.map(({ url }) => url)).toEqual([
      "/api/v1/pods?watch=true&allowWatchBookmarks=true&fieldSelector=a%3Db&resourceVersion=7&timeoutSeconds=300",
      "/api/v1/namespaces/web/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    ])
    expect(server.connections).toBe(1)
  })

  test("asks for nothing but metadata where requested, in a list and in a watch", async () => {
    const { server, client } = await world((_, response) => response.end('{"metadata":{}}\n'))
    await client.list(pods, { metadataOnly: true })
    await all(open(client, { metadataOnly: true })).catch(() => {})
    await client.list(pods)
    expect(server.seen.map(({ url, headers }) => [url, headers.accept])).toEqual([
      ["/api/v1/pods", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"],
      [
        "/api/v1/pods?watch=true&allowWatchBookmarks=true",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
      ],
      ["/api/v1/pods", "application/json"],
    ])
  })

  test("gives events as they come: U+2028, cut characters, several in a chunk, an ERROR", async () => {
    const events = [
      event("x\u2028y"),
      event("€𝄞"),
      event("c"),
      { type: "ERROR", object: { code: 410, reason: "Expired" } },
    ]
    const bytes = Buffer.from(events.map(line).join(""))
    const { client } = await world(async (_, response) => {
      const cutAt = bytes.indexOf(Buffer.from("𝄞")) + 2
      await new Promise<void>(resolve => response.write(bytes.subarray(0, cutAt), () => setImmediate(resolve)))
      response.end(bytes.subarray(cutAt))
    })
    expect(await all(open(client))).toEqual(events)
  })

  test("a refusal in protobuf is read like one in JSON, and a broken one is none", async () => {
    const forbidden = Buffer.from(
      "azhzAAoMCgJ2MRIGU3RhdHVzEiMKBgoAEgAaABIHRmFpbHVyZRoCbm8iCUZvcmJpZGRlbjCTAxoAIgA=",
      "base64",
    )
    const bodies = [forbidden, forbidden.subarray(0, 20)]
    const { client } = await world((_, response) => {
      response.writeHead(403, { "content-type": "application/vnd.kubernetes.protobuf" })
      response.end(bodies.shift())
    })
    await expect(all(open(client))).rejects.toMatchObject({
      kind: "Forbidden",
      reason: "Forbidden",
      message: "watching pods: 403 Forbidden: no",
    })
    await expect(all(open(client))).rejects.toMatchObject({ kind: "Forbidden", message: "watching pods: 403" })
  })

  test("an object of 10 MB arrives whole", async () => {
    const big = event("big", { annotations: { all: "ü".repeat(5 << 20) } })
    const { client } = await world((_, response) => response.end(line(big)))
    const [seen] = await all(open(client))
    expect(seen).toEqual(big)
  })

  const broken: Record<string, { reply: Reply; says: string }> = {
    "half a line": {
      reply: (_, response) => response.end(`${line(event("a"))}{"type":"ADD`),
      says: "middle of an event",
    },
    "not JSON": { reply: (_, response) => response.end(`${line(event("a"))}<html>\n`), says: "not valid JSON" },
    "not an event": {
      reply: (_, response) => response.end(`${line(event("a"))}{"type":"ODD","object":{}}\n`),
      says: "not a watch event",
    },
    "a cut connection": {
      reply: ({ socket }, response) => response.write(line(event("a")), () => socket.destroy()),
      says: "aborted",
    },
  }
  for (const [name, { reply, says }] of Object.entries(broken))
    test(`${name} is an error after the events before it`, async () => {
      const { client } = await world(reply)
      const seen: unknown[] = []
      const reading = (async () => {
        for await (const event of open(client)) seen.push(event)
      })()
      const error = await failureOf(reading)
      expect([error.kind, seen]).toEqual(["Unreachable", [event("a")]])
      expect(error.message).toMatch(new RegExp(`^watching pods: .*${says}`))
    })

  test("a refusal is the error it is elsewhere, and not retried here", async () => {
    const { server, client } = await world((_, response) => json(response, statusBody(410, "Expired"), 410))
    expect((await failureOf(all(open(client)))).kind).toBe("Gone")
    expect(server.seen.length).toBe(1)
  })

  test("silence ends it, a slow reader does not", async () => {
    let say = (_: string) => {}
    const { server, clock, client } = await world((_, response) => {
      say = text => void response.write(text)
      say(line(event("a")))
    })
    const events = open(client, { silenceMs: 30_000 })[Symbol.asyncIterator]()
    expect((await events.next()).value).toEqual(event("a"))
    await clock.advance(3_600_000) // the reader is busy for an hour
    say(line(event("b")))
    expect((await events.next()).value).toEqual(event("b"))

    const next = failureOf(events.next())
    await clock.advance(29_999)
    expect(server.seen[0]!.socket.destroyed).toBe(false)
    await clock.advance(1)
    expect(await next).toMatchObject({ kind: "Unreachable", message: "watching pods: not a byte for 30 s" })
  })

  test("any byte breaks the silence, an event or not", async () => {
    // Without a socket in between, so that it is certain when the byte was read.
    let deliver = (_: Uint8Array) => {}
    const clock = virtualClock()
    const transport: Transport = {
      async send({ signal }) {
        async function* body() {
          for (;;) {
            const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
            deliver = resolve
            signal.addEventListener("abort", () => reject(signal.reason))
            yield await promise
          }
        }
        return { status: 200, headers: {}, body: body() }
      },
      close() {},
    }
    const client = createClient({ transport, clock, random: seededRandom(1) })
    let ended: unknown
    const reading = failureOf(all(open(client, { silenceMs: 30_000 }))).then(error => {
      ended = error
    })
    for (let turn = 0; turn < 3; turn++) {
      await clock.advance(29_999)
      deliver(Buffer.from("\n"))
    }
    await clock.advance(29_999)
    expect(ended).toBeUndefined()
    await clock.advance(1)
    await reading
    expect(ended).toMatchObject({ message: "watching pods: not a byte for 30 s" })
  })

  test("a server that does not even answer is silent, too", async () => {
    const { server, clock, client } = await world(() => {})
    const told = failureOf(all(open(client)))
    await server.arrived(1)
    await clock.advance(60_000)
    expect((await told).message).toBe("watching pods: not a byte for 60 s")
  })

  test("without silenceMs an open stream may be quiet for ever", async () => {
    const { clock, client } = await world((_, response) => response.write(line(event("a"))))
    const over = new AbortController()
    const events = open(client, {}, over.signal)[Symbol.asyncIterator]()
    await events.next()
    const next = events.next()
    await clock.advance(86_400_000)
    over.abort()
    expect((await next).done).toBe(true)
  })

  test("the signal ends it quietly, before and while it streams, and the connection with it", async () => {
    const { server, client } = await world((_, response) => response.write(line(event("a"))))
    expect(await all(open(client, {}, AbortSignal.abort()))).toEqual([])
    expect(server.seen).toEqual([])

    const over = new AbortController()
    const events = open(client, { silenceMs: 1_000 }, over.signal)[Symbol.asyncIterator]()
    await events.next()
    const gone = once(server.seen[0]!.socket, "close")
    const next = events.next()
    over.abort(new Error("enough"))
    expect((await next).done).toBe(true)
    await gone
  })

  test("a reader that leaves ends the connection", async () => {
    const { server, clock, client } = await world((_, response) => response.write(line(event("a")) + line(event("b"))))
    for await (const _ of open(client, { silenceMs: 1_000 })) break
    if (!server.seen[0]!.socket.destroyed) await once(server.seen[0]!.socket, "close")
    expect(clock.nextAt()).toBeUndefined()
  })
})

test("a list through a server that is not there says where it looked", async () => {
  const client = createClient({
    transport: httpsTransport(configFor("http://127.0.0.1:1")),
    clock: virtualClock(),
    random: seededRandom(1),
  })
  await expect(client.create(pods, pod)).rejects.toThrow("127.0.0.1:1")
})

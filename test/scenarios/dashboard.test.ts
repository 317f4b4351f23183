import { request } from "node:https"
import { text } from "node:stream/consumers"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { createAuthority } from "#lib/certificate.ts"
import { serviceImages } from "#operations/kinds.ts"
import type { Seen } from "#operations/rollout.ts"
import { ask, browse, dashboardStory, post, signIn } from "#test/support/dashboard.ts"
import { until } from "#tools/kube/api.ts"
import type { Dashboard } from "#web/server.ts"
import type { Viewer } from "#web/viewer.ts"

// The dashboard's server over real HTTP, as a page and as an attacker speak to it.

const rbac = "rbac.authorization.k8s.io/v1"

/** A workload as the fleet: no custom kind is needed. */
const rollout = (image = "shop/web:1"): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "web" },
  spec: {
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "web" } },
    defaultImage: image,
  },
})

const deployment = (name: string, namespace = "default"): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: "web", image: "shop/web:0" }] },
    },
  },
})

const mayRead = (user: string, namespace: string): Json[] => [
  {
    apiVersion: rbac,
    kind: "Role",
    metadata: { name: `of-${user}`, namespace },
    rules: [{ apiGroups: ["autoimagemanager.io"], resources: ["*"], verbs: ["get", "list", "watch"] }],
  },
  {
    apiVersion: rbac,
    kind: "RoleBinding",
    metadata: { name: `of-${user}`, namespace },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: `of-${user}` },
    subjects: [{ kind: "User", name: user, apiGroup: "rbac.authorization.k8s.io" }],
  },
]

const isNotPods = (resource: string) => resource !== "pods"

/** All that a map needs. */
const mayReadAll = (user: string): Json[] => [
  {
    apiVersion: rbac,
    kind: "ClusterRole",
    metadata: { name: `all-of-${user}` },
    rules: [
      { apiGroups: ["autoimagemanager.io", "apps", "batch", "apiextensions.k8s.io"], resources: ["*"] },
      { apiGroups: [""], resources: ["pods", "nodes", "namespaces", "events"] },
      { apiGroups: ["events.k8s.io"], resources: ["events"] },
    ].map(rule => ({ ...rule, verbs: ["get", "list", "watch"] })),
  },
  {
    apiVersion: rbac,
    kind: "ClusterRoleBinding",
    metadata: { name: `all-of-${user}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: `all-of-${user}` },
    subjects: [{ kind: "User", name: user, apiGroup: "rbac.authorization.k8s.io" }],
  },
]

const source = (name: string, namespace: string): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "AlternateImageSource",
  metadata: { name, namespace },
  spec: { imageSourceReplacements: [{ equivalentRepositories: ["a.example.com/web", "b.example.com/web"] }] },
})

describe("a rollout", () => {
  test("is watched to its end, with a cell for each object and the words of aim why", async () => {
    const { local, dashboard } = await dashboardStory()
    await local.apply(deployment("one"), deployment("two"), rollout())
    const session = await signIn(dashboard)
    const page = { page: "details", kind: "serviceimages", namespace: "", name: "web" } as const
    const browser = await browse(dashboard, session, [{ page: "overview" }, page])
    await until("complete", async () => browser.row("serviceimages", "web")?.state === "Complete")
    const cells = await until("cells", async () => browser.feed("details/serviceimages//web")?.cells)
    expect(cells.names.toSorted()).toEqual(["one", "two"])
    const at = { kind: "Deployment", namespace: "default", name: "one" }
    const { body } = await post(dashboard, "/api/why", at, session)
    expect(body).toMatchObject({ reason: "UpToDate", command: "aim why deployment/one -n default" })
    expect(body.sentences[0]).toContain("has shop/web:1, as si/web wants it")
  })

  test("an object that changes its tier is shown in the new one", async () => {
    const { local, dashboard } = await dashboardStory()
    const tiers = [{ upgradeTier: "early", priority: 1 }, { upgradeTier: "" }]
    await local.apply(deployment("one"), { ...rollout(), spec: { ...rollout().spec, tiers } })
    const page = { page: "details", kind: "serviceimages", namespace: "", name: "web" } as const
    const browser = await browse(dashboard, await signIn(dashboard), [page])
    /** The only object, by all frames in turn. */
    const tierOf = () => {
      let [tier, tiers]: [number | undefined, string[]] = [undefined, []]
      for (const frame of browser.frames) {
        if (frame.type === "whole" && frame.cells) [tier, tiers] = [frame.cells.tier[0], frame.cells.tiers]
        if (frame.type !== "change" || !frame.cells) continue
        tiers = frame.cells.tiers ?? tiers
        for (const [, moved] of frame.cells.retiered ?? []) tier = moved
      }
      return tier === undefined ? undefined : tiers[tier]
    }
    await until("its first tier", async () => tierOf() === "")
    const deployments = { group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true }
    const labels = { "upgrade-tier": "early" }
    const body = { metadata: { labels } }
    await local.client.patch(deployments, { name: "one", namespace: "default" }, { type: "merge", body })
    await until("its second tier", async () => tierOf() === "early")
  })

  test("is paused by what was shown; a decision that reads differently by then is shown instead", async () => {
    const { local, dashboard } = await dashboardStory()
    await local.apply(deployment("one"), rollout())
    const seen = () => local.client.get<Seen>(serviceImages, { name: "web" })
    await until("complete", async () => (await seen()).status?.state === "Complete")
    const session = await signIn(dashboard)
    const action = { kind: "serviceimages", namespace: "", name: "web", action: "pause" }
    const before = (await post(dashboard, "/api/preview", action, session)).body
    expect(before).toMatchObject({ isPossible: true, lines: ["paused: si/web"], command: "aim pause si/web" })
    const paused = async () => (await seen()).spec.paused === true
    expect(await paused()).toBe(false)

    await local.client.patch(serviceImages, { name: "web" }, { type: "merge", body: { spec: { paused: true } } })
    const moved = (await post(dashboard, "/api/act", { ...action, decision: before.decision }, session)).body
    expect(moved).toMatchObject({ isDone: false, preview: { lines: ["already paused: si/web"] } })

    await local.client.patch(serviceImages, { name: "web" }, { type: "merge", body: { spec: { paused: false } } })
    const again = (await post(dashboard, "/api/preview", action, session)).body
    const done = (await post(dashboard, "/api/act", { ...action, decision: again.decision }, session)).body
    expect(done).toMatchObject({ isDone: true, lines: ["paused: si/web"] })
    expect(await paused()).toBe(true)
    const { metadata } = await seen()
    const managers = (metadata as { managedFields?: { manager: string }[] }).managedFields?.map(each => each.manager)
    expect(managers).toContain("aim-dashboard")
  })

  test("a new image is previewed by the planner: what would start, which objects, in which order, how long", async () => {
    const { local, dashboard, start, viewerOf } = await dashboardStory()
    const early = deployment("early")
    early.metadata.labels = { "upgrade-tier": "early" }
    const tiers = [
      { upgradeTier: "early", priority: 1, settleSeconds: 30 },
      { upgradeTier: "", settleSeconds: 1 },
    ]
    await local.apply(early, deployment("one"), deployment("two"), { ...rollout(), spec: { ...rollout().spec, tiers } })
    const seen = () => local.client.get<Seen>(serviceImages, { name: "web" })
    await until("complete", async () => (await seen()).status?.state === "Complete")
    const session = await signIn(dashboard)
    const page = { page: "details", kind: "serviceimages", namespace: "", name: "web" } as const
    const browser = await browse(dashboard, session, [page])
    const cells = () => browser.feed("details/serviceimages//web")?.cells
    await until("the map", async () => cells()?.names.length === 3)
    const before = structuredClone(cells())
    const of = { kind: "serviceimages", namespace: "", name: "web" }
    const set = { ...of, action: "set-image", settings: ["shop/web:2"] }
    const { plan } = (await post(dashboard, "/api/preview", set, session)).body
    const text = plan.join("\n")
    expect(text).toContain("would start operation g2: shop/web:2")
    expect(text).toContain("default/early  tier early  shop/web:1 → shop/web:2")
    expect(text).toMatch(/priority 1: tier early: 1 to stamp[\s\S]*priority 0: the default tier: 2 to stamp/)
    expect(text).toMatch(/takes: at least 31s \(.*31s of settling\)/)
    // A plan of what is not written leaves the picture of what is.
    expect((await seen()).spec.defaultImage).toBe("shop/web:1")
    expect(cells()).toEqual(before)

    const back = (await post(dashboard, "/api/preview", { ...of, action: "rollback" }, session)).body.plan.join("\n")
    expect(back).toMatch(/operation g1 RollingBack[\s\S]*priority 0: the default tier: 2 to stamp[\s\S]*priority 1/)

    // The plan needs the objects; the action does not.
    const [role, binding] = mayReadAll("tenant") as [Json, Json]
    const rules = [
      { apiGroups: ["autoimagemanager.io"], resources: ["*"], verbs: ["get", "list", "watch", "patch"] },
      { apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"] },
    ]
    await local.apply({ ...role, rules }, binding)
    const other = await start({ viewers: { by: "Key", viewer: viewerOf("tenant-token"), user: "tenant" } })
    const blind = (await post(other, "/api/preview", set, await signIn(other))).body
    expect(blind).toMatchObject({ isPossible: true })
    expect(blind.plan).toEqual([expect.stringContaining("The plan is not known: single objects are not shown")])
    await other.close()
  })

  test("a bad image is refused at the field, in the words of the command line", async () => {
    const { local, dashboard } = await dashboardStory()
    await local.apply(rollout())
    const session = await signIn(dashboard)
    const action = { kind: "serviceimages", namespace: "", name: "web", action: "set-image", settings: ["Shop Web"] }
    const { body } = await post(dashboard, "/api/preview", action, session)
    expect(body).toMatchObject({ isPossible: false, field: "settings" })
    expect(body.lines[0]).toMatch(/^Shop Web: /)
  })

  test("that does not exist is named with what was probably meant, and one that is deleted keeps its last state", async () => {
    const { local, dashboard } = await dashboardStory()
    await local.apply(rollout())
    const session = await signIn(dashboard)
    const of = (name: string) => ({ page: "details", kind: "serviceimages", namespace: "", name }) as const
    const browser = await browse(dashboard, session, [of("wep"), of("web")])
    const head = await until("a problem", async () => browser.feed("details/serviceimages//wep")?.head.problem)
    expect(head).toMatchObject({ reason: "NotFound", meant: "web" })
    await until("its details", async () => browser.feed("details/serviceimages//web")?.details)
    await local.client.delete(serviceImages, { name: "web" })
    await until("gone", async () => browser.feed("details/serviceimages//web")?.head.isDeleted)
    expect(browser.feed("details/serviceimages//web")?.details?.row.name).toBe("web")
  })
})

describe("rights", () => {
  test("a viewer sees the namespaces that it may list, is told so, and loses them when the right is withdrawn", async () => {
    const { local, viewerOf, start } = await dashboardStory()
    await local.apply(...mayRead("tenant", "default"), source("mine", "default"))
    await local.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "secret" } }, source("theirs", "secret"))
    const dashboard = await start({ viewers: { by: "Key", viewer: viewerOf("tenant-token"), user: "tenant" } })
    const browser = await browse(dashboard, await signIn(dashboard), [{ page: "overview" }])
    await until("its own", async () => browser.row("alternateimagesources", "default/mine"))
    const { head } = browser.feed("list/alternateimagesources")!
    expect(head).toMatchObject({ scope: "Some", namespaces: ["default"] })
    expect(head.scopeMessage).toContain("you may not list and watch those of all namespaces")
    expect(browser.feed("list/serviceimages")?.head.scope ?? "None").toBe("None")
    expect(JSON.stringify(browser.frames)).not.toContain("theirs")

    const bindings = { group: "rbac.authorization.k8s.io", version: "v1", plural: "rolebindings", kind: "RoleBinding" }
    await local.client.delete({ ...bindings, namespaced: true }, { name: "of-tenant", namespace: "default" })
    await until("gone", async () => browser.feed("list/alternateimagesources")?.head.scope === "None")
    expect(browser.feed("list/alternateimagesources")?.rows).toEqual([])
    await dashboard.close()
  })

  test("a viewer that may no longer see pods loses the map, and gets it back with the right", async () => {
    const { local, viewerOf, start } = await dashboardStory()
    await local.apply(...mayReadAll("tenant"), deployment("one"), rollout())
    const dashboard = await start({ viewers: { by: "Key", viewer: viewerOf("tenant-token"), user: "tenant" } })
    const page = { page: "details", kind: "serviceimages", namespace: "", name: "web" } as const
    const browser = await browse(dashboard, await signIn(dashboard), [page])
    const seen = () => browser.feed("details/serviceimages//web")
    await until("the map", async () => seen()?.cells)

    const roles = { group: "rbac.authorization.k8s.io", version: "v1", plural: "clusterroles", kind: "ClusterRole" }
    const [role] = mayReadAll("tenant") as [Json]
    const allow = (rules: Json) =>
      local.client.patch({ ...roles, namespaced: false }, { name: "all-of-tenant" }, { type: "merge", body: { rules } })
    await allow(role.rules.map((rule: Json) => ({ ...rule, resources: rule.resources.filter(isNotPods) })))
    await until("no map", async () => seen() && !seen()!.cells)
    expect(seen()?.details?.rollout?.mapMissing).toContain("you may not list and watch pods")
    await allow(role.rules)
    await until("the map again", async () => seen()?.cells)
    expect(seen()?.details?.rollout?.mapMissing ?? "").toBe("")
    await dashboard.close()
  })

  test("a read-only dashboard changes nothing, whatever is asked", async () => {
    const { local, start } = await dashboardStory()
    await local.apply(rollout())
    const dashboard = await start({ operates: false })
    const session = await signIn(dashboard)
    const action = { kind: "serviceimages", namespace: "", name: "web", action: "pause" }
    const { body } = await post(dashboard, "/api/preview", action, session)
    const refused = await post(dashboard, "/api/act", { ...action, decision: body.decision }, session)
    expect(refused).toMatchObject({ status: 403, body: { error: "ReadOnly" } })
    expect((await local.client.get<Seen>(serviceImages, { name: "web" })).spec.paused ?? false).toBe(false)
    await dashboard.close()
  })
})

/** As a proxy in front passes it on: a token with each request, and headers that a client made up. */
const throughProxy = (dashboard: Dashboard, token: string) => {
  const { host, origin } = new URL(dashboard.url)
  const headers = {
    ...{ host, origin, "content-type": "application/json", authorization: `Bearer ${token}` },
    ...{ "x-remote-user": "admin", "impersonate-user": "admin" },
  }
  return async (path: string, body: unknown, session?: string) => {
    const sent = { ...headers, ...(session !== undefined && { "x-aim-session": session }) }
    const answer = await ask(dashboard, path, { method: "POST", headers: sent, body: JSON.stringify(body) })
    return { status: answer.status, body: JSON.parse(answer.body) }
  }
}

describe("with a token of each viewer", () => {
  /** `name.n-token` is the nth token of a user. */
  async function tokenStory() {
    const story = await dashboardStory()
    await story.local.apply(...mayRead("tenant", "default"), source("mine", "default"))
    const clients: Viewer[] = []
    const viewerOf = async (token: string) => {
      const user = token.replace(/(\.\d+)?-token$/, "")
      const viewer = story.viewerOf(`${user}-token`)
      clients.push(viewer)
      return { viewer, user }
    }
    const dashboard = await story.start({ viewers: { by: "Token", viewerOf } })
    onTestFinished(() => dashboard.close())
    const signedIn = async (token: string) => (await throughProxy(dashboard, token)("/api/session", {})).body.session
    return { ...story, dashboard, signedIn, signedInBy: viewerOf, clients }
  }

  test("two users see no object across, and identity headers change nothing", async () => {
    const { dashboard, signedIn } = await tokenStory()
    const mine = await browse(dashboard, await signedIn("tenant-token"), [{ page: "overview" }])
    const other = await browse(dashboard, await signedIn("other-token"), [{ page: "overview" }])
    await until("its own", async () => mine.row("alternateimagesources", "default/mine"))
    await until("nothing", async () => other.feed("list/alternateimagesources")?.head.scope === "None")
    expect(JSON.stringify(other.frames)).not.toContain("default/mine")
  })

  test("a token is typed over TLS alone, and a request without one is told where to sign in", async () => {
    const { dashboard } = await tokenStory()
    const typed = await post(dashboard, "/api/session", { token: "tenant-token" })
    expect(typed).toMatchObject({ status: 403, body: { error: "NeedsTls" } })
    const none = await post(dashboard, "/api/session", {})
    expect(none).toMatchObject({ status: 401, body: { error: "NeedsToken" } })
    expect(none.body.message).toContain("the proxy in front of this server sent no token")
  })

  test("with TLS a token is typed", async () => {
    const { start, signedInBy } = await tokenStory()
    const authority = createAuthority({ name: "test", now: Date.now(), days: 1 })
    const tls = authority.forServer({ name: "dashboard" }, ["127.0.0.1"])
    const dashboard = await start({ tls, viewers: { by: "Token", viewerOf: signedInBy } })
    onTestFinished(() => dashboard.close())
    const { origin, port } = new URL(dashboard.url)
    expect(origin).toBe(`https://127.0.0.1:${port}`)
    const headers = { origin, "content-type": "application/json" }
    const answer = await new Promise<string>((resolve, reject) => {
      const sent = request(
        new URL("api/session", dashboard.url),
        { method: "POST", headers, ca: authority.cert },
        response => text(response).then(resolve, reject),
      )
      sent.on("error", reject)
      sent.end(JSON.stringify({ token: "tenant-token" }))
    })
    expect(JSON.parse(answer)).toMatchObject({ user: "tenant" })
  })

  test("a fresh token of the same user goes on with the session; another user's is refused", async () => {
    const { dashboard, signedIn, clients } = await tokenStory()
    const session = await signedIn("tenant.1-token")
    const browser = await browse(dashboard, session, [{ page: "overview" }])
    await until("its own", async () => browser.row("alternateimagesources", "default/mine"))
    const why = { kind: "alternateimagesources", namespace: "default", name: "mine" }
    const stolen = await throughProxy(dashboard, "other-token")("/api/why", why, session)
    expect(stolen).toMatchObject({ status: 401, body: { error: "NoSession" } })
    expect(stolen.body.message).toContain("another user's")

    const fresh = await throughProxy(dashboard, "tenant.2-token")("/api/watch", { stream: "old", pages: [] }, session)
    expect(fresh.status).not.toBe(401)
    await browser.ended
    expect(browser.frames.some(({ type }) => type === "end")).toBe(false)
    const again = await browse(dashboard, session, [{ page: "overview" }])
    await until("its own again", async () => again.row("alternateimagesources", "default/mine"))
    expect(clients).toHaveLength(3)
    await expect(clients[0]!.client.get(serviceImages, { name: "web" })).rejects.toThrow()
  })
})

describe("attacks", () => {
  test("another name, another origin, a form, a key used twice and a request without a session are refused", async () => {
    const { dashboard, said } = await dashboardStory()
    const { origin } = new URL(dashboard.url)
    const page = { origin, "content-type": "application/json" }
    const body = "{}"
    const status = async (...of: Parameters<typeof ask>) => (await ask(...of)).status
    expect(await status(dashboard, "/", { headers: { host: "evil.example.com" } })).toBe(421)
    expect(await status(dashboard, "/")).toBe(200)
    const act = { method: "POST", body }
    expect(await status(dashboard, "/api/act", { ...act, headers: { ...page, origin: "http://127.0.0.1:1" } })).toBe(
      403,
    )
    expect(await status(dashboard, "/api/act", { ...act, headers: { "content-type": "application/json" } })).toBe(403)
    expect(await status(dashboard, "/api/act", { ...act, headers: { ...page, "content-type": "text/plain" } })).toBe(
      403,
    )
    expect(await status(dashboard, "/api/act", { ...act, headers: page })).toBe(401)
    expect(await status(dashboard, "/api/stream")).toBe(401)
    expect(await status(dashboard, "/", { method: "DELETE" })).toBe(405)

    const key = new URL(dashboard.address()).hash.slice("#key=".length)
    expect((await post(dashboard, "/api/session", { key })).status).toBe(200)
    expect(await post(dashboard, "/api/session", { key })).toMatchObject({ status: 401, body: { error: "KeyUsed" } })
    expect(said.join("\n")).toContain("used a second time")
  })

  test("a key is good for a minute", async () => {
    const { dashboard, clock } = await dashboardStory()
    const key = new URL(dashboard.address()).hash.slice("#key=".length)
    const made = clock.monotonic()
    await until("a minute of the dashboard's clock", async () => clock.monotonic() - made > 61_000)
    expect(await post(dashboard, "/api/session", { key })).toMatchObject({ status: 401, body: { error: "KeyExpired" } })
  })

  test("every answer forbids frames, inline script and sniffing, and no cookie is set", async () => {
    const { dashboard } = await dashboardStory()
    for (const path of ["/", "/nothing", "/api/stream"]) {
      const { headers } = await ask(dashboard, path)
      expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'")
      expect(headers["content-security-policy"]).not.toContain("unsafe")
      expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" })
      expect(headers["set-cookie"]).toBeUndefined()
    }
  })

  test("no path leads out of the folder of the page", async () => {
    const { dashboard } = await dashboardStory()
    for (const path of ["/../package.json", "/%2e%2e/package.json", "//etc/passwd", "/.git/config", "/a/../../x.js"])
      expect((await ask(dashboard, path)).status).toBe(404)
  })

  test("malformed and long bodies are refused", async () => {
    const { dashboard } = await dashboardStory()
    const headers = { origin: new URL(dashboard.url).origin, "content-type": "application/json" }
    const sent = (body: string) => ask(dashboard, "/api/session", { method: "POST", headers, body })
    expect((await sent("{")).status).toBe(400)
    expect((await sent("[]")).status).toBe(400)
    expect((await sent(JSON.stringify({ key: "x".repeat(70_000) }))).status).toBe(413)
    const session = await signIn(dashboard)
    const odd = { kind: "serviceimages", namespace: "", name: "../../secrets/x" }
    expect((await post(dashboard, "/api/why", odd, session)).status).toBe(400)
    expect((await post(dashboard, "/api/preview", { ...odd, name: "x", action: "delete" }, session)).status).toBe(400)
  })
})

test("one watch for each kind serves every viewer, and a minute after the last has left there is none", async () => {
  const { local, dashboard, watches } = await dashboardStory()
  await local.apply(deployment("one"), rollout())
  const details = { page: "details", kind: "serviceimages", namespace: "", name: "web" } as const
  const look = async () => {
    const browser = await browse(dashboard, await signIn(dashboard), [{ page: "overview" }, details])
    await until("the map", async () => browser.feed("details/serviceimages//web")?.cells)
    return browser
  }
  const first = await look()
  await until("every watch", async () => watches().includes("pods"))
  const before = watches().toSorted()
  const second = await look()
  expect(watches().toSorted()).toEqual(before)
  first.close()
  second.close()
  await until("no watch", async () => watches().length === 0)
  expect(dashboard.streams).toBe(0)
})

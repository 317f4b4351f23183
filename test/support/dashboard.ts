import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type IncomingHttpHeaders, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { startLocalCluster } from "#cli/local-cluster.ts"
import type { User } from "#cluster-sim/index.ts"
import { createClient } from "#runtime/client/index.ts"
import { scaledClock, systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { type Dashboard, type DashboardOptions, serveDashboard } from "#web/server.ts"
import type { Frame, Page, Row, Whole } from "#web/wire.ts"

/** The clusters of these stories run fifty times as fast as ours, and so do the dashboard's own waits. */
const speed = 50

const users: Readonly<Record<string, User>> = {
  "admin-token": { name: "admin", groups: ["system:masters"] },
  "tenant-token": { name: "tenant", groups: [] },
  "other-token": { name: "other", groups: [] },
}

/** A cluster in this process, and a dashboard for it over real HTTP on loopback. */
export async function dashboardStory(options: Partial<DashboardOptions> = {}) {
  const clock = scaledClock(systemClock, speed)
  const local = await startLocalCluster({ clock, nodes: 1, identity: { users, tokenKey: "secret" } })
  const folder = mkdtempSync(join(tmpdir(), "aim-page-"))
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>aim</title>")
  const said: string[] = []
  const watching = new Set<{ path: string }>()
  const clientOf = (token: string) =>
    createClient({ transport: counted(asUser(local.cluster.front(), token), watching), clock, random: seededRandom(1) })
  const viewerOf = (token: string) => ({ client: clientOf(token), namespace: "default" })
  const start = (more: Partial<DashboardOptions> = {}): Promise<Dashboard> =>
    serveDashboard({
      ...{ folder, hosts: ["127.0.0.1"], port: 0, listen: "127.0.0.1", basePath: "", program: "aim", version: "0" },
      ...{ cluster: "test", operates: true, whyNot: "read-only", clock, random: seededRandom(2), speed },
      clusterNow: () => clock.now(),
      viewers: { by: "Key", viewer: viewerOf("admin-token"), user: "admin" },
      say: line => said.push(line),
      ...options,
      ...more,
    })
  const dashboard = await start()
  onTestFinished(async () => {
    await dashboard.close()
    await local.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  /** What the dashboard watches now, by resource. Held workloads are a watch of their own. */
  const watches = () => [...watching].map(({ path }) => watchedIn(path))
  return { local, dashboard, said, start, viewerOf, clock, watches }
}

type Transport = ReturnType<Awaited<ReturnType<typeof startLocalCluster>>["cluster"]["front"]>

const asUser = (transport: Transport, token: string): Transport => ({
  ...transport,
  send: sent => transport.send({ ...sent, headers: { ...sent.headers, authorization: `Bearer ${token}` } }),
})

const watchedIn = (path: string) => {
  const { pathname, searchParams } = new URL(path, "http://server")
  return [pathname.split("/").at(-1), searchParams.get("labelSelector") ?? ""].filter(Boolean).join(" ")
}

/** Notes each watch from its request to its end. */
const counted = (transport: Transport, watching: Set<{ path: string }>): Transport => ({
  ...transport,
  async send(sent) {
    if (!sent.longLived) return transport.send(sent)
    const one = { path: sent.path }
    watching.add(one)
    sent.signal.addEventListener("abort", () => watching.delete(one), { once: true })
    const answer = await transport.send(sent)
    async function* body() {
      try {
        yield* answer.body
      } finally {
        watching.delete(one)
      }
    }
    return { ...answer, body: body() }
  },
})

export type Answer = { status: number; headers: IncomingHttpHeaders; body: string }

/** A request as an attacker may write it: every header is given. */
export function ask(
  dashboard: Pick<Dashboard, "url">,
  path: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const { hostname, port, host } = new URL(dashboard.url)
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers: { host, ...headers } }, response => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", part => (text += part))
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body: text }))
      response.on("error", reject)
    })
    sent.on("error", reject)
    sent.end(body)
  })
}

/** As the page does it. */
export async function post(dashboard: Pick<Dashboard, "url">, path: string, body: unknown, session?: string) {
  const headers = {
    origin: new URL(dashboard.url).origin,
    "content-type": "application/json",
    ...(session !== undefined && { "x-aim-session": session }),
  }
  const answer = await ask(dashboard, path, { method: "POST", headers, body: JSON.stringify(body) })
  return { status: answer.status, body: JSON.parse(answer.body) }
}

export async function signIn(dashboard: Dashboard): Promise<string> {
  const key = new URL(dashboard.address()).hash.slice("#key=".length)
  return (await post(dashboard, "/api/session", { key })).body.session
}

/** One browser: a stream, and what its frames add up to. */
export async function browse(dashboard: Pick<Dashboard, "url">, session: string, pages: Page[]) {
  const life = new AbortController()
  onTestFinished(() => life.abort())
  const frames: Frame[] = []
  const feeds = new Map<string, Whole>()
  const answer = await fetch(new URL("api/stream", dashboard.url), {
    headers: { "x-aim-session": session },
    signal: life.signal,
  })
  const hello = Promise.withResolvers<string>()
  const reading = (async () => {
    let rest = ""
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + part).split("\n")
      rest = lines.pop()!
      for (const line of lines) take(JSON.parse(line))
    }
  })().catch(() => {})

  function take(frame: Frame): void {
    frames.push(frame)
    if (frame.type === "hello") hello.resolve(frame.stream)
    if (frame.type === "gone") feeds.delete(frame.feed)
    if (frame.type === "whole") feeds.set(frame.feed, frame)
    if (frame.type !== "change") return
    const known = feeds.get(frame.feed)!
    const rows = new Map((known.rows ?? []).map(row => [row.id, row]))
    for (const row of frame.rows ?? []) rows.set(row.id, row)
    for (const id of frame.removed ?? []) rows.delete(id)
    feeds.set(frame.feed, {
      ...known,
      ...(frame.head && { head: frame.head }),
      ...(known.rows && { rows: [...rows.values()] }),
      ...((known.details || frame.details) && { details: { ...known.details!, ...frame.details } }),
    })
  }

  const stream = await hello.promise
  const { pathname } = new URL("api/watch", dashboard.url)
  const watch = (next: Page[]) => post(dashboard, pathname, { stream, pages: next }, session)
  await watch(pages)
  return {
    frames,
    feed: (name: string) => feeds.get(name),
    row: (kind: string, id: string): Row | undefined => feeds.get(`list/${kind}`)?.rows?.find(row => row.id === id),
    watch,
    stream,
    ended: reading,
    close: () => life.abort(),
  }
}

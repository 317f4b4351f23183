import { afterEach, describe, expect, test } from "vitest"
import { core, type KubeObject, type Resource } from "#runtime/resource.ts"
import type { Json } from "./object.ts"
import { testCluster } from "./test-cluster.ts"

const configMaps = core("configmaps", "ConfigMap")
const namespaces = core("namespaces", "Namespace", false)
const deployments: Resource = {
  group: "apps",
  version: "v1",
  plural: "deployments",
  kind: "Deployment",
  namespaced: true,
}

const endings: (() => void)[] = []
afterEach(() => {
  for (const end of endings.splice(0)) end()
})

const configMap = (name: string, data: Record<string, string> = {}): KubeObject & { data: Record<string, string> } => ({
  metadata: { name, namespace: "default" },
  data,
})

/** Reads events as they arrive, until stopped. */
function follow(w: ReturnType<typeof testCluster>, options: Parameters<typeof w.client.watch>[1]) {
  const ending = new AbortController()
  const seen: string[] = []
  const done = (async () => {
    for await (const event of w.client.watch<KubeObject>(configMaps, options, ending.signal))
      seen.push(
        event.type === "ERROR" ? `ERROR ${event.object.code}` : `${event.type} ${event.object.metadata.name ?? ""}`,
      )
  })().catch(error => void seen.push(`failed ${error.message}`))
  endings.push(() => ending.abort(new Error("the test is over")))
  return { seen, done }
}

describe("a cluster through the client", () => {
  test("what is created can be read, listed, changed, patched and deleted", async () => {
    const { client } = testCluster()
    const created = await client.create(configMaps, configMap("a", { x: "1" }))
    expect(created.metadata.creationTimestamp).toBe("2026-01-01T00:00:00Z")
    expect(created.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
    const replaced = await client.replace(configMaps, { ...created, data: { x: "2" } })
    expect(Number(replaced.metadata.resourceVersion)).toBe(Number(created.metadata.resourceVersion) + 1)
    const patched = await client.patch<typeof created>(
      configMaps,
      { name: "a", namespace: "default" },
      {
        type: "merge",
        body: { data: { x: null, y: "3" } },
      },
    )
    expect(patched.data).toEqual({ y: "3" })
    const list = await client.list<typeof created>(configMaps, { namespace: "default" })
    expect(list.items.map(item => [item.kind, item.metadata.name, item.data])).toEqual([["ConfigMap", "a", { y: "3" }]])
    await client.delete(configMaps, { name: "a", namespace: "default" })
    await expect(client.get(configMaps, { name: "a", namespace: "default" })).rejects.toMatchObject({
      kind: "NotFound",
    })
  })

  test("a write from a stale copy is refused in the server's words", async () => {
    const { client, send } = testCluster()
    const created = await client.create(configMaps, configMap("a"))
    await client.replace(configMaps, { ...created, data: { x: "1" } })
    const { status, body } = await send("PUT", "/api/v1/namespaces/default/configmaps/a", {
      ...created,
      data: { x: "2" },
    })
    expect(status).toBe(409)
    expect(body).toEqual({
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message:
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
      reason: "Conflict",
      details: { name: "a", kind: "configmaps" },
      code: 409,
    })
  })

  test("a watch replays what it missed and then follows", async () => {
    const w = testCluster()
    const first = await w.client.create(configMaps, configMap("a"))
    await w.client.create(configMaps, configMap("b"))
    const { seen } = follow(w, { resourceVersion: first.metadata.resourceVersion ?? "" })
    await w.clock.advance(0)
    await w.client.delete(configMaps, { name: "a", namespace: "default" })
    await w.clock.advance(0)
    expect(seen).toEqual(["ADDED b", "DELETED a"])
  })

  test("a watch from a compacted revision gets an error that it has expired", async () => {
    const w = testCluster()
    await w.client.create(configMaps, configMap("a"))
    w.cluster.store.compact()
    const { seen, done } = follow(w, { resourceVersion: "1" })
    await done
    expect(seen).toEqual(["ERROR 410"])
  })

  test("a watch that asks for initial events gets them, then a bookmark that marks their end", async () => {
    const w = testCluster()
    await w.client.create(configMaps, configMap("a"))
    const { seen } = follow(w, { sendInitialEvents: true })
    await w.clock.advance(0)
    expect(seen).toEqual(["ADDED a", "BOOKMARK "])
    await w.clock.advance(60_000)
    expect(seen).toEqual(["ADDED a", "BOOKMARK ", "BOOKMARK "])
  })

  test("a client that asks for metadata alone gets nothing else, in a list and in a watch", async () => {
    const { client } = testCluster()
    await client.create(configMaps, configMap("a", { x: "1" }))
    const list = await client.list<Json>(configMaps, { namespace: "default", metadataOnly: true })
    expect(list.items.map(item => [item.kind, item.metadata.name, item.data])).toEqual([
      ["PartialObjectMetadata", "a", undefined],
    ])
    const options = { sendInitialEvents: true, metadataOnly: true, namespace: "default" }
    for await (const event of client.watch<Json>(configMaps, options, new AbortController().signal)) {
      expect(event.object).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "a" } })
      expect(event.object).not.toHaveProperty("data")
      break
    }
  })

  test("a watch ends at its timeout, with a last bookmark before it", async () => {
    const w = testCluster()
    const { seen, done } = follow(w, { timeoutSeconds: 5 })
    await w.clock.advance(2999)
    expect(seen).toEqual([])
    await w.clock.advance(2001)
    await done
    expect(seen).toEqual(["BOOKMARK "])
  })

  test("a watch with a selector sees a delete when an object stops matching, and an add when it starts", async () => {
    const w = testCluster()
    const { seen } = follow(w, { labelSelector: "tier=gold" })
    const labels = (tier: string) => ({ type: "merge", body: { metadata: { labels: { tier } } } }) as const
    await w.client.create(configMaps, configMap("a"))
    await w.client.patch(configMaps, { name: "a", namespace: "default" }, labels("gold"))
    await w.client.patch(configMaps, { name: "a", namespace: "default" }, labels("lead"))
    await w.clock.advance(0)
    expect(seen).toEqual(["ADDED a", "DELETED a"])
  })

  test("pages are pages of one snapshot", async () => {
    const { client } = testCluster()
    for (const name of ["a", "b", "c", "d"]) await client.create(configMaps, configMap(name))
    const first = await client.list(configMaps, { namespace: "default", limit: 2 })
    expect(first.metadata.remainingItemCount).toBe(2)
    await client.delete(configMaps, { name: "c", namespace: "default" })
    await client.create(configMaps, configMap("bb"))
    const second = await client.list(configMaps, {
      namespace: "default",
      limit: 2,
      continue: first.metadata.continue ?? "",
    })
    expect(second.items.map(item => item.metadata.name)).toEqual(["c", "d"])
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion)
    expect(second.metadata.continue).toBeUndefined()
  })

  test("a page that is requested too late is refused, with a token to continue with", async () => {
    const { client, send, cluster } = testCluster()
    for (const name of ["a", "b", "c"]) await client.create(configMaps, configMap(name))
    const first = await client.list(configMaps, { namespace: "default", limit: 1 })
    cluster.store.compact()
    await client.create(configMaps, configMap("d"))
    cluster.store.compact()
    const path = "/api/v1/namespaces/default/configmaps"
    const late = await send("GET", `${path}?limit=1&continue=${first.metadata.continue}`)
    expect(late).toMatchObject({ status: 410, body: { reason: "Expired" } })
    const rest = await send("GET", `${path}?continue=${late.body.metadata.continue}`)
    expect(rest.body.items.map((item: Json) => item.metadata.name)).toEqual(["b", "c", "d"])
  })

  test("deployments have a generation that moves with their spec alone", async () => {
    const { client } = testCluster()
    const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "web:1" }] } }
    const created = await client.create<Json>(deployments, {
      metadata: { name: "web", namespace: "default" },
      spec: { selector: { matchLabels: { app: "web" } }, template },
    })
    expect(created.metadata.generation).toBe(1)
    const labelled = await client.patch<Json>(deployments, created.metadata, {
      type: "merge",
      body: { metadata: { labels: { a: "b" } } },
    })
    expect(labelled.metadata.generation).toBe(1)
    const scaled = await client.patch<Json>(deployments, created.metadata, {
      type: "merge",
      body: { spec: { replicas: 3 } },
    })
    expect(scaled.metadata.generation).toBe(2)
    const reported = await client.patch<Json>(
      deployments,
      created.metadata,
      { type: "merge", body: { spec: { replicas: 9 }, status: { replicas: 3 } } },
      { subresource: "status" },
    )
    expect([reported.spec.replicas, reported.status.replicas, reported.metadata.generation]).toEqual([3, 3, 2])
  })

  test("a finalizer holds a deleted object, and the object is gone when the finalizer is removed", async () => {
    const { client } = testCluster()
    const held = { ...configMap("a"), metadata: { name: "a", namespace: "default", finalizers: ["example.com/hold"] } }
    await client.create(configMaps, held)
    await client.delete(configMaps, held.metadata)
    const waiting = await client.get(configMaps, held.metadata)
    expect(waiting.metadata.deletionTimestamp).toBe("2026-01-01T00:00:00Z")
    await client.patch(configMaps, held.metadata, { type: "merge", body: { metadata: { finalizers: null } } })
    await expect(client.get(configMaps, held.metadata)).rejects.toMatchObject({ kind: "NotFound" })
  })

  test("a namespace that is being deleted refuses new objects", async () => {
    const { client, send } = testCluster()
    await client.create(namespaces, { metadata: { name: "team" } })
    await client.delete(namespaces, { name: "team" })
    const { status, body } = await send("POST", "/api/v1/namespaces/team/configmaps", { metadata: { name: "a" } })
    expect(status).toBe(403)
    expect(body.message).toBe(
      'configmaps "a" is forbidden: unable to create new content in namespace team because it is being terminated',
    )
    expect((await client.get<Json>(namespaces, { name: "team" })).status.phase).toBe("Terminating")
  })

  test("the same seed gives the same cluster", async () => {
    const run = async () => {
      const { client } = testCluster()
      const made = await client.create(configMaps, { metadata: { name: "", generateName: "a-", namespace: "default" } })
      return made.metadata
    }
    expect(await run()).toEqual(await run())
  })

  test("history sees every committed write and no dry run", async () => {
    const seen: string[] = []
    const { client } = testCluster({
      history: ({ place, type, manager }) => seen.push(`${place} ${type} ${manager}`),
    })
    await client.create(configMaps, configMap("a"), { dryRun: true })
    await client.create(configMaps, configMap("a"), { fieldManager: "me" })
    await client.patch(configMaps, { name: "a", namespace: "default" }, { type: "merge", body: {} })
    expect(seen.filter(entry => !entry.endsWith("kube-apiserver"))).toEqual(["configmaps ADDED me"])
  })
})

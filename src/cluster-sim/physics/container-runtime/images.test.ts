import { describe, expect, test } from "vitest"
import { isRuntimeFailure, RuntimeError } from "#runtime/cri/index.ts"
import type { Json } from "../../object.ts"
import { type TestWorldOptions, testWorld } from "../node/test-world.ts"
import type { NodeRuntime } from "./index.ts"

const MB = 1_000_000

function world(options: TestWorldOptions = {}) {
  const made = testWorld(options)
  made.registries.setSpeed("ghcr.io", { bytesPerSecond: 10 * MB, latencyMs: 100 })
  const runtime = made.cluster.node("node-0")?.runtime as NodeRuntime
  return { ...made, runtime, client: runtime.connect() }
}

type World = ReturnType<typeof world>

/** A pull and, once it is over, its outcome and duration. */
function pull({ client, clock }: World, reference: string, more: Json = {}, signal?: AbortSignal) {
  const since = clock.now()
  const seen: { imageId?: string; error?: Json; afterMs?: number } = {}
  client.pullImage({ reference, ...more }, { signal }).then(
    ({ imageId }) => Object.assign(seen, { imageId, afterMs: clock.now() - since }),
    error => Object.assign(seen, { error, afterMs: clock.now() - since }),
  )
  return seen
}

const bytes = async ({ client }: World) => (await client.imageFsInfo())?.usedBytes

describe("a pull", () => {
  test("brings an image, by every name it has", async () => {
    const each = world()
    const digest = each.registries.push("ghcr.io/web:1", { sizeBytes: 20 * MB })
    const reference = "ghcr.io/web:1"
    const pulled = pull(each, reference)
    await each.advance("1s")
    expect(await each.client.imageStatus(reference)).toBeUndefined()
    expect(await each.client.pullProgress()).toEqual([
      { name: `layer-${digest}`, doneBytes: 9 * MB, totalBytes: 20 * MB },
    ])
    await each.advance("2s")
    expect(pulled.afterMs).toBe(2100)
    const image = {
      id: pulled.imageId,
      repoTags: [reference],
      repoDigests: [`ghcr.io/web@${digest}`],
      sizeBytes: 20 * MB,
    }
    for (const name of [reference, `ghcr.io/web@${digest}`, `ghcr.io/web:1@${digest}`, pulled.imageId as string])
      expect(await each.client.imageStatus(name)).toMatchObject(image)
    expect(await each.client.listImages()).toMatchObject([image])
    expect(await each.client.pullProgress()).toEqual([])
  })

  test("shares content with the kubelet's pull of the same image", async () => {
    const each = world()
    each.registries.push("ghcr.io/web:1", { sizeBytes: 100 * MB })
    each.create("pod", { containers: [{ name: "app", image: "ghcr.io/web:1" }] })
    await each.advance("5s")
    const pulled = pull(each, "ghcr.io/web:1")
    await each.advance("6s")
    expect(pulled.afterMs).toBeLessThan(5400) // the kubelet began five seconds earlier
    expect(pulled.imageId).toBeDefined()
    const again = pull(each, "ghcr.io/web:1")
    await each.advance("1s")
    expect(again.afterMs).toBe(100) // only the tag is asked for
  })

  test("whose caller is gone ends, unless another one waits for the same content", async () => {
    const each = world()
    each.registries.push("ghcr.io/web:1", { sizeBytes: 100 * MB })
    const [first, second] = [new AbortController(), new AbortController()]
    pull(each, "ghcr.io/web:1", {}, first.signal)
    await each.advance("2s")
    const pulled = pull(each, "ghcr.io/web:1", {}, second.signal)
    await each.advance("2s")
    first.abort()
    await each.advance("8s")
    expect(pulled.afterMs).toBe(8100)
    each.runtime.images.collect("ghcr.io/web:1")
    const third = new AbortController()
    const lost = pull(each, "ghcr.io/web:1", {}, third.signal)
    await each.advance("2s")
    third.abort()
    await each.advance("1m")
    expect(lost.error).toBeDefined()
    expect(await each.client.listImages()).toEqual([])
    expect(await each.client.pullProgress()).toEqual([])
  })

  test("of a missing tag is NotFound; other refusals are the runtime's words", async () => {
    const each = world({
      contents: [{ host: "ghcr.io", images: { web: { 2: { fault: { kind: "status", status: 503 } } } } }],
    })
    const [missing, faulty, broken] = ["ghcr.io/web:1", "ghcr.io/web:2", "Bad Name"].map(name => pull(each, name))
    await each.advance("1s")
    expect(missing?.error).toMatchObject({
      kind: "NotFound",
      said: expect.stringMatching(/^failed to pull.*not found$/),
    })
    expect(faulty?.error).toMatchObject({ kind: "Failed", said: expect.stringMatching(/503 Service Unavailable$/) })
    expect(broken?.error).toMatchObject({ kind: "Failed" })
  })

  test("from a registry with accounts needs one of them, as the kubelet's pulls do", async () => {
    const each = world({ contents: [{ host: "ghcr.io", accounts: { anna: "secret" } }] })
    const account = (host: string, password: string) => ({ credentials: { host, username: "anna", password } })
    const [none, wrong, elsewhere, right] = [
      pull(each, "ghcr.io/web:1"),
      pull(each, "ghcr.io/web:1", account("ghcr.io", "guess")),
      pull(each, "ghcr.io/web:1", account("quay.io", "secret")),
      pull(each, "ghcr.io/web:2", account("ghcr.io", "secret")),
    ]
    const config = { auths: { "ghcr.io": { username: "anna", password: "secret" } } }
    each.storage.create(each.kind("Secret"), {
      metadata: { name: "pull", namespace: "default" },
      type: "kubernetes.io/dockerconfigjson",
      data: { ".dockerconfigjson": Buffer.from(JSON.stringify(config)).toString("base64") },
    })
    const containers = [{ name: "app", image: "ghcr.io/web:3" }]
    each.create("without", { containers })
    each.create("with", { containers, imagePullSecrets: [{ name: "pull" }] })
    await each.advance("20s")
    for (const refused of [none, wrong, elsewhere])
      expect(refused?.error).toMatchObject({ kind: "Failed", said: expect.stringMatching(/401 Unauthorized$/) })
    expect(right?.imageId).toBeDefined()
    expect(each.pod("with")?.status.phase).toBe("Running")
    each.create("private", { containers: [{ name: "app", image: "ghcr.io/web:4" }] })
    await each.advance("20s")
    expect(each.pod("private")?.status.containerStatuses[0].state.waiting.message).toMatch(/401 Unauthorized/)
  })
})

describe("the disk", () => {
  test("a pull that does not fit fails, for the kubelet too, and leaves nothing", async () => {
    const each = world({ disk: { capacityBytes: 100 * MB, otherBytes: 50 * MB } })
    each.registries.push("ghcr.io/web:1", { sizeBytes: 60 * MB })
    const pulled = pull(each, "ghcr.io/web:1")
    each.create("pod", { containers: [{ name: "app", image: "ghcr.io/web:1" }] })
    await each.advance("8s")
    expect(pulled.error).toMatchObject({ kind: "Failed", said: expect.stringMatching(/no space left on device$/) })
    expect(each.pod("pod")?.status.containerStatuses[0].state.waiting.message).toMatch(/no space left on device/)
    expect(each.runtime.images.disk.statfs()).toEqual({ sizeBytes: 100 * MB, freeBytes: 50 * MB })
    each.runtime.images.disk.set({ otherBytes: 0 })
    const again = pull(each, "ghcr.io/web:1")
    await each.advance("20s")
    expect(again.imageId).toBeDefined()
    expect(each.runtime.images.disk.statfs().freeBytes).toBe(40 * MB)
  })

  test("what the runtime says of it lags by up to ten seconds", async () => {
    const each = world()
    await each.advance("1m1s")
    each.registries.push("ghcr.io/web:1", { sizeBytes: 10 * MB })
    pull(each, "ghcr.io/web:1")
    await each.advance("2s")
    expect(await each.client.imageStatus("ghcr.io/web:1")).toBeDefined()
    expect(await bytes(each)).toBe(0)
    await each.advance("6s")
    expect(await bytes(each)).toBe(0)
    await each.advance("1s")
    expect(await bytes(each)).toBe(10 * MB)
    each.runtime.images.collect("ghcr.io/web:1")
    expect(await bytes(each)).toBe(10 * MB)
    await each.advance("10s")
    expect(await bytes(each)).toBe(0)
  })

  test("images of one digest count once", async () => {
    const each = world()
    const digest = each.registries.push("ghcr.io/web:1", { sizeBytes: 10 * MB })
    each.registries.push("ghcr.io/web:2", { sizeBytes: 10 * MB, digest })
    for (const name of ["ghcr.io/web:1", "ghcr.io/web:2"]) pull(each, name)
    await each.advance("30s")
    expect(await bytes(each)).toBe(10 * MB)
    expect(await each.client.listImages()).toMatchObject([{ repoTags: ["ghcr.io/web:1", "ghcr.io/web:2"] }])
  })
})

describe("faults of the runtime", () => {
  test("a dead one answers nothing, its old socket is dead for good, and containers run on", async () => {
    const each = world()
    each.registries.push("ghcr.io/web:1", { ignoresTerm: true })
    each.registries.push("ghcr.io/big:1", { sizeBytes: 1000 * MB })
    each.create("pod", { containers: [{ name: "app", image: "ghcr.io/web:1" }] })
    await each.advance("10s")
    const id = each.pod("pod")?.status.containerStatuses[0].containerID.replace("containerd://", "")
    const stop = each.client.stopContainer(id, { graceSeconds: 3 }).catch(error => error)
    const pulled = pull(each, "ghcr.io/big:1")
    await each.advance("1s")
    const mounted = each.runtime.connectMounted()
    each.runtime.die()
    const lost = await stop
    expect(lost).toBeInstanceOf(RuntimeError)
    expect(isRuntimeFailure(lost, "Unavailable")).toBe(true)
    await each.advance("1m")
    expect(pulled.error).toMatchObject({ kind: "Unavailable" })
    await expect(each.runtime.connect().version()).rejects.toMatchObject({ kind: "SocketDead" })
    each.runtime.revive()
    await expect(mounted.version()).rejects.toMatchObject({ kind: "SocketDead" })
    expect(await each.client.version()).toMatchObject({ name: "containerd" })
    const fresh = each.runtime.connectMounted()
    expect(await fresh.version()).toMatchObject({ name: "containerd" })
    expect(await fresh.containerStatus(id)).toMatchObject({ state: "Running", attempt: 0 })
    await fresh.stopContainer(id, { graceSeconds: 0 })
    await each.advance("20s")
    expect(each.pod("pod")?.status.containerStatuses[0]).toMatchObject({ restartCount: 1, ready: true })
  })

  test("the kubelet finds what happened meanwhile, and goes on", async () => {
    const each = world()
    each.registries.push("ghcr.io/web:1", { exits: { afterMs: 20_000, exitCode: 2 } })
    each.create("pod", { containers: [{ name: "app", image: "ghcr.io/web:1" }] })
    await each.advance("10s")
    each.runtime.die()
    each.create("later", { containers: [{ name: "app", image: "ghcr.io/web:2" }] })
    await each.advance("1m")
    expect(each.pod("pod")?.status.containerStatuses[0].state.running).toBeDefined()
    expect(each.pod("later")?.status.phase).toBe("Pending")
    each.runtime.revive()
    await each.advance("10s")
    expect(each.pod("pod")?.status.containerStatuses[0]).toMatchObject({ restartCount: 1 })
    expect(each.pod("later")?.status.phase).toBe("Running")
  })

  test("one that hangs answers when it goes on; a caller's own limit comes first", async () => {
    const each = world()
    each.runtime.hang()
    const since = each.clock.now()
    const asked = each.client.version().catch(error => ({ ...error, afterMs: each.clock.now() - since }))
    const patient = each.client.version({ timeoutMs: 60_000 }).then(() => each.clock.now() - since)
    await each.advance("30s")
    expect(await asked).toMatchObject({ kind: "Unavailable", afterMs: 10_000 })
    each.runtime.revive()
    expect(await patient).toBe(30_000)
  })

  test("an image collected during its pull is not there when the pull is over", async () => {
    const each = world()
    const pulled = pull(each, "ghcr.io/web:1")
    await each.advance("1s")
    each.runtime.images.collect("ghcr.io/web:1")
    await each.advance("1m")
    expect(pulled.imageId).toBeDefined()
    expect(await each.client.imageStatus("ghcr.io/web:1")).toBeUndefined()
    const again = pull(each, "ghcr.io/web:1")
    await each.advance("1m")
    expect(await each.client.imageStatus("ghcr.io/web:1")).toMatchObject({ id: again.imageId })
  })

  test("every call can be listened to", async () => {
    const each = world()
    const calls: Json[] = []
    const stop = each.runtime.onCall(call => calls.push(call))
    await each.client.stopContainer("abc", { graceSeconds: 4 })
    await each.client.imageStatus("web:1")
    stop()
    await each.client.version()
    expect(calls).toEqual([
      { method: "stopContainer", id: "abc", graceSeconds: 4 },
      { method: "imageStatus", reference: "web:1" },
    ])
  })
})

import { afterEach, describe, expect, test } from "vitest"
import { virtualClock } from "../clock.ts"
import { type ContainerRuntime, connectRuntime, isRuntimeFailure, type RuntimeError } from "./index.ts"
import { type Answer, refuse, serveRuntime, succeed } from "./test-runtime-server.ts"

const open: { close(): void | Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

async function world(answers: Parameters<typeof serveRuntime>[0]) {
  const server = await serveRuntime(answers)
  const clock = virtualClock()
  const runtime = connectRuntime({ socketPath: server.socketPath, clock })
  open.push(server, runtime)
  return { server, runtime, clock }
}

const trouble = (work: Promise<unknown>): Promise<RuntimeError> =>
  work.then(
    () => expect.fail("it succeeded"),
    error => error,
  )

const version: Answer = () => ({ runtimeName: "containerd", runtimeVersion: "v2.3.5" })

describe("answers become values", () => {
  test("a container of containerd 1.6, which has no image_id yet", async () => {
    const { runtime } = await world({
      ListContainers: () => ({
        containers: [
          {
            ...{ id: "c1", podSandboxId: "s1", metadata: { name: "web", attempt: 3 }, imageRef: "sha256:1" },
            ...{ state: 2, createdAt: 1_700_000_000_123_456_789n, labels: { a: "b" }, annotations: {} },
          },
        ],
      }),
    })
    expect(await runtime.listContainers()).toEqual([
      {
        ...{ id: "c1", podSandboxId: "s1", name: "web", attempt: 3, state: "Exited", createdAt: 1_700_000_000_123 },
        ...{ imageId: "sha256:1", labels: { a: "b" }, annotations: {} },
      },
    ])
  })

  test("an end is there only once the container has ended", async () => {
    const times = { createdAt: 1_000_000n, startedAt: 2_000_000n }
    const states = { running: 1, dead: 2 } as Record<string, number>
    const { runtime } = await world({
      ContainerStatus: ({ containerId }) => ({
        status: { id: containerId, state: states[containerId as string], ...times, finishedAt: 3_000_000n },
      }),
    })
    expect(await runtime.containerStatus("running")).not.toHaveProperty("exitCode")
    expect(await runtime.containerStatus("dead")).toMatchObject({ exitCode: 0, startedAt: 2, finishedAt: 3 })
  })

  test("a sandbox's addresses, the primary one first", async () => {
    const { runtime } = await world({
      PodSandboxStatus: () => ({ status: { network: { ip: "10.0.0.1", additionalIps: [{ ip: "fd00::1" }] } } }),
    })
    expect((await runtime.podSandboxStatus("s1"))?.addresses).toEqual(["10.0.0.1", "fd00::1"])
  })

  test("the output of a command is cut", async () => {
    const { runtime } = await world({ ExecSync: () => ({ exitCode: 1, stderr: Buffer.alloc(9_000, "x") }) })
    const exec = { command: ["sh"], timeoutSeconds: 1 }
    expect(await runtime.execSync("c1", exec)).toEqual({ exitCode: 1, output: "x".repeat(1000) })
  })

  test("what the runtime does not know is undefined", async () => {
    const notFound: Answer = (_, stream) => refuse(stream, 5, "not found")
    const { runtime } = await world({
      ...{ ContainerStatus: notFound, PodSandboxStatus: notFound, StopContainer: notFound, ImageStatus: () => ({}) },
    })
    expect(await runtime.containerStatus("c1")).toBeUndefined()
    expect(await runtime.podSandboxStatus("s1")).toBeUndefined()
    expect(await runtime.imageStatus("web:1")).toBeUndefined()
    await runtime.stopContainer("c1", { graceSeconds: 5 })
  })

  test("a runtime that is not containerd reports no progress", async () => {
    const { runtime } = await world({})
    expect(await runtime.pullProgress()).toBeUndefined()
  })

  test("progress is asked for in the namespace of Kubernetes", async () => {
    const { runtime } = await world({
      ListStatuses: (_, __, headers) => ({
        statuses: [{ ref: String(headers["containerd-namespace"]), offset: 3n, total: 9n }],
      }),
    })
    expect(await runtime.pullProgress()).toEqual([{ name: "k8s.io", doneBytes: 3, totalBytes: 9 }])
  })

  test("labels and annotations of a sandbox go with the pull; without any, an empty one is sent", async () => {
    const asked: unknown[] = []
    const { runtime } = await world({
      PullImage: ({ sandboxConfig }) => {
        asked.push(sandboxConfig)
        return { imageRef: "sha256:1" }
      },
    })
    await runtime.pullImage({ reference: "web:1", sandboxConfig: { labels: { a: "b" }, annotations: { c: "d" } } })
    await runtime.pullImage({ reference: "web:1", sandboxConfig: { annotations: { c: "d" } } })
    await runtime.pullImage({ reference: "web:1" })
    expect(asked).toEqual([
      { labels: { a: "b" }, annotations: { c: "d" } },
      { labels: {}, annotations: { c: "d" } },
      { labels: {}, annotations: {} },
    ])
  })

  test("credentials are for one host, which containerd reads from a URL", async () => {
    const asked: unknown[] = []
    const { runtime } = await world({
      PullImage: ({ auth }) => {
        asked.push(auth)
        return { imageRef: "sha256:1" }
      },
    })
    const user = { username: "u", password: "p" }
    await runtime.pullImage({ reference: "127.0.0.1:5000/web:1", credentials: { host: "127.0.0.1:5000", ...user } })
    await runtime.pullImage({ reference: "web:1", credentials: { host: "docker.io", identityToken: "t" } })
    await runtime.pullImage({ reference: "web:1" })
    expect(asked).toEqual([
      { serverAddress: "https://127.0.0.1:5000", ...user, identityToken: "" },
      { serverAddress: "https://registry-1.docker.io", username: "", password: "", identityToken: "t" },
      undefined,
    ])
  })
})

describe("trouble is one of five kinds", () => {
  const cases: Record<string, { code: number; call: (runtime: ContainerRuntime) => Promise<unknown>; kind: string }> = {
    "a missing tag": { code: 5, call: runtime => runtime.pullImage({ reference: "web:9" }), kind: "NotFound" },
    "a registry that does not answer": {
      ...{ code: 4, call: runtime => runtime.pullImage({ reference: "web:9" }), kind: "Failed" },
    },
    "a registry that is down": {
      ...{ code: 14, call: runtime => runtime.pullImage({ reference: "web:9" }), kind: "Failed" },
    },
    "a runtime that starts": { code: 14, call: runtime => runtime.listImages(), kind: "Unavailable" },
    "a refusal": { code: 2, call: runtime => runtime.listImages(), kind: "Failed" },
    "a command over its time-out": {
      ...{ code: 4, kind: "DeadlineExceeded" },
      call: runtime => runtime.execSync("c1", { command: ["sleep", "9"], timeoutSeconds: 1 }),
    },
  }
  for (const [name, { code, call, kind }] of Object.entries(cases))
    test(`${name}: ${kind}`, async () => {
      const answer: Answer = (_, stream) => refuse(stream, code, "50% of ünits")
      const { runtime } = await world({ PullImage: answer, ListImages: answer, ExecSync: answer })
      expect(await trouble(call(runtime))).toMatchObject({ kind, said: "50% of ünits" })
    })

  test("nothing has ever listened: SocketDead", async () => {
    const runtime = connectRuntime({ socketPath: "/nowhere/cri.sock" })
    const error = await trouble(runtime.version())
    expect(isRuntimeFailure(error, "SocketDead")).toBe(true)
    expect(isRuntimeFailure(error, "Unavailable", "Failed")).toBe(false)
  })

  test("the runtime dies during a call: Unavailable; and while it is dead: SocketDead", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const { runtime, server } = await world({ Version: version, ListImages: () => resolve() })
    const lost = trouble(runtime.listImages())
    await asked
    await server.kill()
    expect(await lost).toMatchObject({ kind: "Unavailable" })
    expect(await trouble(runtime.version())).toMatchObject({ kind: "SocketDead" })
    await server.start()
    expect(await runtime.version()).toEqual({ name: "containerd", version: "v2.3.5" })
  })

  test("no answer in time: Unavailable, and the runtime sees that the caller is gone", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const { promise: gone, resolve: onGone } = Promise.withResolvers<void>()
    const { runtime, clock } = await world({
      StopContainer: (_, stream) => {
        stream.once("aborted", onGone)
        stream.once("close", onGone)
        resolve()
      },
      Version: version,
    })
    const stop = trouble(runtime.stopContainer("c1", { graceSeconds: 20 }))
    await asked
    await clock.advance(29_000)
    expect(await Promise.race([stop, "waits"])).toBe("waits")
    await clock.advance(1_000)
    expect(await stop).toMatchObject({ kind: "Unavailable", said: "no answer within 30 s" })
    await gone
    expect((await runtime.version()).name).toBe("containerd")
  })

  test("a pull waits as long as it takes", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<Parameters<Answer>[1]>()
    const { runtime, clock } = await world({ PullImage: (_, stream) => resolve(stream) })
    const pull = runtime.pullImage({ reference: "web:1" }, { timeoutMs: undefined })
    const stream = await asked
    await clock.advance(3_600_000)
    succeed(stream, Buffer.from([0x0a, 1, 0x61]))
    expect(await pull).toEqual({ imageId: "a" })
  })

  test("an aborted call rejects with the signal's reason", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const { runtime } = await world({ ListImages: () => resolve() })
    const abort = new AbortController()
    const call = trouble(runtime.listImages({ signal: abort.signal }))
    await asked
    abort.abort(new Error("enough"))
    expect((await call).message).toBe("enough")
    expect((await trouble(runtime.listImages({ signal: abort.signal }))).message).toBe("enough")
  })

  test("a stream that ends without a status: Unavailable", async () => {
    const { runtime } = await world({
      ListImages: (_, stream) => {
        stream.respond({ ":status": 200 })
        stream.end()
      },
    })
    expect(await trouble(runtime.listImages())).toMatchObject({ kind: "Unavailable" })
  })

  test("an answer that is no message of the method: Failed", async () => {
    const { runtime } = await world({ ListImages: (_, stream) => succeed(stream, Buffer.from([0x0a, 9, 1])) })
    expect(await trouble(runtime.listImages())).toMatchObject({ kind: "Failed" })
  })

  test("a closed client ends its calls and makes no more", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const { runtime } = await world({ Version: version, ListImages: () => resolve() })
    const lost = trouble(runtime.listImages())
    await asked
    runtime.close()
    expect(await lost).toMatchObject({ kind: "Unavailable" })
    expect(await trouble(runtime.version())).toMatchObject({ kind: "Unavailable" })
  })

  test("an answer that is too long is refused before it is held", async () => {
    const { runtime } = await world({
      ListImages: (_, stream) => {
        stream.respond({ ":status": 200 })
        const send = () => {
          while (!stream.destroyed && stream.write(Buffer.alloc(1 << 16))) {}
          if (!stream.destroyed) stream.once("drain", send)
        }
        send()
      },
    })
    expect(await trouble(runtime.listImages())).toMatchObject({ kind: "Failed" })
  })
})

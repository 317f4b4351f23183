import type {
  CallOptions,
  ContainerRuntime,
  ContainerState,
  Image,
  PodSandbox,
  Container as RuntimeContainer,
} from "#runtime/cri/container-runtime.ts"
import { RuntimeError } from "#runtime/cri/errors.ts"
import { parseImage } from "../node/image-reference.ts"
import type { Timers } from "../timers.ts"
import type { Container } from "./container.ts"
import { type PodOnNode, sandboxId } from "./containers.ts"
import type { StoredImage } from "./images.ts"
import { annotationsOf, labelsOf } from "./labels.ts"
import type { Call, NodeRuntime } from "./node-runtime.ts"

export type CriOptions = {
  timers: Timers
  heard: (call: Call) => void
  /** Through the file that is the socket now, which is dead once the runtime has died; otherwise through its path. */
  isMounted: boolean
}

const ordinaryTimeoutMs = 10_000
const notFoundPrefix = "rpc error: code = NotFound desc = "
const overlay = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"

type Settle<T> = { resolve: (value: T) => void; reject: (error: unknown) => void }

/** Begins the work of a call; the returned function is called when the caller is gone. */
type Work<T> = (settle: Settle<T>) => (() => void) | undefined

/** A client of one node's runtime. */
export function connectTo(runtime: NodeRuntime, { timers, heard, isMounted }: CriOptions): ContainerRuntime {
  const { containers, images } = runtime
  const { life } = runtime
  const pending = new Set<(error: unknown) => void>()
  const stopListening = runtime.onLife(() => {
    if (!runtime.isDead) return
    for (const fail of [...pending]) fail("error reading from server: EOF")
  })
  let isClosed = false

  /** `limitMs` undefined: as long as it takes. */
  function call<T>(doing: string, of: Call, { signal }: CallOptions, limitMs: number | undefined, work: Work<T>) {
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      if (isClosed) return reject(new RuntimeError("Unavailable", doing, { said: "the connection is closed" }))
      if (runtime.isDead || (isMounted && runtime.life !== life))
        return reject(new RuntimeError("SocketDead", doing, { said: "connect ECONNREFUSED" }))
      let leave: (() => void) | undefined
      let isOver = false
      const over = () => {
        if (isOver) return false
        isOver = true
        cancelTimer?.()
        pending.delete(fail)
        signal?.removeEventListener("abort", onAbort)
        return true
      }
      const abandon = (error: unknown) => {
        if (!over()) return
        leave?.()
        reject(error)
      }
      const onAbort = () => abandon(signal?.reason)
      const fail = (said: unknown) => abandon(new RuntimeError("Unavailable", doing, { said: String(said) }))
      const cancelTimer =
        limitMs === undefined ? undefined : timers.after(limitMs, () => fail(`no answer within ${limitMs} ms`))
      signal?.addEventListener("abort", onAbort, { once: true })
      pending.add(fail)
      heard(of)
      runtime.whenRunning(() => {
        if (isOver) return
        leave = work({
          resolve: value => runtime.whenRunning(() => over() && resolve(value)),
          reject: error => runtime.whenRunning(() => over() && reject(error)),
        })
      })
    })
  }

  const ask = <T>(doing: string, of: Call, options: CallOptions = {}, answer: () => T): Promise<T> =>
    call<T>(doing, of, options, options.timeoutMs ?? ordinaryTimeoutMs, ({ resolve }) => {
      resolve(answer())
      return undefined
    })

  return {
    version: options => ask("asking for the version", { method: "version" }, options, () => runtime.version),
    listContainers: ({ id, podSandboxId, labels = {} } = {}, options) =>
      ask("listing containers", { method: "listContainers" }, options, () =>
        [...containers.all()]
          .filter(each => id === undefined || each.id === id)
          .map(each => described(runtime, each))
          .filter(each => podSandboxId === undefined || each.podSandboxId === podSandboxId)
          .filter(each => Object.entries(labels).every(([key, value]) => each.labels[key] === value)),
      ),
    containerStatus: (id, options) =>
      ask(`asking for container ${id}`, { method: "containerStatus", id }, options, () => {
        const found = containers.find(id)
        return found && statusOf(runtime, found)
      }),
    stopContainer(id, { graceSeconds }, options = {}) {
      const limitMs = 1000 * graceSeconds + (options.timeoutMs ?? ordinaryTimeoutMs)
      const of: Call = { method: "stopContainer", id, graceSeconds }
      return call<void>(`stopping container ${id}`, of, options, limitMs, ({ resolve }) => {
        const found = containers.find(id)
        if (!found) return void resolve()
        return containers.stop(found, 1000 * graceSeconds, resolve)
      })
    },
    execSync(id, { command, timeoutSeconds }, options = {}) {
      const limitMs = 1000 * timeoutSeconds + (options.timeoutMs ?? ordinaryTimeoutMs)
      const doing = `running a command in container ${id}`
      const of: Call = { method: "execSync", id, command, timeoutSeconds }
      return call(doing, of, options, limitMs, ({ resolve, reject }) => {
        const found = containers.find(id)
        const refuse = (kind: "NotFound" | "Failed" | "DeadlineExceeded", said: string) =>
          void reject(new RuntimeError(kind, doing, { said }))
        if (!found) return refuse("NotFound", `an error occurred when try to find container "${id}": not found`)
        if (found.state !== "running")
          return refuse("Failed", `container is in CONTAINER_${found.state.toUpperCase()} state`)
        const { exec = {} } = found.behaviour
        const run = typeof exec === "function" ? exec(command) : exec
        if (!run) return refuse("Failed", `failed to exec in container: failed to start exec: ${command[0]}: not found`)
        const { takesMs = 0, exitCode = 0, output = "" } = run
        if (timeoutSeconds > 0 && takesMs > 1000 * timeoutSeconds)
          return timers.after(1000 * timeoutSeconds, () =>
            refuse(
              "DeadlineExceeded",
              `failed to exec in container: timeout ${timeoutSeconds}s exceeded: context deadline exceeded`,
            ),
          )
        return timers.after(takesMs, () => resolve({ exitCode, output }))
      })
    },
    podSandboxStatus: (id, options) =>
      ask(`asking for sandbox ${id}`, { method: "podSandboxStatus", id }, options, () => {
        const pod = [...containers.pods()].find(each => sandboxIdOf(each) === id)
        return pod && sandboxStatusOf(pod, id)
      }),
    listImages: options =>
      ask("listing images", { method: "listImages" }, options, () => [...images.all()].map(describedImage)),
    imageStatus: (reference, options) =>
      ask(`asking for image ${reference}`, { method: "imageStatus", reference }, options, () => {
        const found = images.lookUp(reference)
        return found && describedImage(found)
      }),
    pullImage({ reference, credentials, sandboxConfig }, options = {}) {
      const doing = `pulling ${reference}`
      const of: Call = { method: "pullImage", reference, ...(sandboxConfig && { sandboxConfig }) }
      return call(doing, of, options, options.timeoutMs, ({ resolve, reject }) => {
        const parsed = parseImage(reference)
        const refuse = (message: string) => void reject(refusal(doing, message))
        if ("invalid" in parsed) return refuse(`failed to parse image reference "${reference}": ${parsed.invalid}`)
        return images.pull(
          parsed,
          () => (credentials ? [credentials] : []),
          outcome => ("image" in outcome ? resolve({ imageId: outcome.id }) : refuse(outcome.message)),
        )
      })
    },
    imageFsInfo: options =>
      ask("asking for the image filesystem", { method: "imageFsInfo" }, options, () => ({
        mountpoint: overlay,
        usedBytes: images.countedBytes(),
      })),
    pullProgress: options =>
      ask("asking for pulls under way", { method: "pullProgress" }, options, () =>
        images
          .progress()
          .map(({ digest, doneBytes, totalBytes }) => ({ name: `layer-${digest}`, doneBytes, totalBytes })),
      ),
    close() {
      isClosed = true
      stopListening()
      for (const fail of [...pending]) fail("the connection is closed")
    },
  }
}

function refusal(doing: string, message: string): RuntimeError {
  const isMissing = message.startsWith(notFoundPrefix)
  const said = message.replace(/^rpc error: code = \w+ desc = /, "")
  return new RuntimeError(isMissing ? "NotFound" : "Failed", doing, { said })
}

const states: Record<Container["state"], ContainerState> = { created: "Created", running: "Running", exited: "Exited" }

const sandboxIdOf = ({ identity, sandbox }: PodOnNode) => sandboxId(identity.uid, sandbox?.attempt ?? 0)

const idOfImage = ({ images }: NodeRuntime, { imageId }: Container) =>
  images.ofDigest(imageId.slice(imageId.indexOf("@") + 1))?.id ?? imageId

function described(runtime: NodeRuntime, container: Container): RuntimeContainer {
  const pod = runtime.containers.pod(container.source.pod.uid)
  return {
    id: container.id,
    podSandboxId: pod ? sandboxIdOf(pod) : "",
    name: container.name,
    attempt: container.restartCount,
    state: states[container.state],
    createdAt: container.createdAt,
    imageId: idOfImage(runtime, container),
    labels: labelsOf(container),
    annotations: annotationsOf(container),
  }
}

function statusOf(runtime: NodeRuntime, container: Container) {
  const { podSandboxId: _, imageId: __, ...rest } = described(runtime, container)
  const { state, startedAt, finishedAt, exitCode, reason } = container
  return {
    ...rest,
    ...(state !== "created" && { startedAt }),
    ...(state === "exited" && { finishedAt: finishedAt ?? startedAt, exitCode: exitCode ?? 0 }),
    reason: state === "exited" ? (reason ?? "") : "",
    message: "",
    image: container.imageName,
    imageRef: container.imageId,
  }
}

function sandboxStatusOf({ identity, sandbox }: PodOnNode, id: string): PodSandbox | undefined {
  if (!sandbox) return undefined
  const { isReady, ip, isOnHostNetwork } = sandbox
  return { id, ...identity, isReady, addresses: isReady && ip && !isOnHostNetwork ? [ip] : [] }
}

const describedImage = ({ id, tags, repoDigests, sizeBytes }: StoredImage): Image => ({
  id,
  repoTags: [...tags],
  repoDigests: [...repoDigests],
  sizeBytes,
  isPinned: false,
})

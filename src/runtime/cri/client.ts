import type { Instant } from "#lib/instant.ts"
import { decodeMessage, encodeMessage } from "#lib/protobuf.ts"
import { type Clock, systemClock } from "../clock.ts"
import type {
  CallOptions,
  Container,
  ContainerFilter,
  ContainerRuntime,
  ContainerState,
  ContainerStatus,
  Image,
  PodSandbox,
  PullCredentials,
} from "./container-runtime.ts"
import { isRuntimeFailure, RuntimeError } from "./errors.ts"
import { type GrpcCall, openChannel } from "./grpc.ts"
import { containerStates, type Messages, methods, podSandboxStates, table } from "./messages.generated.ts"

const defaultTimeoutMs = 10_000
/** Enough of a command's output for a message. */
const maxOutput = 1_000
/** gRPC's code for a method that a runtime does not have. */
const unimplemented = 12

type Methods = typeof methods
type Request<M extends keyof Methods> = DeepPartial<Messages[Methods[M]["request"]]>
type Response<M extends keyof Methods> = Messages[Methods[M]["response"]]
type DeepPartial<T> = T extends bigint | Buffer | string | unknown[]
  ? T
  : { [K in keyof T]?: DeepPartial<T[K]> | undefined }

/** Speaks CRI v1 over the runtime's unix socket (containerd 1.6 and newer). Connects with the first call. */
export function connectRuntime(options: { socketPath: string; clock?: Clock }): ContainerRuntime {
  const channel = openChannel({ clock: systemClock, ...options })

  const call = async <M extends keyof Methods>(
    method: M,
    request: Request<M>,
    rest: Pick<GrpcCall, "doing" | "headers" | "meaning"> & { options?: CallOptions | undefined; extraMs?: number },
  ): Promise<Response<M>> => {
    const { path, request: asked, response } = methods[method]
    const { options: { signal, timeoutMs = defaultTimeoutMs } = {}, extraMs = 0, ...how } = rest
    const message = encodeMessage(table, asked, request)
    const answer = await channel.call({ path, message, signal, timeoutMs: timeoutMs + extraMs, ...how })
    try {
      return decodeMessage(table, response, answer) as Response<M>
    } catch (cause) {
      throw new RuntimeError("Failed", how.doing, { said: `the answer is no ${response}: ${cause}`, cause })
    }
  }

  return {
    async version(options) {
      const { runtimeName: name, runtimeVersion: version } = await call("Version", {}, { doing: "version", options })
      return { name, version }
    },

    async listContainers(filter, options) {
      const request = filter ? { filter: filterOf(filter) } : {}
      const { containers } = await call("ListContainers", request, { doing: "listing containers", options })
      return containers.map(containerOf)
    },

    async containerStatus(containerId, options) {
      const doing = `status of container ${containerId}`
      const answer = call("ContainerStatus", { containerId }, { doing, options })
      const status = (await answer.catch(unlessNotFound))?.status
      return status && statusOf(status)
    },

    async stopContainer(containerId, { graceSeconds }, options) {
      const doing = `stopping container ${containerId}`
      const request = { containerId, timeout: BigInt(graceSeconds) }
      // containerd 1.6 does not find an unknown ID, 2.3 takes it for stopped.
      await call("StopContainer", request, { doing, options, extraMs: graceSeconds * 1000 }).catch(unlessNotFound)
    },

    async execSync(containerId, { command, timeoutSeconds }, options) {
      const doing = `running a command in container ${containerId}`
      const request = { containerId, cmd: command, timeout: BigInt(timeoutSeconds) }
      const ended = await call("ExecSync", request, { doing, options, extraMs: timeoutSeconds * 1000 })
      const output = `${ended.stdout.subarray(0, maxOutput)}${ended.stderr.subarray(0, maxOutput)}`
      return { exitCode: ended.exitCode, output: output.slice(0, maxOutput) }
    },

    async podSandboxStatus(podSandboxId, options) {
      const doing = `status of pod sandbox ${podSandboxId}`
      const answer = call("PodSandboxStatus", { podSandboxId }, { doing, options })
      const status = (await answer.catch(unlessNotFound))?.status
      return status && sandboxOf(status)
    },

    async listImages(options) {
      const { images } = await call("ListImages", {}, { doing: "listing images", options })
      return images.map(imageOf)
    },

    async imageStatus(reference, options) {
      const request = { image: { image: reference } }
      const { image } = await call("ImageStatus", request, { doing: `status of image ${reference}`, options })
      return image && imageOf(image)
    },

    async pullImage({ reference, credentials, sandboxConfig }, options) {
      const { labels = {}, annotations = {} } = sandboxConfig ?? {}
      const request = {
        image: { image: reference },
        auth: credentials && authOf(credentials),
        // Sent even where it is empty: some runtimes read it without a check.
        sandboxConfig: { labels, annotations },
      }
      const { imageRef } = await call("PullImage", request, {
        doing: `pulling ${reference}`,
        options: { ...options, timeoutMs: options?.timeoutMs ?? Number.POSITIVE_INFINITY },
        // A time-out or an outage in the message is the registry's: the runtime has answered.
        meaning: code => (code === 5 ? "NotFound" : "Failed"),
      })
      return { imageId: imageRef }
    },

    async imageFsInfo(options) {
      const { imageFilesystems } = await call("ImageFsInfo", {}, { doing: "image file system", options })
      const [first] = imageFilesystems
      return first && { mountpoint: first.fsId?.mountpoint ?? "", usedBytes: Number(first.usedBytes?.value ?? 0n) }
    },

    async pullProgress(options) {
      let isThere = true
      const meaning = (code: number) => {
        isThere = code !== unimplemented
        return "Failed" as const
      }
      // containerd keeps what belongs to Kubernetes under this name.
      const headers = { "containerd-namespace": "k8s.io" }
      const answer = call("ListStatuses", {}, { doing: "progress of pulls", headers, meaning, options })
      const { statuses } = await answer.catch(error => {
        if (isThere) throw error
        return { statuses: undefined }
      })
      return statuses?.map(({ ref, offset, total }) => ({
        name: ref,
        doneBytes: Number(offset),
        totalBytes: Number(total),
      }))
    },

    close: () => channel.close(),
  }
}

function unlessNotFound(error: unknown): undefined {
  if (!isRuntimeFailure(error, "NotFound")) throw error
}

const filterOf = ({ id, podSandboxId, labels }: ContainerFilter) => ({ id, podSandboxId, labelSelector: labels })

const states: Record<(typeof containerStates)[number], ContainerState> = {
  CONTAINER_CREATED: "Created",
  CONTAINER_RUNNING: "Running",
  CONTAINER_EXITED: "Exited",
  CONTAINER_UNKNOWN: "Unknown",
}

const stateOf = (state: number): ContainerState => states[containerStates[state] ?? "CONTAINER_UNKNOWN"]

function containerOf(container: Messages["Container"]): Container {
  const { id, podSandboxId, metadata, state, createdAt, imageId, imageRef, labels, annotations } = container
  return {
    id,
    podSandboxId,
    name: metadata?.name ?? "",
    attempt: metadata?.attempt ?? 0,
    state: stateOf(state),
    createdAt: instantOf(createdAt),
    // containerd 1.6 has no image_id yet. In its list image_ref is the ID.
    imageId: imageId || imageRef,
    labels,
    annotations,
  }
}

function statusOf(status: Messages["ContainerStatus"]): ContainerStatus {
  const { id, metadata, image, imageRef, createdAt, startedAt, finishedAt, exitCode, reason, message } = status
  const state = stateOf(status.state)
  return {
    id,
    name: metadata?.name ?? "",
    attempt: metadata?.attempt ?? 0,
    state,
    createdAt: instantOf(createdAt),
    ...(startedAt > 0n && { startedAt: instantOf(startedAt) }),
    ...(state === "Exited" && { finishedAt: instantOf(finishedAt), exitCode }),
    reason,
    message,
    image: image?.image ?? "",
    imageRef,
    labels: status.labels,
    annotations: status.annotations,
  }
}

/** CRI counts nanoseconds. */
const instantOf = (nanoseconds: bigint): Instant => Number(nanoseconds / 1_000_000n)

function sandboxOf({ id, metadata, state, network }: Messages["PodSandboxStatus"]): PodSandbox {
  const addresses = network ? [network.ip, ...network.additionalIps.map(({ ip }) => ip)] : []
  return {
    id,
    name: metadata?.name ?? "",
    namespace: metadata?.namespace ?? "",
    uid: metadata?.uid ?? "",
    isReady: podSandboxStates[state] === "SANDBOX_READY",
    addresses: addresses.filter(address => address !== ""),
  }
}

const imageOf = ({ id, repoTags, repoDigests, size, pinned }: Messages["Image"]): Image => ({
  id,
  repoTags,
  repoDigests,
  sizeBytes: Number(size),
  isPinned: pinned,
})

/**
 * With an address, containerd gives the credentials to that host only. It compares the host of the URL with the one it
 * connects to, and an address that is no URL matches none.
 */
const authOf = ({ host, ...secret }: PullCredentials) => ({
  serverAddress: `https://${host === "docker.io" ? "registry-1.docker.io" : host}`,
  ...secret,
})

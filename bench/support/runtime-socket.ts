import { type ContainerRuntime, type ContainerStatus, isRuntimeFailure } from "#runtime/cri/index.ts"
import { containerStates, type Messages } from "#runtime/cri/messages.generated.ts"
import { type Answer, refuse, serveRuntime } from "#runtime/cri/test-runtime-server.ts"

const nanoseconds = (ms = 0) => BigInt(Math.round(ms)) * 1_000_000n

/**
 * A simulated container runtime behind a unix socket, for an agent that is a process of its own: what an agent asks for
 * in these benchmarks, and nothing else.
 */
export const serveSimulated = (runtime: ContainerRuntime) =>
  serveRuntime({
    Version: answering(async () => {
      const { name, version } = await runtime.version()
      return { runtimeName: name, runtimeVersion: version }
    }),
    ContainerStatus: answering<"ContainerStatusRequest">(async ({ containerId }) => {
      const status = await runtime.containerStatus(containerId)
      return status && { status: statusMessage(status) }
    }),
    StopContainer: answering<"StopContainerRequest">(async ({ containerId, timeout }) => {
      await runtime.stopContainer(containerId, { graceSeconds: Number(timeout) })
      return {}
    }),
    ImageStatus: answering<"ImageStatusRequest">(async ({ image }) => {
      const found = await runtime.imageStatus(image?.image ?? "")
      if (!found) return {}
      const { id, repoTags, repoDigests, sizeBytes, isPinned } = found
      return { image: { id, repoTags, repoDigests, size: BigInt(sizeBytes), pinned: isPinned } }
    }),
    PullImage: answering<"PullImageRequest">(async ({ image }) => {
      const { imageId } = await runtime.pullImage({ reference: image?.image ?? "" })
      return { imageRef: imageId }
    }),
    ListStatuses: answering(async () => {
      const transfers = (await runtime.pullProgress()) ?? []
      return {
        statuses: transfers.map(({ name, doneBytes, totalBytes }) => ({
          ref: name,
          offset: BigInt(doneBytes),
          total: BigInt(totalBytes),
        })),
      }
    }),
  })

/** Nothing found is gRPC's NOT_FOUND (5), every other refusal UNKNOWN (2). */
const answering =
  <Asked extends keyof Messages>(answer: (request: Messages[Asked]) => Promise<object | undefined>): Answer =>
  async (request, stream) => {
    try {
      const message = await answer(request as Messages[Asked])
      if (message) return message
      refuse(stream, 5, "not found")
    } catch (error) {
      refuse(stream, isRuntimeFailure(error, "NotFound") ? 5 : 2, String(error))
    }
    return undefined
  }

function statusMessage(status: ContainerStatus): Partial<Messages["ContainerStatus"]> {
  const { id, name, attempt, state, createdAt, startedAt, finishedAt, exitCode = 0 } = status
  const { reason, message, image, imageRef, labels, annotations } = status
  return {
    id,
    metadata: { name, attempt },
    state: containerStates.indexOf(`CONTAINER_${state.toUpperCase()}` as (typeof containerStates)[number]),
    createdAt: nanoseconds(createdAt),
    startedAt: nanoseconds(startedAt),
    finishedAt: nanoseconds(finishedAt),
    exitCode,
    image: { image },
    imageRef,
    reason,
    message,
    labels,
    annotations,
  }
}

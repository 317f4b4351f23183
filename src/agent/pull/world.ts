import { statfs } from "node:fs/promises"
import type { Disk } from "#core/pulls/disk.ts"
import { makeSealKey, type SealKey } from "#lib/seal.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { ContainerRuntime } from "#runtime/cri/index.ts"
import { Book } from "./book.ts"
import { Flights } from "./flights.ts"
import { createPullMetrics, type PullMetrics } from "./metrics.ts"

export type PullLimits = {
  /** Pulls under way on the node at once. */
  pullsPerNode: number
  /** The kubelet's imageGCHighThresholdPercent: no pull may fill the disk over it. */
  imageGcHighThresholdPercent: number
}

export const usualPullLimits: PullLimits = { pullsPerNode: 2, imageGcHighThresholdPercent: 85 }

export type PullNode = {
  name: string
  runtime: ContainerRuntime
  /** The file system of the images. Default: that of the agent's own container, which is the same one. */
  disk?: () => Promise<Disk>
}

export type World = {
  readonly book: Book
  readonly flights: Flights
  readonly key: SealKey
  readonly pullsPerNode: number
  readonly runtime: ContainerRuntime
  readonly metrics: PullMetrics
  /** The name and version of the runtime, once it has answered. */
  about: string | undefined
}

export function openWorld(wiring: Wiring, { name, runtime, disk = ownDisk }: PullNode, limits: PullLimits): World {
  const { clock, signal } = wiring
  // Made at each start and kept nowhere: what was sealed for an earlier process stays closed.
  const key = makeSealKey()
  const book = new Book()
  const metrics = createPullMetrics(wiring.metrics)
  const flights = new Flights({
    runtime,
    clock,
    key,
    disk,
    thresholdPercent: limits.imageGcHighThresholdPercent,
    onEnd(wanted, attempt) {
      metrics.ended(attempt)
      book.ended(wanted, attempt, clock.now())
      wiring.enqueue(name)
    },
  })
  signal.addEventListener("abort", () => flights.cancelAll(), { once: true })
  return { book, flights, key, pullsPerNode: limits.pullsPerNode, runtime, metrics, about: undefined }
}

async function ownDisk(): Promise<Disk> {
  const { bsize, blocks, bavail } = await statfs("/")
  return { sizeBytes: bsize * blocks, freeBytes: bsize * bavail }
}

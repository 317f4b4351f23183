import type { Disk } from "#core/pulls/disk.ts"
import type { Clock } from "#runtime/clock.ts"
import type { ContainerRuntime } from "#runtime/cri/index.ts"
import { type FakeRegistry, fakeRegistry, type ImageRuntime, imageRuntime } from "./image-runtime.ts"

/** What a campaign needs of the nodes below it. Whatever answers the interface of a container runtime can be put here. */
export type PullFloor = {
  /** The runtime of a node as it is now. */
  runtime(node: string): ContainerRuntime
  disk(node: string): Promise<Disk>
  /** The node is another machine from now on: nothing is on it. */
  replace(node: string): void
  /** Removes an image, as the kubelet's garbage collection does. */
  collect(node: string, reference: string): void
  fill(node: string, isFull: boolean): void
  /** What a registry has, and from now on answers with. */
  publish(reference: string, image: { id: string; takesMs?: number; account?: string }): void
}

const size = 100 * 2 ** 30
const roomy: Disk = { sizeBytes: size, freeBytes: size * 0.9 }
const full: Disk = { sizeBytes: size, freeBytes: size * 0.1 }

/** Runtimes and registries in memory. */
export function pullFloor(clock: Clock): PullFloor {
  const registry: FakeRegistry = fakeRegistry()
  const runtimes = new Map<string, ImageRuntime>()
  const filled = new Set<string>()
  const of = (node: string) => {
    const runtime = runtimes.get(node) ?? imageRuntime(clock, registry)
    runtimes.set(node, runtime)
    return runtime
  }
  return {
    runtime: of,
    disk: async node => (filled.has(node) ? full : roomy),
    replace: node => runtimes.delete(node),
    collect: (node, reference) => of(node).present.delete(reference),
    fill: (node, isFull) => (isFull ? filled.add(node) : filled.delete(node)),
    publish: (reference, image) => registry.images.set(reference, image),
  }
}

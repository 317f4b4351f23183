import type { Clock } from "#runtime/clock.ts"
import type { ContainerPort, ContainerRuntime, PreStop, PullCredentials } from "#runtime/cri/index.ts"

/** A node with a kubelet, a container runtime and registries: what the scripts need, whatever it is made of. */
export type RuntimeFloor = {
  runtime: ContainerRuntime
  clock: Clock
  /** A connection of one's own through the path of the socket. */
  connect(): ContainerRuntime
  /** A connection through the file that is the socket now, as a container has it mounted. */
  connectMounted(): ContainerRuntime
  /**
   * Begins a stop as a process of its own, which is then frozen: it stands still, and its connection stays open. The
   * returned function ends it.
   */
  freezeDuringStop(id: string, stop: { graceSeconds: number }): Promise<() => void>
  /** Lets the kubelet start a pod; resolves when every container of it runs, with the pod's uid. */
  startPod(pod: PodWish): Promise<string>
  /** Pushes an image that ends on SIGTERM. */
  push(registry: RegistryName, name: string, options?: PushOptions): Promise<{ reference: string; digest: string }>
  /** `host:port` of a registry. */
  host(registry: RegistryName): string
  /** What the private registry accepts. */
  credentials: Omit<Extract<PullCredentials, { password: string }>, "host">
  /** Sends the first half of large layers of the private registry, and the rest when the result is called. */
  holdLayers(): () => void
  /** Leaves room for a few megabytes of layers, and for all again when the result is called. Nothing else may run. */
  fillDisk(): Promise<() => Promise<void>>
  /** Kills the runtime, as a crash would. Containers live on. */
  killRuntime(): Promise<void>
  /** Starts the killed one; resolves when it answers. */
  startRuntime(): Promise<void>
  /** Names of this run that a transcript must not hold, and what stands for them. */
  words: [string, string][]
  close(): Promise<void>
}

export type RegistryName = "public" | "private"

export type PodWish = {
  name: string
  containers: ContainerWish[]
  restartPolicy: "Always" | "Never"
  graceSeconds: number
}

export type ContainerWish = {
  name: string
  /** Ends on SIGTERM with 0, or ignores it. */
  behaviour: "polite" | "stubborn"
  preStop?: PreStop
  ports?: ContainerPort[]
}

export type PushOptions = {
  version?: string
  paddingBytes?: number
  /** An index of images, with one for this architecture. (What an image says of itself is not checked by containerd.) */
  onlyFor?: string
}

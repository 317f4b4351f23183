import type { Instant } from "#lib/instant.ts"

/**
 * The container runtime of one node: what the node agent asks of it, and nothing else. Two things answer it: the gRPC
 * client over the runtime's unix socket (`connectRuntime`) and the nodes of cluster-sim. `test/cri` runs the same
 * scripts on every one of them and compares.
 *
 * What all calls have in common:
 * - A fact about the world is a value: an unknown container or an absent image is `undefined`. Trouble on the way is a
 *   thrown `RuntimeError`, in the few kinds that a caller decides by.
 * - When the signal is aborted, the call rejects with the signal's reason at once. The runtime is informed that the
 *   caller is gone, but what has begun may still happen.
 * - Without an answer after `timeoutMs` the call rejects with `Unavailable`, and the outcome is unknown. A caller that
 *   repeats a call must therefore look first.
 */
export type ContainerRuntime = {
  /** Which runtime this is. The cheapest call, so it also serves to find out whether the socket is alive. */
  version(options?: CallOptions): Promise<RuntimeVersion>

  /**
   * The containers of the node, in no order: running ones, and dead ones until the kubelet removes them. Every label of
   * the filter must match.
   */
  listContainers(filter?: ContainerFilter, options?: CallOptions): Promise<Container[]>

  /** One container, also when it is dead. `undefined`: no container has this ID (any more). */
  containerStatus(id: string, options?: CallOptions): Promise<ContainerStatus | undefined>

  /**
   * Stops one container: sends the image's stop signal (SIGTERM), waits up to `graceSeconds` and kills. Resolves when
   * the container is not running: it ended within the grace period, was killed, had ended before, or its ID is unknown.
   *
   *     call ── SIGTERM ──────── grace period ──────── SIGKILL ── ended ── resolves
   *                  └ ended ── resolves
   *
   * - With a grace period of 0 the container is killed at once.
   * - Where the caller goes away after SIGTERM (abort, time-out, death of the process, loss of the connection), no kill
   *   follows: the container runs on, unless it ends by itself. Another call for the same ID waits for its own grace
   *   period and kills. Whether the signal is sent again is the runtime's choice.
   * - A caller that only stands still (a frozen process, a suspended machine) is not gone: its connection is open, and
   *   the kill follows. When it goes on, its own timers come before the answer, so the call may reject although the
   *   container was killed. A caller that goes away at the very end of the grace period may also be too late.
   * - Of two calls at once for one ID, the shorter grace period ends both.
   * - The exit code of a killed container is 137. No container is started: that is the kubelet's work.
   *
   * `timeoutMs` counts on top of the grace period.
   */
  stopContainer(id: string, stop: { graceSeconds: number }, options?: CallOptions): Promise<void>

  /**
   * Runs a command in a running container and waits for its end. A command over `timeoutSeconds` is killed and gives
   * `DeadlineExceeded`; an unknown container `NotFound`; a dead one, or a command that cannot be started, `Failed`.
   * `timeoutMs` counts on top of `timeoutSeconds`.
   */
  execSync(id: string, exec: { command: string[]; timeoutSeconds: number }, options?: CallOptions): Promise<ExecResult>

  /** One pod sandbox, for the pod's own address. `undefined`: no sandbox has this ID (any more). */
  podSandboxStatus(id: string, options?: CallOptions): Promise<PodSandbox | undefined>

  /** Every image whose pull is complete, in no order. */
  listImages(options?: CallOptions): Promise<Image[]>

  /**
   * The image that a reference means on this node now: `repo:tag`, `repo@digest`, `repo:tag@digest`, or an image ID.
   * `undefined` as long as it is not there completely.
   */
  imageStatus(reference: string, options?: CallOptions): Promise<Image | undefined>

  /**
   * Pulls an image and unpacks it. Resolves with its ID when it is there completely; also where it was there already,
   * in which case the registry is asked for the tag again. A missing tag or digest is `NotFound`, and so is an index
   * without an image for this platform; every other refusal is `Failed`. Both have the runtime's message, whose wording
   * differs between runtimes and versions (`core/image/pull-failure.ts` reads it). The kubelet's own pull of the same
   * image shares the layers that are under way. An aborted pull stops; what it has fetched may be kept or dropped.
   */
  pullImage(pull: ImagePull, options?: CallOptions): Promise<{ imageId: string }>

  /**
   * Bytes that the images on the node take. Collected by the runtime every ten seconds or so: it lags behind pulls and
   * removals by that much. Neither capacity nor free space is in it.
   */
  imageFsInfo(options?: CallOptions): Promise<ImageFilesystem | undefined>

  /**
   * What is being fetched at this moment, by any caller: exact, and empty when no pull is under way. `undefined`: this
   * runtime does not report it. Of containerd only; the one method beside CRI.
   */
  pullProgress(options?: CallOptions): Promise<Transfer[] | undefined>

  /** Ends the connection. Calls under way reject with `Unavailable`. */
  close(): void
}

export type CallOptions = {
  signal?: AbortSignal | undefined
  /** How long to wait for an answer: 10 s unless given. A pull has no limit unless one is given. */
  timeoutMs?: number | undefined
}

/** Such as `containerd` with `v2.3.5`, `1.6.20~ds1`. */
export type RuntimeVersion = { name: string; version: string }

/** IDs may be given whole only: a unique prefix is accepted by some runtimes and not by others. */
export type ContainerFilter = { id?: string; podSandboxId?: string; labels?: Record<string, string> }

export type ContainerState = "Created" | "Running" | "Exited" | "Unknown"

export type Container = {
  id: string
  podSandboxId: string
  /** The container's name in its pod, and how often the kubelet had started it in this pod before. */
  name: string
  attempt: number
  state: ContainerState
  createdAt: Instant
  /** ID of the image that it runs: equal to `Image.id` and to the answer of `pullImage`. */
  imageId: string
  /** `kubelet-keys.ts` names those that the kubelet writes, and reads them. */
  labels: Record<string, string>
  annotations: Record<string, string>
}

export type ContainerStatus = Omit<Container, "podSandboxId" | "imageId"> & {
  startedAt?: Instant
  /** Set once it has ended, with `exitCode`. */
  finishedAt?: Instant
  exitCode?: number
  /** The runtime's word and text on its end, such as `Completed`, `Error`, `OOMKilled`. Empty while it runs. */
  reason: string
  message: string
  /** One of the names that the image has on the node. */
  image: string
  /** The image as `repo@digest` where it was pulled by name; its ID otherwise. */
  imageRef: string
}

/** What the command wrote, both streams, cut to the first part: enough for a message. */
export type ExecResult = { exitCode: number; output: string }

export type PodSandbox = {
  id: string
  /** Name, namespace and uid of the pod. */
  name: string
  namespace: string
  uid: string
  isReady: boolean
  /** The pod's addresses, the primary one first. Empty on the host's network, and after its end. */
  addresses: string[]
}

export type Image = {
  /** Digest of its config: `sha256:…`. The same image under many names has one ID. */
  id: string
  repoTags: string[]
  /** `repo@digest`, where it was pulled from a registry. */
  repoDigests: string[]
  /** Compressed size on containerd. */
  sizeBytes: number
  /** Never removed by the kubelet's garbage collection. Unknown to containerd 1.6, hence false. */
  isPinned: boolean
}

export type ImagePull = {
  reference: string
  credentials?: PullCredentials | undefined
  /** What the runtime may know of the pod that the image is for. Absent, an empty one is sent. */
  sandboxConfig?: SandboxConfig | undefined
}

export type SandboxConfig = {
  labels?: Readonly<Record<string, string>> | undefined
  annotations?: Readonly<Record<string, string>> | undefined
}

/** For one registry host and no other: the runtime sends them to `host` only, whatever a registry redirects to. */
export type PullCredentials = { host: string } & ({ username: string; password: string } | { identityToken: string })

export type ImageFilesystem = { mountpoint: string; usedBytes: number }

export type Transfer = {
  /** What is fetched: `layer-sha256:…`, `config-sha256:…`, `manifest-sha256:…`. */
  name: string
  doneBytes: number
  /** 0 where it is not known yet. */
  totalBytes: number
}

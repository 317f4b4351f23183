import { type Clock, sleep } from "#runtime/clock.ts"
import { type ContainerRuntime, isRuntimeFailure } from "#runtime/cri/index.ts"
import type { Logger } from "#runtime/log.ts"
import { type ManagerOptions, runManager } from "#runtime/manager.ts"
import { agentControllers } from "./all.ts"
import type { AgentLimits, AgentNode } from "./surroundings.ts"

export type AgentOptions = Omit<
  ManagerOptions,
  "controllers" | "leaderElect" | "warm" | "hasLoopDelay" | "metricLabels"
> & {
  node: AgentNode
  limits?: Partial<AgentLimits>
}

/**
 * Runs the agent of one node until the signal is aborted. It keeps nothing on disk and sends no heartbeat: after a kill
 * at any point, the next process goes on from the objects and from what the runtime reports.
 *
 * Resolves with the exit code: 0 after the signal, 1 if the process has to be started again. That is so as well when
 * the runtime's socket is dead: only a new mount, made by the kubelet when it starts the container again, leads to the
 * runtime's new socket.
 */
export async function runAgent({ node, limits, ...options }: AgentOptions): Promise<number> {
  const { clock, log } = options
  const ending = new AbortController()
  const runtime = watched(node.runtime, error => {
    if (ending.signal.aborted) return
    log.error("the runtime's socket is dead, ending: a new start mounts the new socket", { node: node.name, error })
    ending.abort(error)
  })
  const stopped = new AbortController()
  const ping = pingForEver(runtime, { clock, log, signal: stopped.signal })
  try {
    const exitCode = await runManager({
      ...options,
      controllers: agentControllers({ ...node, runtime }, limits),
      leaderElect: false,
      hasLoopDelay: false,
      // An alert on one agent of thousands has to name the node, however the agents are scraped.
      metricLabels: { node: node.name },
      signal: AbortSignal.any([options.signal, ending.signal]),
    })
    return ending.signal.aborted ? 1 : exitCode
  } finally {
    stopped.abort()
    await ping
    runtime.close()
  }
}

/** Without other work, the only call: it finds out within a minute that the socket is dead. */
const pingMs = 60_000

async function pingForEver(
  runtime: ContainerRuntime,
  { clock, log, signal }: { clock: Clock; log: Logger; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await runtime.version({ signal }).catch(error => {
      if (!signal.aborted) log.warn("the container runtime does not answer, trying again", { error })
    })
    await sleep(clock, pingMs, signal).catch(() => {})
  }
}

/** The same runtime. Calls back when a call, of whichever controller, finds that the socket is dead. */
function watched(runtime: ContainerRuntime, onDead: (error: Error) => void): ContainerRuntime {
  const watch =
    <Args extends unknown[], Answer>(call: (...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      try {
        return await call(...args)
      } catch (error) {
        if (isRuntimeFailure(error, "SocketDead")) onDead(error)
        throw error
      }
    }
  return {
    version: watch(options => runtime.version(options)),
    listContainers: watch((filter, options) => runtime.listContainers(filter, options)),
    containerStatus: watch((id, options) => runtime.containerStatus(id, options)),
    stopContainer: watch((id, stop, options) => runtime.stopContainer(id, stop, options)),
    execSync: watch((id, exec, options) => runtime.execSync(id, exec, options)),
    podSandboxStatus: watch((id, options) => runtime.podSandboxStatus(id, options)),
    listImages: watch(options => runtime.listImages(options)),
    imageStatus: watch((reference, options) => runtime.imageStatus(reference, options)),
    pullImage: watch((pull, options) => runtime.pullImage(pull, options)),
    imageFsInfo: watch(options => runtime.imageFsInfo(options)),
    pullProgress: watch(options => runtime.pullProgress(options)),
    close: () => runtime.close(),
  }
}

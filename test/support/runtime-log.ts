import type { Instant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import { type CallOptions, type ContainerRuntime, isRuntimeFailure, recordedBy } from "#runtime/cri/index.ts"
import type { Process, World } from "./scenario.ts"

// Between an agent and the runtime of its node: notes every call, and strikes where a test says so. It knows nothing but
// the interface, so whatever answers it can be put below.

type Method = Exclude<keyof ContainerRuntime, "close">

/** One call of an agent to the runtime of its node. */
export type RuntimeCall = {
  readonly node: string
  /** A node that was replaced under its name has another one. */
  readonly nodeUid: string
  /** Counts the agents of a world. */
  readonly agent: number
  readonly method: Method
  /** The container or the image that it concerns; "" where there is none. */
  readonly subject: string
  readonly at: Instant
  /** The revision that the world had reached when it began. */
  readonly after: number
  /** Of a stop: the pod that the container belongs to, by the kubelet's labels. */
  readonly podUid?: string
  /** Of a pull: how full the disk was, whether the image was there already, and what is allowed at once. */
  readonly pull?: PullFacts
  /** Beginnings and ends of all calls of a world in order: many happen at the same instant. */
  readonly begun: number
  ended?: number
  /** The revision that the world had reached when it ended. */
  endedAfter?: number
  /** The ID of the image that was shown or pulled. */
  imageId?: string | undefined
  error?: string
}

export type PullFacts = { usedPercent: number; wasThere: boolean; limits: CallLimits }
export type CallLimits = { pullsPerNode: number; pullsPerRegistry: number; thresholdPercent: number }

/** What happens at a call. Resolves or throws instead of the runtime; `go` makes the call. */
export type CallFault = (call: RuntimeCall, go: () => Promise<unknown>, agent: Process) => Promise<unknown>

export type LogOptions = {
  world: Pick<World, "clock" | "cluster" | "record">
  node: { name: string; uid: string }
  /** The agent that calls. It is made after its runtime. */
  agent: () => Process
  disk?: () => Promise<{ sizeBytes: number; freeBytes: number }>
  limits?: CallLimits
  fault?: CallFault | undefined
}

const counters = new WeakMap<object, { moments: number; agents: number }>()
const noLimits: CallLimits = { pullsPerNode: Infinity, pullsPerRegistry: Infinity, thresholdPercent: 100 }

/** Which argument of each method are its options. */
const optionsAt: Record<Method, number> = {
  version: 0,
  listContainers: 1,
  containerStatus: 1,
  stopContainer: 2,
  execSync: 2,
  podSandboxStatus: 1,
  listImages: 0,
  imageStatus: 1,
  pullImage: 1,
  imageFsInfo: 0,
  pullProgress: 0,
}

/** The runtime as one agent meets it: when the agent dies, its calls end and no answer returns. */
export function loggedRuntime(runtime: ContainerRuntime, options: LogOptions): ContainerRuntime {
  const { world, node, agent, fault = (_, go) => go() } = options
  const { clock, cluster, record } = world
  const calls = record.calls as RuntimeCall[]
  const counter = counters.get(calls) ?? { moments: 0, agents: 0 }
  counters.set(calls, counter)
  const number = counter.agents++

  const gone = new AbortController()
  const end = () => gone.abort(new Error("the caller is gone"))

  async function noted(method: Method, args: unknown[]): Promise<RuntimeCall> {
    const [first] = args as [string | { reference: string } | undefined]
    const subject =
      typeof first === "string" ? first : method === "pullImage" ? (first as { reference: string }).reference : ""
    const facts = await factsOf(runtime, options, method, subject)
    const [at, after, begun] = [clock.now(), cluster.store.revision, counter.moments++]
    const call = { node: node.name, nodeUid: node.uid, agent: number, method, subject, at, after, begun, ...facts }
    calls.push(call)
    return call
  }
  const ended = (call: RuntimeCall, how: Pick<RuntimeCall, "imageId" | "error">) =>
    Object.assign(call, how, { ended: counter.moments++, endedAfter: cluster.store.revision })

  const through =
    (method: Method) =>
    async (...args: unknown[]): Promise<unknown> => {
      const process = agent()
      if (process.isDead) return never()
      const call = await noted(method, args)
      const stopLooking = whenDead(process, clock, end)
      const given = (args[optionsAt[method]] ?? {}) as CallOptions
      const all = Array.from({ length: optionsAt[method] }, (_, index) => args[index])
      const signals = [gone.signal, ...(given.signal ? [given.signal] : [])]
      const go = () => (runtime[method] as AnyCall)(...all, { ...given, signal: AbortSignal.any(signals) })
      try {
        const result = fault(call, go, process)
        // The connection ends with the process.
        if (process.isDead) end()
        const answer = await unlessAborted(result, signals)
        ended(call, { imageId: imageIdIn(answer) })
        return process.isDead ? never() : answer
      } catch (error) {
        ended(call, { error: String((error as Error)?.message ?? error) })
        if (process.isDead) return never()
        // As `runAgent` does: only a new start mounts the new socket.
        if (isRuntimeFailure(error, "SocketDead")) process.terminate()
        throw error
      } finally {
        stopLooking()
        // Killed with the answer: its other calls end at the same moment.
        if (process.isDead) end()
      }
    }
  const methods = Object.keys(optionsAt) as Method[]
  return {
    ...(Object.fromEntries(methods.map(method => [method, through(method)])) as Omit<ContainerRuntime, "close">),
    close: () => runtime.close(),
  }
}

const never = () => new Promise<never>(() => {})

/** What the world looks like when a call begins, as far as an invariant asks for it. */
async function factsOf(
  runtime: ContainerRuntime,
  { disk, limits = noLimits }: LogOptions,
  method: Method,
  subject: string,
): Promise<Pick<RuntimeCall, "pull" | "podUid">> {
  if (method === "stopContainer") {
    const status = await runtime.containerStatus(subject).catch(() => undefined)
    return { podUid: (status && recordedBy(status)?.podUid) ?? "" }
  }
  if (method !== "pullImage") return {}
  const { sizeBytes, freeBytes } = (await disk?.()) ?? { sizeBytes: 1, freeBytes: 1 }
  const there = await runtime.imageStatus(subject).catch(() => undefined)
  return { pull: { usedPercent: 100 * (1 - freeBytes / sizeBytes), wasThere: there !== undefined, limits } }
}

type AnyCall = (...args: unknown[]) => Promise<unknown>

/** A call rejects when one of its signals is aborted, whatever is being done for it. */
const unlessAborted = <T>(answer: Promise<T>, signals: readonly AbortSignal[]): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signals.find(({ aborted }) => aborted)?.reason)
    for (const signal of signals) signal.addEventListener("abort", abort, { once: true })
    if (signals.some(({ aborted }) => aborted)) abort()
    answer.then(resolve, reject).finally(() => {
      for (const signal of signals) signal.removeEventListener("abort", abort)
    })
  })

/** How soon a runtime notices that a caller was killed between two calls. */
const noticesMs = 1000

/** Looks again and again, because a death is announced to nothing. Returns how to stop that. */
function whenDead(process: Process, clock: Clock, then: () => void): () => void {
  let stop = () => {}
  const look = () => {
    if (process.isDead) then()
    else stop = clock.after(noticesMs, look)
  }
  look()
  return () => stop()
}

function imageIdIn(answer: unknown): string | undefined {
  const { id, imageId } = (answer ?? {}) as { id?: string; imageId?: string }
  return imageId ?? id
}

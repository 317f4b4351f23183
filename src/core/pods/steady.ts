import type { Instant } from "#lib/instant.ts"

/**
 * What "healthy" means for every controller. Ready for an instant is not enough: without probes, Kubernetes calls a
 * container ready as soon as it runs, even if it exits a second later. So a pod is steady since it was last ready or
 * last exited badly, whichever came later. An object counts as healthy when its pods have been steady long enough.
 */
export type Crash = {
  /** The image of the container, as the pod's workload names it. */
  readonly image: string
  /** It exited badly twice, or the kubelet itself calls it a crash loop. A single bad exit can happen to any container. */
  readonly isLoop: boolean
  /** The container runs again. Only time shows whether that lasts. */
  readonly isOver: boolean
  /** When it last exited or, if it runs again, was started; 0 where that is not reported. */
  readonly at: Instant
  readonly message: string
  /** Its last message, which may be the end of its log: for readers of the pod itself, never for another object. */
  readonly said: string
}

/** One container of a pod, as its status reports it. */
export type ContainerState = {
  readonly name: string
  readonly image: string
  readonly isReady: boolean
  readonly restarts: number
  /** Why it waits, "" if it does not. */
  readonly waiting: string
  /** How it ended last, now or before its last restart. */
  readonly exit:
    | {
        /** Of the container that ended; "" where it is not reported. */
        readonly id: string
        readonly code: number
        readonly reason: string
        readonly message: string
        readonly at: Instant
      }
    | undefined
  /** It has not been restarted since that exit. */
  readonly isEnded: boolean
  readonly startedAt: Instant | undefined
}

/** Containers of one pod that a ContainerRecreateRequest has stopped: their names, by ID. Such an end is no bad exit. */
export type Stopped = ReadonlyMap<string, string>

const noneStopped: Stopped = new Map()

const loopsFrom = 2

/** The worst crash among the containers of one pod. Those that were stopped are not among them. */
export const worstCrash = (containers: readonly ContainerState[], stopped = noneStopped): Crash | undefined =>
  containers.flatMap(container => crashOf(container, stopped) ?? []).sort(byBadness)[0]

/** A loop before a single exit, what goes on before what is over, the later before the earlier. */
export const byBadness = (a: Crash, b: Crash) =>
  Number(b.isLoop) - Number(a.isLoop) ||
  Number(a.isOver) - Number(b.isOver) ||
  b.at - a.at ||
  (a.image < b.image ? -1 : 1)

/** A container that runs again keeps looping until it has run for long enough. */
export const isLooping = ({ isLoop, isOver, at }: Crash, settleMs: number, now: Instant) =>
  isLoop && (!isOver || at + settleMs > now)

/** A container that ended badly, or that the kubelet does not start again at once. */
export const isCrashed = ({ waiting, exit }: ContainerState) =>
  waiting === "CrashLoopBackOff" || (exit !== undefined && exit.code !== 0)

function crashOf(container: ContainerState, stopped: Stopped): Crash | undefined {
  const { name, image, isReady, restarts, waiting, exit, isEnded, startedAt } = container
  if (!isCrashed(container)) return undefined
  // The kubelet counts a requested stop as a restart, and backs off after it as after a crash.
  const requested = [...stopped.values()].filter(each => each === name).length
  const exits = restarts + (isEnded ? 1 : 0) - requested
  const isLoop = exits >= loopsFrom || (waiting === "CrashLoopBackOff" && requested === 0)
  const message = `container ${name} ${wordsOf(exit)}`
  return { image, isLoop, isOver: isReady, at: startedAt ?? exit?.at ?? 0, message, said: exit?.message ?? "" }
}

function wordsOf(exit: ContainerState["exit"]): string {
  if (!exit) return "keeps ending"
  const reason = exit.reason === "" ? "" : ` (${exit.reason})`
  return `exited with ${exit.code}${reason}`
}

/** Since when a pod that is ready has been so without a bad exit; 0 where nothing dates it. */
export const steadySince = (readyAt: Instant | undefined, containers: readonly ContainerState[]): Instant =>
  Math.max(readyAt ?? 0, ...containers.map(({ exit }) => (exit && exit.code !== 0 ? exit.at : 0)))

/**
 * When an object that is up to date counts as healthy, if nothing breaks until then. A workload reports itself up to
 * date only after `minReadySeconds`, so the two do not add up.
 */
export function settlesAt(seen: {
  upToDateAt: Instant
  podsSteadyAt: Instant
  minReadyMs: number
  settleMs: number
}): Instant {
  return Math.max(seen.upToDateAt - seen.minReadyMs, seen.podsSteadyAt) + seen.settleMs
}

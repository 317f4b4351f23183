import { sleep } from "#runtime/clock.ts"
import type { Container } from "#runtime/cri/index.ts"
import { kubeletLabels, RuntimeError } from "#runtime/cri/index.ts"
import type { ContainerWish, RuntimeFloor } from "./floor.ts"

/** One sequence of calls. What it notes is its transcript. */
export type Script = {
  name: string
  /** Ends the runtime: nothing else may run meanwhile. */
  alone?: true
  run(scene: Scene): Promise<void>
}

/** One run of one script. */
export type Scene = RuntimeFloor & {
  /** Unlike that of any other run: for the names of pods and images. */
  id: string
  note(what: string, value: unknown): void
}

/** Waits for a condition, in the floor's own time. */
export async function until<T>(scene: Scene, what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  const { clock } = scene
  for (const end = clock.now() + 60_000; ; ) {
    const found = await look()
    if (found) return found
    if (clock.now() > end) throw new Error(`waited in vain for ${what}`)
    await sleep(clock, 100)
  }
}

/** Starts a pod of one container and gives the container. */
export async function startOne(
  scene: Scene,
  options: { behaviour: ContainerWish["behaviour"]; restartPolicy?: "Always" | "Never"; name?: string },
): Promise<Container> {
  const { behaviour, restartPolicy = "Never", name = behaviour } = options
  const pod = { name: `${name}-${scene.id}`, restartPolicy, graceSeconds: 1, containers: [{ name, behaviour }] }
  const uid = await scene.startPod(pod)
  const [container] = await containersOf(scene, uid)
  if (!container) throw new Error(`${pod.name} runs without a container`)
  return container
}

export async function containersOf(scene: Scene, uid: string): Promise<Container[]> {
  const containers = await scene.runtime.listContainers({ labels: { [kubeletLabels.podUid]: uid } })
  return containers.sort((a, b) => a.name.localeCompare(b.name) || a.attempt - b.attempt)
}

/**
 * Notes how a call ended, and after how long: `expected` seconds, up to eight more for a busy machine. What would be
 * wrong takes nineteen more or never ends.
 */
export async function timed(scene: Scene, what: string, expected: number, call: Promise<unknown>): Promise<void> {
  const began = scene.clock.now()
  const how = await outcome(call)
  const seconds = (scene.clock.now() - began) / 1000
  const isAsExpected = seconds >= expected - 0.1 && seconds < expected + 8
  scene.note(what, { ...how, after: isAsExpected ? `${expected} s` : `${seconds} s` })
}

/** A call's failure as data: its kind, and what the runtime said. Anything but a failure of the runtime is thrown. */
export async function outcome(call: Promise<unknown>): Promise<{ ok: true } | { kind: string; said: string }> {
  try {
    await call
    return { ok: true }
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error
    return { kind: error.kind, said: error.said }
  }
}

/** Notes the end of a container, or that it runs. */
export async function noteState(scene: Scene, what: string, id: string): Promise<void> {
  const status = await scene.runtime.containerStatus(id)
  const { state, exitCode, reason, message } = status ?? {}
  scene.note(what, { state, exitCode, reason, message })
}

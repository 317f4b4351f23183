import { type Clock, sleep } from "#runtime/clock.ts"
import { type ContainerRuntime, type ContainerStatus, RuntimeError } from "#runtime/cri/index.ts"

/** A stubborn container ends only when it is killed. */
export type FakeContainer = ContainerStatus & { isStubborn?: boolean }

export type FakeRuntime = ContainerRuntime & {
  readonly containers: Map<string, FakeContainer>
  /** Every call in order, as `stopContainer c1 30`. */
  readonly calls: string[]
  /** What every call fails with. */
  trouble: RuntimeError | undefined
  /** Called before a container is stopped, with its ID. */
  onStop: (id: string) => void
  /** Called when a container has ended. */
  onEnd: (container: FakeContainer) => void
  /** The runtime as a process sees it that may die: then no kill follows its SIGTERM. */
  connect(caller: { readonly isDead: boolean }): ContainerRuntime
}

/** A container runtime in memory, enough for the agent: containers that can be looked at and stopped. */
export function fakeRuntime(clock: Clock): FakeRuntime {
  const containers = new Map<string, FakeContainer>()
  const calls: string[] = []
  const say = (call: string) => {
    calls.push(call)
    if (fake.trouble) throw fake.trouble
  }
  const unused = async (): Promise<never> => {
    throw new RuntimeError("Failed", "calling the fake", { said: "not part of it" })
  }
  function end(container: FakeContainer, exitCode: number) {
    if (container.state !== "Running") return
    Object.assign(container, { state: "Exited", exitCode, finishedAt: clock.now() })
    fake.onEnd(container)
  }
  const connect = (caller: { readonly isDead: boolean }): ContainerRuntime => ({
    async version() {
      say("version")
      return { name: "fake", version: "1" }
    },
    listContainers: unused,
    async containerStatus(id) {
      say(`containerStatus ${id}`)
      return containers.get(id)
    },
    async stopContainer(id, { graceSeconds }, options) {
      fake.onStop(id)
      say(`stopContainer ${id} ${graceSeconds}`)
      const container = containers.get(id)
      if (!container) return
      if (!container.isStubborn) return end(container, 0)
      await sleep(clock, graceSeconds * 1000, options?.signal)
      if (caller.isDead) return new Promise(() => {})
      end(container, 137)
    },
    async execSync(id, { command, timeoutSeconds }) {
      say(`execSync ${id} ${timeoutSeconds} ${command.join(" ")}`)
      return { exitCode: 0, output: "" }
    },
    podSandboxStatus: unused,
    listImages: unused,
    imageStatus: unused,
    pullImage: unused,
    imageFsInfo: unused,
    pullProgress: unused,
    close: () => {},
  })
  const fake: FakeRuntime = {
    ...connect({ isDead: false }),
    connect,
    containers,
    calls,
    trouble: undefined,
    onStop: () => {},
    onEnd: () => {},
  }
  return fake
}

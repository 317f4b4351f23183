import { type Clock, sleep } from "#runtime/clock.ts"
import { type ContainerRuntime, type ImagePull, RuntimeError, type Transfer } from "#runtime/cri/index.ts"

/** What registries answer, for every node of a story. */
export type FakeRegistry = {
  /** By reference. */
  readonly images: Map<string, { id: string; takesMs?: number; bytes?: number; account?: string }>
  /** Pulls under way over all nodes, and the most there ever were, by registry host. */
  readonly inFlight: Map<string, number>
  readonly most: Map<string, number>
  /** What the next pulls are refused with, whatever they ask for. */
  refusal: string | undefined
}

export const fakeRegistry = (): FakeRegistry => ({
  images: new Map(),
  inFlight: new Map(),
  most: new Map(),
  refusal: undefined,
})

export type ImageRuntime = ContainerRuntime & {
  /** Images that are on the node, by reference. */
  readonly present: Map<string, string>
  /** Every call in order, as `pullImage nginx:1`. */
  readonly calls: string[]
  readonly pulls: ImagePull[]
  inFlight: number
  mostInFlight: number
  /** Removes what was pulled before it can be looked at. */
  loses: boolean
  transfers: Transfer[] | undefined
}

/** A container runtime that pulls images from a registry in memory. */
export function imageRuntime(clock: Clock, registry: FakeRegistry): ImageRuntime {
  const unused = async (): Promise<never> => {
    throw new RuntimeError("Failed", "calling the fake", { said: "not part of it" })
  }
  const hostOf = (reference: string) => reference.split("/")[0]!
  const count = (host: string, by: number) => {
    const now = (registry.inFlight.get(host) ?? 0) + by
    registry.inFlight.set(host, now)
    registry.most.set(host, Math.max(now, registry.most.get(host) ?? 0))
    fake.inFlight += by
    fake.mostInFlight = Math.max(fake.mostInFlight, fake.inFlight)
  }
  const failed = (said: string) => new RuntimeError("Failed", "pulling", { said })
  const fake: ImageRuntime = {
    present: new Map(),
    calls: [],
    pulls: [],
    inFlight: 0,
    mostInFlight: 0,
    loses: false,
    transfers: undefined,
    version: async () => ({ name: "fake", version: "1" }),
    listContainers: unused,
    containerStatus: unused,
    stopContainer: unused,
    execSync: unused,
    podSandboxStatus: unused,
    listImages: unused,
    imageFsInfo: unused,
    async imageStatus(reference) {
      fake.calls.push(`imageStatus ${reference}`)
      const id = fake.present.get(reference)
      return id === undefined ? undefined : { id, repoTags: [], repoDigests: [], sizeBytes: 1, isPinned: false }
    },
    async pullImage(pull, options) {
      const { reference, credentials } = pull
      fake.calls.push(`pullImage ${reference}`)
      fake.pulls.push(pull)
      count(hostOf(reference), 1)
      try {
        if (registry.refusal) throw failed(registry.refusal)
        const found = registry.images.get(reference)
        if (!found) throw new RuntimeError("NotFound", "pulling", { said: `${reference}: not found` })
        const account =
          credentials && "username" in credentials ? `${credentials.username}:${credentials.password}` : ""
        if (found.account !== undefined && account !== found.account)
          throw failed(`failed to resolve reference "${reference}": unexpected status: 401 Unauthorized`)
        await sleep(clock, found.takesMs ?? 100, options?.signal)
        options?.signal?.throwIfAborted()
        if (!fake.loses) fake.present.set(reference, found.id)
        return { imageId: found.id }
      } finally {
        count(hostOf(reference), -1)
      }
    },
    pullProgress: async () => fake.transfers,
    close: () => {},
  }
  return fake
}

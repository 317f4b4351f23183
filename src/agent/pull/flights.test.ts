import { expect, test } from "vitest"
import { makeSealKey } from "#lib/seal.ts"
import type { ContainerRuntime, Image } from "#runtime/cri/index.ts"
import { Flights } from "./flights.ts"
import type { Attempt, Wanted } from "./state.ts"

const GiB = 2 ** 30
const there: Image = { id: "sha256:1", repoTags: [], repoDigests: [], sizeBytes: 1, isPinned: false }
const wanted = {
  id: "a:1",
  name: "a",
  reference: "a:1",
  tag: {
    tag: "1",
    version: 0,
    ownerReferences: [],
    imagePullPolicy: "IfNotPresent",
    pullPolicy: { timeoutSeconds: 60 },
  },
} as unknown as Wanted
const nearlyFull = async () => ({ sizeBytes: 100 * GiB, freeBytes: 16 * GiB })

/** How an attempt ends where the image is there and no container uses it. */
function attempt(image: Image, disk = nearlyFull): Promise<Attempt> {
  const runtime = { imageStatus: async () => image, listContainers: async () => [] } as unknown as ContainerRuntime
  const clock = { now: () => 0, after: () => () => {} } as never
  return new Promise(onEnd => {
    const options = { runtime, clock, key: makeSealKey(), disk, thresholdPercent: 85 }
    new Flights({ ...options, onEnd: (_, attempt) => onEnd(attempt) }).begin(wanted, "")
  })
}

test("an image that no container uses may be collected from a disk that is nearly full, unless it is pinned", async () => {
  expect(await attempt(there)).toMatchObject({ is: "Present", risk: expect.stringContaining("84 %") })
  expect(await attempt({ ...there, isPinned: true })).toEqual({ is: "Present", imageID: there.id })
})

test("an image that is proven stays so where the disk cannot be asked", async () => {
  const disk = () => Promise.reject(new Error("statfs: EIO"))
  expect(await attempt(there, disk)).toEqual({ is: "Present", imageID: there.id })
})

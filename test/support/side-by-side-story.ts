import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createAlternateImageSourceController } from "#controllers/alternateimagesource/controller.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import { formatImageReference } from "#core/image/reference.ts"
import { settingAnnotations } from "#core/in-place/names.ts"
import { answerOf } from "./failover-story.ts"
import {
  type InPlaceOptions,
  type InPlaceStory,
  identity,
  imageOf,
  inPlaceStory,
  v1,
  v2,
  v3,
} from "./in-place-story.ts"
import { host } from "./pull-story.ts"
import type { Process, ProcessOptions } from "./scenario.ts"

// One Deployment, an AlternateImageSource with a mirror of its repository, and updates in place: both change the images
// of running pods.

const mirrorHost = "mirror.example.com"
export const refused = { kind: "refused" } as const
/** The same image in the mirror. */
export const mirrored = (image: string) => image.replace(host, mirrorHost)

export type SideBySide = InPlaceStory & {
  /** Runs the controller of failovers, as a process of its own. */
  failOver(options?: ProcessOptions): Process
  /** One pod more, whose container has never started: its image cannot be pulled from the first repository. */
  addWaiting(): Promise<string>
  /** The pod of that name, or undefined. */
  pod(name: string): Promise<Json>
  /** The reason of the AlternateImageSource. */
  reason(): Promise<string | undefined>
  /** A pull from the mirror takes this long. */
  slowMirror(seconds: number): void
}

/** The pods pull always: that a node has the image does not help. */
export async function sideBySide({ policy, ...options }: InPlaceOptions & { policy?: Json } = {}): Promise<SideBySide> {
  const template = {
    containers: [
      { name: "web", image: v1, imagePullPolicy: "Always" },
      { name: "side", image: `${host}/side:1` },
    ],
  }
  const story = await inPlaceStory({ template, ...options })
  const { world, registries } = story
  for (const [index, image] of [v1, v2, v3].entries()) {
    const content = { digest: `sha256:${String(index + 1).repeat(64)}`, sizeBytes: 100_000 }
    registries.push(image, content)
    registries.push(mirrored(image), content)
  }
  await world.apply(crdOf(AlternateImageSource) as Json, {
    apiVersion: AlternateImageSource.apiVersion,
    kind: AlternateImageSource.kind,
    metadata: { name: "web", namespace: "default" },
    spec: {
      imageSourceReplacements: [{ equivalentRepositories: [`${host}/web`, `${mirrorHost}/web`] }],
      policy: { requireSameDigest: "Never", ...policy },
    },
  })
  const registry = {
    async resolve(reference: Parameters<typeof formatImageReference>[0]) {
      const image = formatImageReference(reference)
      // The mirror answers, whether it serves nodes or not.
      if (image.startsWith(mirrorHost)) return { ok: true as const, digest: "", mediaType: "" }
      return answerOf(registries, image, world.clock.now())
    },
  }
  return {
    ...story,
    failOver: given => world.run([createAlternateImageSourceController({ registry })], given),
    async addWaiting() {
      const known = new Set((await story.pods()).map(({ metadata }) => metadata.uid))
      registries.setFault(v1, refused)
      await story.patch({ spec: { replicas: known.size + 1 } })
      const found = async () => (await story.pods()).find(({ metadata }) => !known.has(metadata.uid))
      await world.until("a pod cannot pull", async () => waitingIn(await found()), "2m")
      return (await found())!.metadata.name
    },
    pod: async name => (await story.pods()).find(({ metadata }) => metadata.name === name)!,
    async reason() {
      const { status } = await world.get(alternateImageSources, "web", "default")
      return status?.conditions?.find(({ type }: Json) => type === "Ready")?.reason
    },
    slowMirror: seconds => registries.setSpeed(mirrorHost, { bytesPerSecond: Math.floor(100_000 / seconds) }),
  }
}

const statusOf = (pod: Json | undefined): Json | undefined =>
  pod?.status?.containerStatuses?.find(({ name }: Json) => name === "web")
const waitingIn = (pod: Json | undefined) => /Image|Pull/.test(statusOf(pod)?.state?.waiting?.reason ?? "")
export const containerOf = (pod: Json): string => statusOf(pod)?.containerID ?? ""

/** Every image that the pod of this name ever had, in order. A StatefulSet gives a name to one pod after another. */
export const imagesOver = ({ world }: InPlaceStory, name: string, uid?: string): string[] => {
  const isIt = ({ kind, metadata }: Json) =>
    kind === "Pod" && metadata.name === name && (uid === undefined || metadata.uid === uid)
  const images = world.history.flatMap(({ object }) => (isIt(object) ? [imageOf(object)] : []))
  return images.filter((image, index) => image !== images[index - 1])
}

/** No pod is taken yet; the agents pull all the same. */
export const nonePicked = { [settingAnnotations.partition]: "100%" }
export const allPicked = { metadata: { annotations: { [settingAnnotations.partition]: "0" } } }

export { identity }

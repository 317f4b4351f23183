import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createAlternateImageSourceController } from "#controllers/alternateimagesource/controller.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { formatImageReference } from "#core/image/reference.ts"
import type { CanaryStory } from "./canary-story.ts"
import { answerOf } from "./failover-story.ts"
import { host } from "./pull-story.ts"
import { about } from "./rollout-story.ts"

// Other kinds beside a Canary, on the Deployment `web` of its story.

const mirrorHost = "mirror.example.com"
export const mirrored = (image: string) => image.replace(host, mirrorHost)

/** A ServiceImage over all Deployments, as a process of its own, which has nothing to do yet. */
export async function rollOut(
  story: CanaryStory,
  image: string,
  { kind = "Deployment", tier = {}, spec = {} }: Json = {},
) {
  const { world } = story
  await world.apply(crdOf(ServiceImage) as Json)
  const rollout = about(world, world.run([createServiceImageController()]))
  await world.apply({
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "dicom" },
    spec: {
      target: { apiVersion: "apps/v1", kind, image: { container: "web" } },
      defaultImage: image,
      tiers: [{ upgradeTier: "", settleSeconds: 0, progressDeadlineSeconds: 600, ...tier }],
      pace: { podsPerSecond: 0 },
      ...spec,
    },
  })
  await rollout.complete()
  return rollout
}

/** An AlternateImageSource for the Deployment, whose mirror has the same images, as a process of its own. */
export async function failOver(story: CanaryStory, images: readonly string[], policy: Json = {}): Promise<void> {
  const { world, registries } = story
  for (const image of images) registries.push(mirrored(image), { sizeBytes: 1000 })
  await world.apply(crdOf(AlternateImageSource) as Json, {
    apiVersion: AlternateImageSource.apiVersion,
    kind: AlternateImageSource.kind,
    metadata: { name: "web", namespace: "default" },
    spec: {
      imageSourceReplacements: [
        {
          equivalentRepositories: [`${host}/web`, `${mirrorHost}/web`],
          targets: [{ type: { group: "apps", kind: "deployment" }, name: "web" }],
        },
      ],
      policy: { requireSameDigest: "Never", ...policy },
    },
  })
  const registry = {
    async resolve(reference: Parameters<typeof formatImageReference>[0]) {
      const image = formatImageReference(reference)
      if (image.startsWith(mirrorHost)) return { ok: true as const, digest: "", mediaType: "" }
      return answerOf(registries, image, world.clock.now())
    },
  }
  world.run([createAlternateImageSourceController({ registry })])
}

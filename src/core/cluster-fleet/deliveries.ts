import { createHash } from "node:crypto"
import type { Upgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { Precache } from "#api/v1alpha1/clusterupgrade/index.ts"
import type { PreCachingConfigSpec } from "#api/v1alpha1/precachingconfig/index.ts"
import { rollbackAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import { spokeNames } from "./deliverable.ts"
import { type ImageMapping, imageFields, mappedImage, mappedManifest } from "./precache-images.ts"
import type { DeliveredObject, Delivery, Manifest, Observation } from "./transport.ts"

/** The run that sends, and for which operation. */
export type Sender = { uid: string; operation: string; fence: string }

export const hashOf = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16)

const bundleOf = ({ uid }: Sender, purpose: string) => `aim-${hashOf(uid)}${purpose}`
/** Echoed by what is delivered: another operation is another run. */
const runOf = ({ uid, operation }: Sender, purpose = "") => `${hashOf(uid)}.${operation}${purpose}`

const operationFields = { operation: ["status", "operation", "id"], phase: ["status", "operation", "phase"] } as const

/** What a cluster gets: the objects of the upgrades up to one of them, with its images. */
export function upgradeDelivery(
  sender: Sender,
  upgrades: readonly Upgrade[],
  upTo: number,
  mapping: ImageMapping,
): Delivery {
  const objects = upgrades.slice(0, upTo + 1).flatMap(({ manifests }) =>
    manifests.map((each): DeliveredObject => {
      const manifest = mappedManifest(each, mapping)
      const expects = imageFields(manifest).map(({ path, image }) => ({ path, value: image }))
      return {
        manifest: manifest as unknown as Manifest,
        lifetime: "Kept",
        judge: { by: "Ready", expects },
        ...(each.kind === "ServiceImage" && { fields: operationFields }),
      }
    }),
  )
  return { bundle: bundleOf(sender, ""), run: runOf(sender), fence: sender.fence, objects }
}

/** The operation that each object of a delivery reports, "" for those that report none. */
export const operationsOf = (delivery: Delivery, observation: Observation): string[] =>
  delivery.objects.map((_, index) => {
    const seen = observation.objects[index]
    const id = seen?.is === "Present" ? seen.fields.operation : undefined
    return typeof id === "string" ? id.slice(0, 32) : ""
  })

/** Kinds that can be asked to go back. Of the others it is not known what was there before: they stay. */
const goesBack = ({ manifest }: DeliveredObject) => manifest.kind === "ServiceImage"

/** What takes a cluster back: each ServiceImage is asked to roll back the operation that it reported. */
export function rollbackDelivery(delivery: Delivery, operations: readonly string[]): Delivery {
  const objects = delivery.objects.map((each, index): DeliveredObject => {
    const operation = goesBack(each) ? operations[index] : undefined
    if (!operation) return { ...each, judge: { by: "Presence" } }
    const { manifest } = each
    const annotations = { ...manifest.metadata.annotations, [rollbackAnnotation]: operation }
    return {
      ...each,
      manifest: { ...manifest, metadata: { ...manifest.metadata, annotations } },
      judge: { by: "Presence" },
    }
  })
  return { ...delivery, objects }
}

/** Whether one look shows every object that was asked to go back as gone back. */
export const hasGoneBack = ({ objects }: Delivery, operations: readonly string[], observation: Observation) =>
  objects.every((each, index) => {
    if (!goesBack(each) || !operations[index]) return true
    const seen = observation.objects[index]
    return seen?.is === "Present" && seen.fields.phase === "RolledBack" && seen.fields.operation === operations[index]
  })

export type PrecacheSpec = {
  images: readonly string[]
  spaceRequiredGiB?: number
  config: Pick<PreCachingConfigSpec, "nodeSelector" | "parallelism" | "timeoutMinutes" | "maxAttempts">
}

const attemptAnnotation = "autoimagemanager.io/pre-cache-attempt"

/** What pre-caching needs on a cluster: a namespace, the specification of the original, and the job. */
export function precacheDelivery(
  sender: Sender,
  { images, spaceRequiredGiB, config }: PrecacheSpec,
  { attempt, specHash, deadlineSeconds }: Pick<Precache, "attempt" | "specHash" | "deadlineSeconds">,
  mapping: ImageMapping,
): Delivery {
  const namespace = spokeNames.preCacheNamespace
  const mapped = [...new Set(images.map(image => mappedImage(image, mapping)))]
  const seconds = Math.max(1, deadlineSeconds)
  const removed = { lifetime: "Removed", judge: { by: "Presence" } } as const
  const messages = Array.from({ length: 10 }, (_, index) => [
    `failed${"abcdefghij"[index]}`,
    ["status", "failedImageStatuses", index, "message"],
  ])
  const job: Manifest = {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ImageListPullJob",
    // An attempt finds its own job by this, and no other.
    metadata: {
      name: "pre-cache",
      namespace,
      annotations: { [attemptAnnotation]: `${attempt}.${specHash.slice(0, 8)}` },
    },
    spec: {
      images: mapped,
      parallelism: config.parallelism,
      ...(config.nodeSelector && { selector: { matchLabels: config.nodeSelector } }),
      pullPolicy: { timeoutSeconds: Math.min(3600, seconds) },
      completionPolicy: { type: "Always", activeDeadlineSeconds: seconds },
    },
  }
  const specMap: Manifest = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "pre-cache-spec", namespace },
    data: {
      "operators.indexes": "",
      "operators.packagesAndChannels": "",
      excludePrecachePatterns: "",
      additionalImages: "",
      "platform.image": "",
      spaceRequired: spaceRequiredGiB === undefined ? "" : `${spaceRequiredGiB}`,
      images: mapped.join("\n"),
    },
  }
  return {
    bundle: bundleOf(sender, "-pre"),
    run: runOf({ ...sender, operation: "" }, `p${attempt}.${specHash.slice(0, 8)}`),
    fence: sender.fence,
    objects: [
      { manifest: { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }, ...removed },
      { manifest: specMap, ...removed },
      {
        manifest: job,
        lifetime: "Removed",
        judge: { by: "Ready", expects: [] },
        fields: Object.fromEntries(messages),
      },
    ],
  }
}

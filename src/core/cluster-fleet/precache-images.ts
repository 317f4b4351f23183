import { RE2JS } from "re2js"
import type { Upgrade, UpgradeManifest } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { PreCachingConfigSpec } from "#api/v1alpha1/precachingconfig/index.ts"
import type { FieldPath } from "./transport.ts"

/** A field of a manifest that holds an image. */
export type ImageField = { path: FieldPath; image: string }

/** Every field of one of our kinds that names an image to run or to pull. */
export function imageFields({ kind, spec }: Pick<UpgradeManifest, "kind" | "spec">): ImageField[] {
  const found: ImageField[] = []
  const add = (value: unknown, ...path: (string | number)[]) => {
    if (typeof value === "string" && value !== "") found.push({ path: ["spec", ...path], image: value })
  }
  const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
  if (kind === "ServiceImage") {
    add(spec.defaultImage, "defaultImage")
    for (const [index, tier] of listOf(spec.tiers).entries())
      add((tier as { image?: unknown } | null)?.image, "tiers", index, "image")
  }
  if (kind === "ImagePullJob") add(spec.image, "image")
  if (kind === "ImageListPullJob")
    for (const [index, image] of listOf(spec.images).entries()) add(image, "images", index)
  return found
}

export type ImageMapping = readonly { from: string; to: string }[]

/** The reference as a cluster pulls it. The longest beginning that fits counts. */
export function mappedImage(image: string, mapping: ImageMapping): string {
  let best: ImageMapping[number] | undefined
  for (const each of mapping)
    if (image.startsWith(each.from) && each.from.length > (best?.from.length ?? 0)) best = each
  return best ? best.to + image.slice(best.from.length) : image
}

/** The manifest with every image as a cluster pulls it. Nothing else changes. */
export function mappedManifest<M extends Pick<UpgradeManifest, "kind" | "spec">>(
  manifest: M,
  mapping: ImageMapping,
): M {
  const fields = imageFields(manifest).filter(({ image }) => mappedImage(image, mapping) !== image)
  if (fields.length === 0) return manifest
  const copy = structuredClone(manifest)
  for (const { path, image } of fields) {
    let at = copy as unknown as Record<string | number, unknown>
    for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>
    at[path.at(-1)!] = mappedImage(image, mapping)
  }
  return copy
}

/** What a person wrote about pre-caching: a PreCachingConfig, or the ConfigMap of the original beside the run. */
export type PrecacheSource = {
  config?: PreCachingConfigSpec | undefined
  /** The data of the ConfigMap `cluster-group-upgrade-overrides`. */
  overrides?: Readonly<Record<string, string>> | undefined
}

export type PrecacheImages =
  | { ok: true; images: readonly string[]; spaceRequiredGiB?: number }
  | { ok: false; reason: "PrecacheSpecIncomplete" | "InvalidPreCachingConfig"; message: string }

const imagesMost = 256

/** The images to bring to the nodes. A PreCachingConfig counts first, then the ConfigMap, then what the upgrades name. */
export function precacheImages(
  upgrades: readonly Upgrade[],
  { config, overrides = {} }: PrecacheSource,
): PrecacheImages {
  const patternTexts = config?.excludePrecachePatterns.length
    ? config.excludePrecachePatterns
    : linesOf(overrides.excludePrecachePatterns)
  const patterns: RE2JS[] = []
  for (const text of patternTexts)
    try {
      patterns.push(RE2JS.compile(text))
    } catch {
      const message = `excludePrecachePatterns: ${JSON.stringify(text)} is no RE2 expression`
      return { ok: false, reason: "InvalidPreCachingConfig", message }
    }
  const space = config?.spaceRequired ?? overrides["precache.spaceRequired"]
  const gibibytes = space === undefined ? undefined : parseSpace(space)
  if (space !== undefined && gibibytes === undefined) {
    const message = `spaceRequired: ${JSON.stringify(space)} is no size: write GiB or GB, such as 35 GiB`
    return { ok: false, reason: "InvalidPreCachingConfig", message }
  }
  const given = config?.overrides.images.length ? config.overrides.images : linesOf(overrides.images)
  const derived = upgrades.flatMap(({ manifests }) =>
    manifests.flatMap(each => imageFields(each).map(({ image }) => image)),
  )
  // As in the original, patterns are for what is derived: an image that is written out is wanted.
  const kept =
    given.length > 0 ? given : derived.filter(image => !patterns.some(pattern => pattern.matcher(image).find()))
  const additional = config?.additionalImages.length ? config.additionalImages : linesOf(overrides.additionalImages)
  const images = [...new Set([...kept, ...additional])]
  if (images.length === 0) {
    const message =
      "there is no image to pre-cache: the upgrades name none, or patterns exclude all; write additionalImages, or preCaching: false"
    return { ok: false, reason: "PrecacheSpecIncomplete", message }
  }
  if (images.length > imagesMost) {
    const message = `${images.length} images are more than the ${imagesMost} that one job pulls: exclude some`
    return { ok: false, reason: "PrecacheSpecIncomplete", message }
  }
  return { ok: true, images, ...(gibibytes !== undefined && { spaceRequiredGiB: gibibytes }) }
}

/** One a line, trimmed, without empty ones. */
const linesOf = (text: string | undefined) =>
  (text ?? "")
    .split("\n")
    .map(line => line.trim())
    .filter(line => line !== "")

/** Whole GiB, rounded up: `35 GiB`, `30GB`. Undefined for anything else. */
export function parseSpace(text: string): number | undefined {
  const [, digits, unit] = /^ *([1-9][0-9]{0,5}) ?(GiB|GB) *$/.exec(text) ?? []
  if (digits === undefined) return undefined
  return unit === "GiB" ? Number(digits) : Math.ceil((Number(digits) * 1e9) / 2 ** 30)
}

import { effectiveTiers } from "#core/fleet/tiers.ts"
import { parseImageReference, sameImage } from "#core/image/reference.ts"
import { closest } from "#lib/closest.ts"
import { Failure, UsageError } from "./refusal.ts"
import { imagesIn, type Seen } from "./rollout.ts"
import { tierNamed, tierTitle, tierWord } from "./words.ts"

/** One word of `aim set-image`: `IMAGE` is the default image, `TIER=IMAGE` that of a tier, `TIER=` removes it. */
export type Setting = { tier: string | undefined; image: string }

type Spec = Seen["spec"]
type Images = ReturnType<typeof imagesIn>

/** Parsed before any request. No image contains "=", so the first one ends the tier. */
export function parseSettings(words: readonly string[]): Setting[] {
  const settings = words.map(parseSetting)
  for (const [i, { tier }] of settings.entries())
    if (settings.findIndex(other => other.tier === tier) < i)
      throw new UsageError(
        `${tier === undefined ? "the default image" : tierTitle(tier)} is given twice: leave one out`,
      )
  return settings
}

function parseSetting(word: string): Setting {
  const at = word.indexOf("=")
  const [tier, image] = at < 0 ? [undefined, word] : [tierNamed(word.slice(0, at)), word.slice(at + 1)]
  if (tier !== undefined && image === "") return { tier, image }
  const parsed = parseImageReference(image)
  if (!parsed.ok) throw new UsageError(`${word || '""'}: ${parsed.error}`)
  return { tier, image }
}

/** The images of the spec with these settings; an unknown tier is a Failure that lists the known ones. */
export function withSettings(spec: Spec, settings: readonly Setting[]): Images {
  const { tiers, defaultImage } = imagesIn(spec)
  const names = tiers.map(({ upgradeTier }) => upgradeTier)
  for (const { tier } of settings)
    if (tier !== undefined && !names.includes(tier)) throw new Failure(noSuchTier(tier, names))
  const given = (name: string | undefined) => settings.find(({ tier }) => tier === name)?.image
  const next = {
    defaultImage: given(undefined) ?? defaultImage,
    tiers: tiers.map(tier => ({ ...tier, image: given(tier.upgradeTier) ?? tier.image })),
  }
  const bare = next.defaultImage === "" ? next.tiers.find(({ image }) => image === "") : undefined
  if (bare)
    throw new Failure(
      `${tierTitle(bare.upgradeTier)} would have no image, because spec.defaultImage is empty: give it one`,
    )
  return next
}

export function noSuchTier(tier: string, names: readonly string[]): string {
  const known = names.length > 0 ? `spec.tiers has ${names.map(tierWord).join(", ")}` : "spec.tiers is empty"
  if (tier === "" || tier === "default")
    return `there is no tier ${tierWord(tier)} (${known}): the image without a tier is spec.defaultImage, for every object of no tier`
  const meant = closest(tier, names)
  return `there is no tier ${tierWord(tier)} (${known})${meant ? `; did you mean ${meant}?` : ""}`
}

/** The tiers that get another image, in the order of the rollout. */
export function differences(spec: Spec, next: Images): { tier: string; from: string; to: string }[] {
  const before = new Map(effectiveTiers(imagesIn(spec)).map(({ name, image }) => [name, image]))
  return effectiveTiers(next)
    .map(({ name, image }) => ({ tier: name, from: before.get(name) ?? "", to: image }))
    .filter(({ from, to }) => !sameImage(from, to))
}

/**
 * The arguments of `aim set-image si/NAME` for these images, tier by tier; none where they are not valid
 * references, because the arguments will be pasted into a shell.
 */
export function setImageWords(spec: Spec, images: Readonly<Record<string, string>>): string[] | undefined {
  const now = imagesIn(spec)
  const wanted = effectiveTiers(now)
    .filter(({ name }) => Object.hasOwn(images, name))
    .map(({ name }) => ({ name, image: images[name]! }))
  if (wanted.length === 0 || wanted.some(({ image }) => !parseImageReference(image).ok)) return undefined
  const ownImage = (name: string) => now.tiers.find(({ upgradeTier }) => upgradeTier === name)?.image
  // Tiers without an image of their own, and the objects of no tier, follow the default image, if they agree on it.
  const followers = wanted.filter(({ name }) => !ownImage(name))
  const common = followers.every(({ image }) => image === followers[0]!.image) ? followers[0]?.image : undefined
  const rest = followers.find(({ name }) => ownImage(name) === undefined)?.image
  const defaultImage = common ?? rest ?? now.defaultImage
  return [
    ...(defaultImage !== "" && !sameImage(defaultImage, now.defaultImage) ? [defaultImage] : []),
    ...wanted
      .filter(({ name, image }) => !sameImage(image, ownImage(name) || defaultImage))
      .map(({ name, image }) => `${name}=${image}`),
  ]
}

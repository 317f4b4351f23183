import { parseImageReference, repositoryOf } from "#core/image/reference.ts"
import { shown } from "../text.ts"
import type { HistoryEntry } from "../wire.ts"

/** By tier, or by container. */
export type Images = Readonly<Record<string, string>>

export const imagesShown = (images: Images): HistoryEntry["images"] =>
  Object.entries(images).map(([of, image]) => ({ of: shown(of, 63), image: shown(image) }))

/** What is different between two sets of images, part by part. */
export function differencesOf(before: Images, after: Images): HistoryEntry["differences"] {
  return Object.entries(after).flatMap(([of, to]) => {
    const from = Object.hasOwn(before, of) ? before[of]! : ""
    const parts = partsOf(from, to)
    return parts.length > 0 ? [{ of: shown(of, 63), from: shown(from), to: shown(to), parts }] : []
  })
}

function partsOf(from: string, to: string): HistoryEntry["differences"][number]["parts"] {
  if (from === to) return []
  const [a, b] = [parseImageReference(from), parseImageReference(to)]
  if (!a.ok || !b.ok) return ["Repository"]
  const parts: HistoryEntry["differences"][number]["parts"] = []
  if (repositoryOf(a.reference) !== repositoryOf(b.reference)) parts.push("Repository")
  if (a.reference.tag !== b.reference.tag) parts.push("Tag")
  if (a.reference.digest !== b.reference.digest) parts.push("Digest")
  return parts
}

import { group, version } from "#api/v1alpha1/group.ts"
import { closest } from "#lib/closest.ts"
import type { Resource } from "#runtime/resource.ts"
import { UsageError } from "./command.ts"
import { isObjectName } from "./names.ts"

/** Named here again, and compared in a test: the declaration brings the whole schema library along. */
export const serviceImages: Resource = {
  group,
  version,
  plural: "serviceimages",
  kind: "ServiceImage",
  namespaced: false,
}

const kinds = [{ resource: serviceImages, words: ["si", "serviceimage", "serviceimages"] }]

export type Reference = { resource: Resource; name?: string }

/** Reads `si`, `si/NAME`, `serviceimage/NAME` and `serviceimages.autoimagemanager.io/NAME`. */
function parseReference(text: string): Reference {
  const slash = text.indexOf("/")
  const word = slash < 0 ? text : text.slice(0, slash)
  const resource = resourceNamed(word)
  if (slash < 0) return { resource }
  const name = text.slice(slash + 1)
  if (!isObjectName(name))
    throw new UsageError(`${name || '""'} is not the name of an object: write ${word}/NAME, in lower case`)
  return { resource, name }
}

/** A reference that must name its object. */
export function parseNamed(text: string): Required<Reference> {
  // Without a slash it is most likely the name alone.
  if (!text.includes("/") && !isKindWord(text)) throw new UsageError(`${text} names no kind: write si/${text}`)
  const { resource, name } = parseReference(text)
  if (name === undefined) throw new UsageError(`${text} names no object: write ${text}/NAME`)
  return { resource, name }
}

/** `si`, `si/A si/B` and, as with kubectl, `si A B`. */
export function parseReferences(words: readonly string[]): { resource: Resource; names: string[] } {
  const [first, ...rest] = words
  if (first === undefined) return { resource: serviceImages, names: [] }
  if (!first.includes("/") && isKindWord(first)) {
    const { resource } = parseReference(first)
    return { resource, names: rest.map(name => parseNamed(name.includes("/") ? name : `${first}/${name}`).name) }
  }
  return { resource: serviceImages, names: words.map(word => parseNamed(word).name) }
}

const plain = (word: string) => {
  const lower = word.toLowerCase()
  return [`.${version}.${group}`, `.${group}`].reduce((name, suffix) => name.replace(suffix, ""), lower)
}

export const isKindWord = (word: string) => kinds.some(({ words }) => words.includes(plain(word)))

function resourceNamed(word: string): Resource {
  const found = kinds.find(({ words }) => words.includes(plain(word)))
  if (found) return found.resource
  const meant = closest(
    plain(word),
    kinds.flatMap(({ words }) => words),
  )
  throw new UsageError(`${word || '""'} is no kind that aim rolls out: write ${meant ?? "si (ServiceImage)"}`)
}

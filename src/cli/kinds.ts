import { closest } from "#lib/closest.ts"
import { kindNamed, kindWords, ours, plainWord, serviceImages, shortOf } from "#operations/kinds.ts"
import type { Resource } from "#runtime/resource.ts"
import { UsageError } from "./command.ts"
import { isObjectName } from "./names.ts"

export {
  alertProviders,
  alternateImageSources,
  canaries,
  kindNamed,
  metricTemplates,
  ours,
  serviceImages,
  shortOf,
} from "#operations/kinds.ts"

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

/** A reference that must name an object of the wanted kind. */
export function parseNamed(text: string, wanted: Resource = serviceImages): Required<Reference> {
  const short = shortOf(wanted)
  // Without a slash it is most likely the name alone.
  if (!text.includes("/") && !isKindWord(text)) throw new UsageError(`${text} names no kind: write ${short}/${text}`)
  const { resource, name } = parseReference(text)
  if (resource !== wanted) throw new UsageError(`${text} is not of kind ${wanted.kind}: write ${short}/NAME`)
  if (name === undefined) throw new UsageError(`${text} names no object: write ${text}/NAME`)
  return { resource, name }
}

/** `si`, `si/A si/B` and, as with kubectl, `si A B`; all of one kind, which must be one of the wanted kinds. */
export function parseReferences(
  words: readonly string[],
  wanted: readonly Resource[] = [serviceImages],
): { resource: Resource; names: string[] } {
  const [first, ...rest] = words
  if (first === undefined) return { resource: wanted[0]!, names: [] }
  if (first.includes(",") && first.split(",").every(isKindWord))
    throw new UsageError(`${first}: one kind at a time: write ${first.split(",").join(" or ")}`)
  if (wanted.length > 1 && !first.includes("/") && !isKindWord(first))
    throw new UsageError(
      `${first} is not a kind of aim: write ${wanted.map(shortOf).join(" or ")} for a list, or ${shortOf(wanted[0]!)}/${first} for the ${wanted[0]!.kind} of that name; for other kinds use kubectl`,
    )
  const resource = wanted.find(each => each === kindNamed(first.split("/")[0]!)) ?? wanted[0]!
  const isKind = !first.includes("/") && kindNamed(first) === resource
  const named = isKind ? rest.map(name => (name.includes("/") ? name : `${first}/${name}`)) : words
  return { resource, names: named.map(word => parseNamed(word, resource).name) }
}

const isKindWord = (word: string) => kindNamed(word) !== undefined

function resourceNamed(word: string): Resource {
  const found = kindNamed(word)
  if (found) return found
  const meant = closest(plainWord(word), kindWords)
  throw new UsageError(
    `${word || '""'} is not a kind of aim: write ${meant ?? ours.map(resource => `${shortOf(resource)} (${resource.kind})`).join(" or ")}`,
  )
}

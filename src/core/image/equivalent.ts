import type { Replacement } from "#api/v1alpha1/alternateimagesource/index.ts"
import { remember } from "#lib/remember.ts"
import {
  formatImageReference,
  type ImageReference,
  normaliseImageReference,
  parseImageReference,
  repositoryOf,
} from "./reference.ts"

/** A fleet has few different images, and each look at an outage reads them again for every failing pod. */
const read = remember(2000, parseImageReference)

/** A set of repositories that hold the same images. */
type Equivalents = Pick<Replacement, "equivalentRepositories">

/** The first set that an image's repository belongs to, and that repository as the spec writes it. */
export function replacementOf(
  image: string,
  replacements: readonly Equivalents[],
): { index: number; repository: string } | undefined {
  const name = nameOf(image)
  if (name === undefined) return undefined
  for (const [index, replacement] of replacements.entries()) {
    const repository = namesOf(replacement).get(name)
    if (repository !== undefined) return { index, repository }
  }
  return undefined
}

/** The repository of an image, under the one name that all spellings of it have; undefined for what is no image. */
export const repositoryNameOf = (image: string) => nameOf(image)

/** The names of the repositories of a set. */
export const repositoryNamesIn = (replacement: Equivalents): Iterable<string> => namesOf(replacement).keys()

/** The same tag and digest, byte for byte, at another repository. What is no image stays as it is. */
export function imageAt(image: string, repository: string): string {
  const parsed = parseImageReference(image)
  if (!parsed.ok) return image
  return repository + image.slice(repositoryTextOf(image).length)
}

/** The repository of an image as it is written there; what is no image is its own. */
export function repositoryTextOf(image: string): string {
  const parsed = parseImageReference(image)
  if (!parsed.ok) return image
  const { tag: _, digest: __, ...repository } = parsed.reference
  return formatImageReference(repository)
}

/** Are two images, or two repositories, in the same place? */
export function sameSource(a: string, b: string): boolean {
  const name = nameOf(a)
  return name !== undefined && name === nameOf(b)
}

/** Can either image replace the other: the same tag or digest, from repositories of the same set? */
export function isEquivalent(a: string, b: string, replacement: Equivalents): boolean {
  const names = namesOf(replacement)
  const [left, right] = [read(a), read(b)]
  if (!left.ok || !right.ok) return false
  if (!names.has(repositoryOf(left.reference)) || !names.has(repositoryOf(right.reference))) return false
  return isSame(normaliseImageReference(left.reference), normaliseImageReference(right.reference))
}

/** Do two images have the same tag or digest, wherever they are? */
export function isSameVersion(a: string, b: string): boolean {
  const [left, right] = [read(a), read(b)]
  if (!left.ok || !right.ok) return false
  return isSame(normaliseImageReference(left.reference), normaliseImageReference(right.reference))
}

/** Why a set of repositories can never help; undefined for one that can. */
export function whyUseless({ equivalentRepositories }: Equivalents, disabled: readonly string[]): string | undefined {
  const names = [...namesOf({ equivalentRepositories }).keys()]
  const some = equivalentRepositories.slice(0, 3).join(", ")
  if (names.length < 2) return `${some}: there is only one repository in this set`
  const closed = new Set(disabled.map(nameOf))
  return names.every(name => closed.has(name)) ? `${some}: every repository of this set is disabled` : undefined
}

/** What is wrong with a text where a repository is wanted; undefined for one. */
export function repositoryProblem(text: string): string | undefined {
  if (text === "") return "the repository is empty: write one such as quay.io/team/app"
  const parsed = parseImageReference(text)
  if (!parsed.ok) return parsed.error
  const { tag, digest } = parsed.reference
  if (tag !== undefined) return `":${tag}" is a tag: write the repository only, the tag is the container's own`
  if (digest !== undefined)
    return `"@${digest}" is a digest: write the repository only, the digest is the container's own`
  return undefined
}

/** Two digests decide, and the tags beside them are ignored. A digest beside a tag only pins that tag. */
function isSame(a: ImageReference, b: ImageReference): boolean {
  if (a.digest && b.digest) return a.digest === b.digest
  return (a.tag ?? "latest") === (b.tag ?? "latest")
}

const nameOf = remember(2000, (text): string | undefined => {
  const parsed = parseImageReference(text)
  return parsed.ok ? repositoryOf(parsed.reference) : undefined
})

/** Specs are read far more often than they change: every container of a namespace is looked up in every set. */
const known = new WeakMap<readonly string[], ReadonlyMap<string, string>>()

/** By normalised name, the repositories as they are written; the first spelling counts. */
function namesOf({ equivalentRepositories }: Equivalents): ReadonlyMap<string, string> {
  const found = known.get(equivalentRepositories)
  if (found) return found
  const names = new Map<string, string>()
  for (const repository of equivalentRepositories) {
    const name = repositoryProblem(repository) === undefined ? nameOf(repository) : undefined
    if (name !== undefined && !names.has(name)) names.set(name, repository)
  }
  known.set(equivalentRepositories, names)
  return names
}

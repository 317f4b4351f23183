import { kindNames, type namesOf } from "#api/names.ts"
import { group, version } from "#api/v1alpha1/group.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { type Resource, resourceOf } from "#runtime/resource.ts"

const kinds = kindNames.map(names => ({
  resource: resourceOf(names),
  words: [...names.shortNames, names.kind.toLowerCase(), names.plural],
}))

/** The one object of each kind: commands compare by identity. */
const resourceFor = (named: Parameters<typeof namesOf>[0]) =>
  kinds.find(({ resource }) => resource.kind === named)!.resource
export const serviceImages = resourceFor("ServiceImage")
export const alternateImageSources = resourceFor("AlternateImageSource")
export const canaries = resourceFor("Canary")
export const metricTemplates = resourceFor("MetricTemplate")
export const alertProviders = resourceFor("AlertProvider")

/** Every kind of ours. */
export const ours: readonly Resource[] = kinds.map(({ resource }) => resource)

/** Every word that means one of them. */
export const kindWords: readonly string[] = kinds.flatMap(({ words }) => words)

/** The shortest word for a kind of ours, or for a workload: `si`, `deploy`. */
export const shortOf = (resource: Resource) =>
  kinds.find(({ resource: { kind } }) => kind === resource.kind)?.words[0] ??
  workloadKind(resource.kind)!.shortNames[0]!

/** In lower case, and without our group and version. */
export const plainWord = (word: string) => {
  const lower = word.toLowerCase()
  return [`.${version}.${group}`, `.${group}`].reduce((name, suffix) => name.replace(suffix, ""), lower)
}

/** The kind of ours that a word means. */
export const kindNamed = (word: string) => kinds.find(({ words }) => words.includes(plainWord(word)))?.resource

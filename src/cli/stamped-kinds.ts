import { group } from "#api/v1alpha1/group.ts"
import { customResourceDefinitions } from "#controllers/served-kind.ts"
import { workloadKinds } from "#core/workloads/kinds.ts"
import { type Inventory, kindOf } from "#explain/inventory.ts"
import { closest } from "#lib/closest.ts"
import { nameSome } from "#lib/text.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Failure, UsageError } from "./command.ts"
import { kindNamed, serviceImages } from "./kinds.ts"
import { isObjectName } from "./names.ts"

/** A kind whose objects a ServiceImage can stamp, or the ServiceImage itself. */
export type StampedKind = {
  group: string
  kind: string
  versions: readonly string[]
  plural: string
  words: readonly string[]
}

const workloads = workloadKinds
  .filter(({ isTarget }) => isTarget)
  .map(
    ({ group, version, kind, plural, name, shortNames }): StampedKind => ({
      group,
      kind,
      versions: [version],
      plural,
      words: [name, plural, ...shortNames],
    }),
  )

type Definition = KubeObject & {
  spec: {
    group: string
    names: { kind: string; plural: string; singular?: string; shortNames?: string[] }
    versions: { name: string; served: boolean }[]
  }
}

function kindsIn(seen: Inventory): StampedKind[] {
  const definitions = [...seen.of<Definition>(kindOf(customResourceDefinitions)).values()]
  return [
    ...workloads,
    ...definitions
      .filter(({ spec }) => spec.group !== group)
      .map(({ spec: { group, names, versions } }) => ({
        group,
        kind: names.kind,
        plural: names.plural,
        versions: versions.filter(({ served }) => served).map(({ name }) => name),
        words: [names.plural, names.singular ?? "", names.kind.toLowerCase(), ...(names.shortNames ?? [])].filter(
          Boolean,
        ),
      })),
  ]
}

export type Named = { kind: "si" | StampedKind; name: string }

/** `dicom/NAME`, `dicoms/NAME`, `Dicom/NAME`, `dic/NAME`, `dicoms.services.example.com/NAME`, with a version between too. */
export function splitReference(text: string): { word: string; name: string } {
  const [word = "", name, ...rest] = text.split("/")
  if (name === undefined) throw new UsageError(`${text} names no object: write KIND/NAME, such as deployment/${text}`)
  if (rest.length > 0) throw new UsageError(`${text} is not KIND/NAME: the namespace is named with -n`)
  if (!isObjectName(name))
    throw new UsageError(`${name || '""'} is not the name of an object: write ${word}/NAME, in lower case`)
  return { word, name }
}

/** The kind that a word means, as kubectl would understand it. */
export function resolveKind(word: string, seen: Inventory): "si" | StampedKind {
  if (kindNamed(word) === serviceImages) return "si"
  const [short = "", ...rest] = word.toLowerCase().split(".")
  const suffix = rest.join(".")
  const kinds = kindsIn(seen)
  const found = kinds.filter(({ words, group, versions }) => {
    if (!words.includes(short)) return false
    return suffix === "" || suffix === group || versions.some(version => suffix === `${version}.${group}`)
  })
  // As kubectl: what Kubernetes itself serves comes first, then the first group by name.
  const [first] = found.sort((a, b) => rank(a) - rank(b) || (a.group < b.group ? -1 : 1))
  if (first) return first
  const meant = closest(
    short,
    kinds.flatMap(({ words }) => words),
  )
  const known = kinds.slice(workloads.length).map(({ plural, group }) => `${plural}.${group}`)
  throw new Failure(
    `there is no kind ${word} that a ServiceImage could stamp${meant ? `; did you mean ${meant}?` : ""}\nThere are ${workloads.map(({ plural }) => plural).join(", ")}${known.length > 0 ? ` and ${nameSome(known.slice(0, 5), known.length)}` : ""}.`,
  )
}

const rank = ({ group }: StampedKind) => (group === "apps" ? 0 : 1)

/** The object of a name. Without a namespace all are searched, and the name must be unique. */
export function findObject(
  seen: Inventory,
  { kind: of, name }: { kind: StampedKind; name: string },
  namespace: string | undefined,
) {
  const all = of.versions.flatMap(version => [...seen.of({ apiVersion: `${of.group}/${version}`, kind: of.kind })])
  const same = new Map(all.filter(([, { metadata }]) => metadata.name === name))
  const isHere = ({ metadata }: KubeObject) =>
    namespace === undefined || metadata.namespace === undefined || metadata.namespace === namespace
  const here = [...same].filter(([, object]) => isHere(object))
  if (here.length === 1) return { key: here[0]![0], object: here[0]![1] }
  const spaces = [...same.values()].map(({ metadata }) => metadata.namespace ?? "")
  if (here.length > 1)
    throw new Failure(
      `${of.kind} ${name} is in ${nameSome(spaces.slice(0, 5), spaces.length)}: choose one with -n NAMESPACE`,
    )
  const where = namespace === undefined ? "" : ` in namespace ${namespace}`
  const meant = closest(name, [
    ...new Set(all.filter(([, object]) => isHere(object)).map(([, { metadata }]) => metadata.name)),
  ])
  const hint =
    spaces.length > 0
      ? `; there is one in ${nameSome(spaces.slice(0, 5), spaces.length)}`
      : meant
        ? `; did you mean ${meant}?`
        : ""
  throw new Failure(`there is no ${of.kind} ${name}${where}${hint}`)
}

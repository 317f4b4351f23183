import { isSame } from "#lib/same.ts"
import { inPlaceAnnotation, revisionLabel, updateStateLabel } from "./names.ts"

type Json = Record<string, unknown>
export type PodTemplate = { readonly metadata?: Json; readonly spec?: Json }

/** Label of the Deployment controller on its ReplicaSets and their pods. It is no part of what a template says. */
export const hashLabel = "pod-template-hash"

/** Changed by `kubectl rollout restart`, which asks for new containers and not for a new annotation. */
export const restartedAt = "kubectl.kubernetes.io/restartedAt"

/** What an update in place has to carry into running pods: names only, the values are those of the template. */
export type Touched = {
  readonly containers: readonly string[]
  readonly labels: readonly string[]
  readonly annotations: readonly string[]
  /** Containers with the same image that read one of these into their environment. */
  readonly restarts?: readonly string[]
}

export type Change = { readonly is: "None" } | ({ readonly is: "InPlace" } & Touched) | NotInPlace

/** A running pod cannot get this change: `path` is the first field of the template that says so. */
export type NotInPlace = { readonly is: "NotInPlace"; readonly path: string; readonly why: string }

/**
 * Can this change of a template be carried into running pods? Images of containers and of restartable init containers
 * can, and so can labels and annotations. Containers are compared by name.
 */
export function changeOf(from: PodTemplate, to: PodTemplate): Change {
  if (annotationsOf(from)[restartedAt] !== annotationsOf(to)[restartedAt])
    return refused(`metadata.annotations[${restartedAt}]`, "kubectl rollout restart asks for new pods")
  const elsewhere = otherField(from, to)
  if (elsewhere) return elsewhere
  const containers: string[] = []
  for (const list of ["initContainers", "containers"] as const) {
    const changed = changedImages(from, to, list)
    if ("is" in changed) return changed
    containers.push(...changed)
  }
  const labels = changedKeys(labelsOf(from), labelsOf(to)).filter(isCarried)
  const annotations = changedKeys(annotationsOf(from), annotationsOf(to)).filter(isCarried)
  if (containers.length + labels.length + annotations.length === 0) return { is: "None" }
  const restarts = readersOf(to, { containers, labels, annotations })
  if ("is" in restarts) return restarts
  return { is: "InPlace", containers, labels, annotations, ...(restarts.length > 0 && { restarts }) }
}

/** The change for pods that were made from several templates: what any of them needs, and only what each can get. */
export function changeFrom(templates: readonly PodTemplate[], to: PodTemplate): Change {
  const changes = templates.map(from => changeOf(from, to))
  const refusal = changes.find(({ is }) => is === "NotInPlace")
  if (refusal) return refusal
  const found = changes.flatMap(change => (change.is === "InPlace" ? [change] : []))
  if (found.length === 0) return { is: "None" }
  return { ...found.reduce<Touched>(both, untouched), is: "InPlace" }
}

export const untouched: Touched = { containers: [], labels: [], annotations: [] }

/** What either of them needs. */
export function both(a: Touched, b: Touched): Touched {
  const all = (key: keyof Touched) => [...new Set([...(a[key] ?? []), ...(b[key] ?? [])])].sort()
  const restarts = all("restarts")
  return {
    containers: all("containers"),
    labels: all("labels"),
    annotations: all("annotations"),
    ...(restarts.length > 0 && { restarts }),
  }
}

/** On a pod these have values of their own, whatever a template says. */
const ownKeys = new Set<string>([hashLabel, revisionLabel, updateStateLabel, inPlaceAnnotation])
export const isCarried = (key: string) => !ownKeys.has(key)

const refused = (path: string, why: string): NotInPlace => ({ is: "NotInPlace", path, why })
const unchangeable = "a running pod cannot change it"

/** The first difference that is neither metadata nor a list of containers. */
function otherField({ spec: from = {} }: PodTemplate, { spec: to = {} }: PodTemplate): NotInPlace | undefined {
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])].sort()
  for (const name of names) {
    if (name === "containers" || name === "initContainers") continue
    if (!isSame(from[name], to[name])) return refused(`spec.${name}`, unchangeable)
  }
  return undefined
}

type List = "containers" | "initContainers"

function changedImages(from: PodTemplate, to: PodTemplate, list: List): string[] | NotInPlace {
  const before = containersIn(from, list)
  const after = containersIn(to, list)
  const [names, newNames] = [before, after].map(all => all.map(({ name }) => String(name)))
  if (!isSame(names, newNames)) return refused(`spec.${list}`, "containers were added, removed or reordered")
  const changed: string[] = []
  for (const [index, old] of before.entries()) {
    const now = after[index]!
    const path = `spec.${list}[${now.name}]`
    const fields = [...new Set([...Object.keys(old), ...Object.keys(now)])].sort()
    const other = fields.find(field => field !== "image" && !isSame(old[field], now[field]))
    if (other !== undefined) return refused(`${path}.${other}`, unchangeable)
    if (old.image === now.image) continue
    if (list === "initContainers" && now.restartPolicy !== "Always")
      return refused(`${path}.image`, "an init container has run already")
    changed.push(String(now.name))
  }
  return changed
}

/**
 * A label or annotation that a container reads into its environment reaches the container only with a restart. One whose
 * image changes too is restarted by the kubelet.
 */
function readersOf(to: PodTemplate, { containers, labels, annotations }: Touched): readonly string[] | NotInPlace {
  const paths = new Map<string, string>([
    ...labels.map(key => [`metadata.labels['${key}']`, `metadata.labels[${key}]`] as const),
    ...annotations.map(key => [`metadata.annotations['${key}']`, `metadata.annotations[${key}]`] as const),
  ])
  const read = ({ env }: Json) => listOf(env).flatMap(variable => paths.get(fieldPathOf(variable) ?? "") ?? [])[0]
  for (const container of containersIn(to, "initContainers")) {
    const path = containers.includes(String(container.name)) ? undefined : read(container)
    // An agent restarts none of these.
    if (path !== undefined) return refused(path, `init container ${container.name} reads it into its environment`)
  }
  const names = containersIn(to, "containers").flatMap(each => (read(each) === undefined ? [] : [String(each.name)]))
  return names.filter(name => !containers.includes(name))
}

function fieldPathOf({ valueFrom }: Json): string | undefined {
  const fieldRef = (valueFrom as Json | undefined)?.fieldRef as Json | undefined
  return typeof fieldRef?.fieldPath === "string" ? fieldRef.fieldPath : undefined
}

/** Images by container, those of restartable init containers included. */
export function imagesOf(template: PodTemplate): Map<string, string> {
  const all = [...containersIn(template, "initContainers"), ...containersIn(template, "containers")]
  return new Map(all.map(({ name, image }) => [String(name), String(image ?? "")]))
}

/** As the Deployment controller compares them. */
export function isSameTemplate(a: PodTemplate, b: PodTemplate): boolean {
  const [left, right] = [a, b].map(withoutHash) as [PodTemplate, PodTemplate]
  return (
    isSame(left.spec, right.spec) &&
    isSame(labelsOf(left), labelsOf(right)) &&
    isSame(annotationsOf(left), annotationsOf(right))
  )
}

/** As a Deployment has it. */
export function withoutHash(template: PodTemplate): PodTemplate {
  const { [hashLabel]: hash, ...labels } = labelsOf(template)
  return hash === undefined ? template : { ...template, metadata: { ...template.metadata, labels } }
}

export const labelsOf = ({ metadata }: PodTemplate): Json => recordOf(metadata?.labels)
export const annotationsOf = ({ metadata }: PodTemplate): Json => recordOf(metadata?.annotations)
const containersIn = ({ spec }: PodTemplate, list: List): Json[] => listOf(spec?.[list])

export const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value : [])
export const recordOf = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {})

const changedKeys = (from: Json, to: Json): string[] =>
  [...new Set([...Object.keys(from), ...Object.keys(to)])].filter(key => from[key] !== to[key]).sort()

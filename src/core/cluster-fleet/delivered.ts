import { ownValue } from "#lib/own.ts"
import { clip, withoutControls } from "#lib/text.ts"
import { type DeliverableKind, deliverableKindOf, runAnnotation } from "./deliverable.ts"
import {
  type DeliveredObject,
  type Delivery,
  type FieldPath,
  type Manifest,
  type Present,
  type Scalar,
  transportBounds,
  type Verdict,
} from "./transport.ts"

/** A manifest as it is sent: it names its run. */
export const sentManifest = ({ manifest }: Pick<DeliveredObject, "manifest">, run: string): Manifest => ({
  ...manifest,
  metadata: { ...manifest.metadata, annotations: { ...manifest.metadata.annotations, [runAnnotation]: run } },
})

/** Why a delivery cannot be sent, in words that name what to change; undefined if it can. */
export function undeliverable({ bundle, run, objects }: Delivery): string | undefined {
  if (!/^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$/.test(bundle)) return `${JSON.stringify(bundle)} is no name of a bundle`
  if (!/^[a-zA-Z0-9]([-\w.]{0,61}[a-zA-Z0-9])?$/.test(run)) return `${JSON.stringify(run)} is no name of a run`
  if (objects.length > transportBounds.objects)
    return `${objects.length} objects are more than the ${transportBounds.objects} that one delivery may have`
  const bytes = objects.reduce((sum, { manifest }) => sum + JSON.stringify(manifest).length, 0)
  if (bytes > transportBounds.manifestsBytes)
    return `the manifests have ${bytes} bytes, and one delivery may have ${transportBounds.manifestsBytes}`
  const names = new Set<string>()
  for (const { manifest, fields } of objects) {
    const name = nameOf(manifest)
    if (names.has(name)) return `${name} is listed twice`
    names.add(name)
    const kind = deliverableKindOf(manifest)
    if (!kind) return `${name}: a hub does not deliver ${manifest.kind} of ${manifest.apiVersion}`
    if (kind.namespaced !== (manifest.metadata.namespace !== undefined))
      return `${name}: metadata.namespace ${kind.namespaced ? "is missing" : "must not be set"}`
    if (Object.keys(fields ?? {}).length > transportBounds.fields)
      return `${name}: more than ${transportBounds.fields} fields are asked for`
  }
  return undefined
}

/** `ServiceImage web` or `Canary shop/web`, for messages. */
export const nameOf = ({ kind, metadata }: Pick<Manifest, "kind" | "metadata">) =>
  `${kind} ${metadata.namespace === undefined ? "" : `${metadata.namespace}/`}${metadata.name}`

/** The kind of an object of a delivery that was checked before. */
export function kindOf(manifest: Manifest): DeliverableKind {
  const kind = deliverableKindOf(manifest)
  if (!kind) throw new Error(`${nameOf(manifest)} is not delivered`)
  return kind
}

/**
 * What one read of an object shows. The same rule is written as CEL for OCM's agent, and a test holds the two equal.
 * Nothing of the object is trusted: texts are cut, and what has another type than expected is not there.
 */
export function judgeDelivered(object: unknown, wanted: DeliveredObject, run: string): Present {
  return { is: "Present", verdict: verdictOf(object, wanted, run), fields: fieldsOf(object, wanted.fields) }
}

function verdictOf(object: unknown, { judge }: DeliveredObject, run: string): Verdict {
  if (valueAt(object, ["metadata", "deletionTimestamp"]) !== undefined) return { is: "Leaving" }
  if (valueAt(object, ["metadata", "annotations", runAnnotation]) !== run)
    return { is: "Differs", message: "it does not name this run" }
  if (judge.by === "Presence") return { is: "Settled" }
  const other = judge.expects.find(({ path, value }) => valueAt(object, path) !== value)
  if (other) return { is: "Differs", message: `${pathText(other.path)} is not what was sent` }

  const generation = valueAt(object, ["metadata", "generation"])
  const isOfNow = (value: unknown) =>
    typeof generation === "number" && valueAt(value, ["observedGeneration"]) === generation
  const status = valueAt(object, ["status"])
  if (!isOfNow(status))
    return { is: "Waiting", reason: "NotObserved", message: "it was not looked at since it changed" }
  const conditions = valueAt(status, ["conditions"])
  const find = (type: string) =>
    Array.isArray(conditions) ? conditions.find(each => valueAt(each, ["type"]) === type && isOfNow(each)) : undefined
  const [stalled, ready] = [find("Stalled"), find("Ready")]
  if (valueAt(stalled, ["status"]) === "True") return { is: "Stalled", ...wordsOf(stalled) }
  if (valueAt(ready, ["status"]) === "True") return { is: "Settled" }
  return ready
    ? { is: "Waiting", ...wordsOf(ready) }
    : { is: "Waiting", reason: "NotObserved", message: "no Ready yet" }
}

const wordsOf = (condition: unknown) =>
  boundWords({ reason: valueAt(condition, ["reason"]), message: valueAt(condition, ["message"]) })

/** Reason and message of another cluster, bounded and without what would confuse a terminal. */
export const boundWords = ({ reason, message }: { reason: unknown; message: unknown }) => ({
  reason: textOf(reason, transportBounds.reason),
  message: textOf(message, transportBounds.message),
})

export const boundMessage = (message: unknown) => textOf(message, transportBounds.message)

const textOf = (text: unknown, length: number) =>
  typeof text === "string" ? clip(withoutControls(text.slice(0, length + 1), " "), length) : ""

function fieldsOf(object: unknown, paths: DeliveredObject["fields"] = {}): Record<string, Scalar> {
  const found: Record<string, Scalar> = {}
  for (const [name, path] of Object.entries(paths)) {
    const value = scalarOf(valueAt(object, path))
    if (value !== undefined) found[name] = value
  }
  return found
}

/** Whole numbers, texts and booleans; everything else is not reported. */
export function scalarOf(value: unknown): Scalar | undefined {
  if (typeof value === "string") return textOf(value, transportBounds.fieldText)
  return typeof value === "boolean" || Number.isSafeInteger(value) ? (value as Scalar) : undefined
}

export function valueAt(value: unknown, path: FieldPath): unknown {
  let at = value
  for (const key of path) {
    if (typeof at !== "object" || at === null || Array.isArray(at) !== (typeof key === "number")) return undefined
    at = typeof key === "number" ? (at as unknown[])[key] : ownValue(at as Record<string, unknown>, key)
  }
  return at ?? undefined
}

/** `spec.tiers[0].image`, for messages. */
export const pathText = (path: FieldPath) =>
  path
    .map(key => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "")

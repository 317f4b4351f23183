import { fenceAnnotation } from "#core/cluster-fleet/deliverable.ts"
import { boundMessage, scalarOf, valueAt } from "#core/cluster-fleet/delivered.ts"
import {
  type DeliveredObject,
  type ObjectSeen,
  type Reach,
  type RefusalReason,
  type Scalar,
  transportBounds,
} from "#core/cluster-fleet/transport.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { settledCondition, verdictOf } from "./rule.ts"
import { hashOf, identifierOf, isOurs } from "./work.ts"

/** What a cache keeps of a ManifestWork. An agent can write all of it, so everything is bounded and nothing is desired. */
export type HeldWork = {
  readonly resourceVersion: string
  readonly uid: string
  readonly generation: number
  readonly isLeaving: boolean
  readonly fence: string | undefined
  /** Of its spec: compared with what was sent, never used. */
  readonly hash: string
  readonly manifests: ReadonlyMap<string, HeldManifest>
}

type HeldManifest = {
  readonly applied: HeldCondition | undefined
  readonly available: HeldCondition | undefined
  readonly settled: HeldCondition | undefined
  readonly fields: Readonly<Record<string, Scalar>>
}

type HeldCondition = { status: unknown; generation: unknown; reason: string; message: string }

const none: HeldWork = {
  ...{
    resourceVersion: "",
    uid: "",
    generation: 0,
    isLeaving: false,
    fence: undefined,
    hash: "",
    manifests: new Map(),
  },
}

export function holdWork(object: KubeObject): HeldWork {
  const { name, uid = "", resourceVersion = "", generation = 0, deletionTimestamp } = object.metadata
  if (!isOurs(name)) return { ...none, resourceVersion }
  const fence = valueAt(object, ["metadata", "annotations", fenceAnnotation])
  return {
    ...{ resourceVersion, uid, generation, isLeaving: deletionTimestamp !== undefined },
    fence: typeof fence === "string" ? fence.slice(0, 256) : undefined,
    hash: hashOf(valueAt(object, ["spec"])),
    manifests: manifestsOf(valueAt(object, ["status", "resourceStatus", "manifests"])),
  }
}

function manifestsOf(list: unknown): Map<string, HeldManifest> {
  const found = new Map<string, HeldManifest>()
  if (!Array.isArray(list)) return found
  for (const each of list.slice(0, transportBounds.objects)) {
    const part = (name: string) => String(valueAt(each, ["resourceMeta", name]) ?? "").slice(0, 253)
    const key = keyOf({
      group: part("group"),
      resource: part("resource"),
      namespace: part("namespace"),
      name: part("name"),
    })
    const conditions = valueAt(each, ["conditions"])
    const find = (type: string) => conditionIn(conditions, type)
    found.set(key, {
      ...{ applied: find("Applied"), available: find("Available"), settled: find(settledCondition) },
      fields: fieldsOf(valueAt(each, ["statusFeedback", "values"])),
    })
  }
  return found
}

function conditionIn(conditions: unknown, type: string): HeldCondition | undefined {
  if (!Array.isArray(conditions)) return undefined
  const found = conditions.slice(0, 32).find(each => valueAt(each, ["type"]) === type)
  if (found === undefined) return undefined
  const message = valueAt(found, ["message"])
  return {
    status: valueAt(found, ["status"]),
    generation: valueAt(found, ["observedGeneration"]),
    reason: boundMessage(valueAt(found, ["reason"])),
    // Three lines of ours: the bound of the last one is applied where they are read.
    message: typeof message === "string" ? message.slice(0, 2 * transportBounds.message) : "",
  }
}

function fieldsOf(values: unknown): Record<string, Scalar> {
  const fields: Record<string, Scalar> = {}
  if (!Array.isArray(values)) return fields
  for (const each of values.slice(0, transportBounds.fields)) {
    const name = valueAt(each, ["name"])
    const value = ["string", "integer", "boolean"].map(type => valueAt(each, ["fieldValue", type])).find(isThere)
    const scalar = scalarOf(value)
    if (typeof name === "string" && name.length <= 64 && scalar !== undefined) fields[name] = scalar
  }
  return fields
}

const isThere = (value: unknown) => value !== undefined
const keyOf = ({ group, resource, namespace, name }: Record<"group" | "resource" | "namespace" | "name", string>) =>
  [group, resource, namespace, name].join("/")

/** What a work whose content is the one that was sent says of one of its objects. */
export function objectSeen({ generation, manifests }: HeldWork, wanted: DeliveredObject): ObjectSeen {
  const held = manifests.get(keyOf(identifierOf(wanted.manifest)))
  const { applied, available, settled } = held ?? {}
  if (!held || !applied || applied.generation !== generation)
    return { is: "Unknown", message: "the cluster has not answered yet" }
  if (applied.status !== "True") return notApplied(applied.message)
  if (available?.status === "False") return { is: "Absent" }
  // Only a rule that was evaluated for this content counts: Applied comes first, beside what was said of earlier content.
  if (!settled || settled.generation !== generation || available?.status !== "True")
    return { is: "Unknown", message: "the cluster has not looked at it yet" }
  const names = Object.keys(wanted.fields ?? {})
  const fields = Object.fromEntries(Object.entries(held.fields).filter(([name]) => names.includes(name)))
  return { is: "Present", verdict: verdictOf(settled), fields }
}

/** By the words of the server of the cluster, which the agent hands on behind its own. */
const refusals: readonly [RegExp, RefusalReason][] = [
  [/not allowed to apply the resource/, "Forbidden"],
  [/ValidatingAdmissionPolicy|admission webhook/, "AdmissionDenied"],
  [/ is forbidden: /, "Forbidden"],
  [/no matches for kind|could not find the requested resource/, "KindMissing"],
  [/namespaces "[^"]*" not found/, "NamespaceMissing"],
  [/ is invalid: |failed to create typed patch object|strict decoding error/, "Invalid"],
]

function notApplied(message: string): ObjectSeen {
  const said = boundMessage(message.replace(/^Failed to apply manifest: /, ""))
  if (/^Apply failed with \d+ conflict/.test(said)) return { is: "Contested", message: said }
  const reason = refusals.find(([pattern]) => pattern.test(said))?.[1] ?? "Failed"
  return { is: "Refused", reason, message: said }
}

/** What a cache keeps of a ManagedCluster. */
export type HeldCluster = {
  readonly resourceVersion: string
  readonly reach: Omit<Reach, "lastContact"> & { since?: Instant }
}

export function holdCluster(object: KubeObject): HeldCluster {
  const conditions = valueAt(object, ["status", "conditions"])
  const available = conditionIn(conditions, "ManagedClusterConditionAvailable")
  const accepted = conditionIn(conditions, "HubAcceptedManagedCluster")
  const version = valueAt(object, ["status", "version", "kubernetes"])
  const found = Array.isArray(conditions)
    ? conditions.find(each => valueAt(each, ["type"]) === "ManagedClusterConditionAvailable")
    : undefined
  const since = parseInstant(valueAt(found, ["lastTransitionTime"]))
  const isReachable = available?.status === "True" && accepted?.status === "True"
  const why =
    accepted?.status === "True" ? boundMessage(available?.message) || "it never joined" : "the hub has not accepted it"
  return {
    resourceVersion: object.metadata.resourceVersion ?? "",
    reach: {
      isReachable,
      ...(!isReachable && { message: why }),
      ...(typeof version === "string" && { version: version.slice(0, 64) }),
      ...(since !== undefined && { since }),
    },
  }
}

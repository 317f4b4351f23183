import type { Kind } from "#api/kind.ts"
import { kinds } from "#api/kinds.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { group } from "#api/v1alpha1/group.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { validate } from "#api/validate.ts"

type Json = Record<string, unknown>

export type Remark = { path: string; message: string }

export type Converted = {
  object: Json
  /** What was dropped or changed. */
  remarks: Remark[]
}

export type Conversion = ({ ok: true } & Converted) | { ok: false; problems: Remark[] }

/** The kind that a ServiceImage stamps, which the original did not name. */
export type TargetWords = { apiVersion: string; kind: string }

const convertible = [
  "AlternateImageSource of kuiper.fairwinds.com and saffire.fairwinds.com",
  "ServiceImage of any group",
].join(", ")

/** Converts a manifest of the originals into one of ours, validated as on the server, with a remark on everything lost. */
export function convert(value: unknown, target?: TargetWords): Conversion {
  const { apiVersion, kind } = isObject(value) ? value : {}
  const from = typeof apiVersion === "string" ? (apiVersion.split("/")[0] ?? "") : ""
  if (isObject(value) && from === group && kinds.some(each => each.kind === kind))
    return judged(kinds.find(each => each.kind === kind)!, value, value.spec, [])
  if (isObject(value) && kind === AlternateImageSource.kind && /^(kuiper|saffire)\.fairwinds\.com$/.test(from))
    return alternateImageSource(value)
  if (isObject(value) && kind === ServiceImage.kind) return serviceImage(value, target)
  const found = isObject(value) ? `${kind ?? "no kind"} of ${apiVersion ?? "no apiVersion"}` : "no object"
  return { ok: false, problems: [{ path: "", message: `${found} cannot be converted; these can: ${convertible}` }] }
}

function alternateImageSource(value: Json): Conversion {
  const remarks: Remark[] = [
    {
      path: "spec",
      message:
        "pods are repaired now, and workloads are left as they are; policy.apply: Template changes workloads as before",
    },
  ]
  const spec = isObject(value.spec) ? { ...value.spec } : value.spec
  if (isObject(spec) && Array.isArray(spec.imageSourceReplacements))
    spec.imageSourceReplacements = spec.imageSourceReplacements.map((each, index) => {
      if (!isObject(each) || !Array.isArray(each.targets)) return each
      const path = `spec.imageSourceReplacements[${index}].targets`
      return { ...each, targets: each.targets.map((target, at) => targetOf(target, `${path}[${at}]`, remarks)) }
    })
  return judged(AlternateImageSource, value, spec, remarks)
}

function targetOf(target: unknown, path: string, remarks: Remark[]): unknown {
  if (!isObject(target)) return target
  const { uid, container, type, ...rest } = target
  if (uid) remarks.push({ path: `${path}.uid`, message: "dropped: a workload is identified by its name" })
  const { group: written } = isObject(type) ? type : {}
  const isVersioned = typeof written === "string" && written.includes("/")
  if (isVersioned) remarks.push({ path: `${path}.type.group`, message: "the version is dropped" })
  return {
    ...rest,
    type: isVersioned && isObject(type) ? { ...type, group: written.split("/")[0] } : type,
    ...(container ? { container } : {}),
  }
}

function serviceImage(value: Json, given: TargetWords | undefined): Conversion {
  const { spec, apiVersion } = value
  const own = isObject(spec) ? spec.target : undefined
  const labels = isObject(value.metadata) && isObject(value.metadata.labels) ? value.metadata.labels : {}
  const { service } = labels
  const guessed =
    typeof service === "string" && service !== ""
      ? { apiVersion, kind: service[0]!.toUpperCase() + service.slice(1) }
      : undefined
  const target = given ?? own ?? guessed
  if (target === undefined)
    return {
      ok: false,
      problems: [{ path: "spec.target", message: "the kind to stamp is missing: write --target GROUP/VERSION/KIND" }],
    }
  const remarks: Remark[] =
    target === guessed
      ? [
          {
            path: "spec.target",
            message: `guessed from the label service: ${guessed.kind} of ${apiVersion}; --target GROUP/VERSION/KIND overrides it`,
          },
        ]
      : []
  return judged(ServiceImage, value, isObject(spec) ? { target, ...spec, ...(given && { target }) } : spec, remarks)
}

/** As the server would accept it; fields that it would not keep are left out here already, and reported. */
function judged(kind: Kind, value: Json, spec: unknown, remarks: Remark[]): Conversion {
  const { metadata, lost } = metadataOf(value.metadata, kind)
  const written = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, spec }
  const { errors, warnings, object } = validate(kind, written)
  if (!object) return { ok: false, problems: errors }
  const status =
    value.status === undefined ? [] : [{ path: "status", message: "dropped: the controller writes its own" }]
  const unknown = warnings.map(({ path, message }) => ({ path, message: `dropped: ${message}` }))
  return { ok: true, object: common(written, object) as Json, remarks: [...remarks, ...unknown, ...lost, ...status] }
}

const keptMetadata = ["name", "generateName", "namespace", "labels", "annotations"]
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

function metadataOf(value: unknown, { scope }: Kind): { metadata: unknown; lost: Remark[] } {
  if (!isObject(value)) return { metadata: value, lost: [] }
  const lost: Remark[] = []
  const kept = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (!keptMetadata.includes(name)) {
      lost.push({ path: `metadata.${name}`, message: "dropped: it belongs to the object it was read from" })
      return []
    }
    if (name === "namespace" && scope === "Cluster") {
      lost.push({ path: "metadata.namespace", message: "dropped: this kind has no namespace" })
      return []
    }
    if (name !== "annotations" || !isObject(each) || !Object.hasOwn(each, lastApplied)) return [[name, each]]
    lost.push({ path: `metadata.annotations[${lastApplied}]`, message: "dropped: kubectl writes its own" })
    const { [lastApplied]: _, ...others } = each
    return Object.keys(others).length > 0 ? [[name, others]] : []
  })
  return { metadata: Object.fromEntries(kept), lost }
}

/** Only fields that were written and are known: without added defaults and without unknown fields. */
function common(written: unknown, known: unknown): unknown {
  if (Array.isArray(written) && Array.isArray(known)) return written.map((each, index) => common(each, known[index]))
  if (!isObject(written) || !isObject(known)) return known
  const names = Object.keys(written).filter(name => Object.hasOwn(known, name))
  return Object.fromEntries(names.map(name => [name, common(written[name], known[name])]))
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

import type { Kind } from "#api/kind.ts"
import { validate } from "#api/validate.ts"

export type Json = Record<string, unknown>

export type Remark = { path: string; message: string }

export type Converted = {
  /** None where the manifest is not needed here; a remark says why. */
  objects: Json[]
  /** What was dropped or changed. */
  remarks: Remark[]
  /** Flags of `aim controller` without which something in it does not work. */
  allowances?: string[]
  /** What holds for the whole file, each said once. */
  notes?: string[]
}

export type Conversion = ({ ok: true } & Converted) | { ok: false; problems: Remark[] }

/** As the server would accept it; fields that it would not keep are left out here already, and reported. */
export function judged(kind: Kind, value: Json, spec: unknown, remarks: Remark[]): Conversion {
  const { metadata, lost } = metadataOf(value.metadata, kind)
  const written = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, spec }
  const { errors, warnings, object } = validate(kind, written)
  if (!object) return { ok: false, problems: errors }
  const unknown = warnings.map(({ path, message }) => ({ path, message: `dropped: ${message}` }))
  return {
    ok: true,
    objects: [common(written, object) as Json],
    remarks: [...remarks, ...unknown, ...lost, ...besideSpec(value)],
  }
}

/** What stands beside metadata and spec: the status, and fields that no kind has. */
export function besideSpec(value: Json): Remark[] {
  const known = ["apiVersion", "kind", "metadata", "spec"]
  return Object.keys(value)
    .filter(name => !known.includes(name) && value[name] !== undefined)
    .map(path => ({
      path,
      message: path === "status" ? "dropped: the controller writes its own" : "dropped: no such field",
    }))
}

const keptMetadata = ["name", "generateName", "namespace", "labels", "annotations"]
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

export const ofTheOriginal = "dropped: it belongs to the object it was read from"

function metadataOf(value: unknown, { scope }: Kind): { metadata: unknown; lost: Remark[] } {
  if (!isObject(value)) return { metadata: value, lost: [] }
  const lost: Remark[] = []
  const kept = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (!keptMetadata.includes(name)) {
      lost.push({ path: `metadata.${name}`, message: ofTheOriginal })
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

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

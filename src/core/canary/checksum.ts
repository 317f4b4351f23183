import { createHash } from "node:crypto"
import { annotationsOf, labelsOf, type PodTemplate, withoutHash } from "../in-place/template.ts"

/**
 * The checksum of a template, as a workload or its ReplicaSet has it. Fields have no order, and the label by which a
 * ReplicaSet finds its pods is no part of what a template says.
 */
export function checksumOf(template: PodTemplate): string {
  const plain = withoutHash(template)
  return digestOf([labelsOf(plain), annotationsOf(plain), plain.spec ?? {}])
}

/** The same for values that say the same: fields have no order. */
export const digestOf = (value: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify(ordered(value)))
    .digest("hex")
    .slice(0, 16)

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, each]) => [key, ordered(each)]))
}

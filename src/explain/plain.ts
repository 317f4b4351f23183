import type { KubeObject, Resource } from "#runtime/resource.ts"
import { standingOf } from "#runtime/standing.ts"
import type { Explained, Explanation } from "./explained.ts"
import type { ListOf } from "./reading.ts"
import { metadata } from "./shapes.ts"

/** The objects of a kind of ours, whole except for the metadata that no controller reads. */
export const ownList = (resource: Resource, namespace: string | undefined): ListOf => ({
  resource,
  shape: { metadata, spec: "all", status: "all" },
  ...(resource.namespaced && { options: { namespace } }),
})

/** What the conditions of an object say. */
export function explanationOf(
  object: KubeObject & { status?: unknown },
  reasons: Readonly<Record<string, string>> = {},
): Explanation {
  const { state, reason, message, since } = standingOf(object)
  const meaning = Object.hasOwn(reasons, reason) ? reasons[reason] : undefined
  return { reason: reason || state, message, meaning, since }
}

/** For a kind without an explanation of its own: what its controller has reported. */
export const plainly = (resource: Resource): Explained => ({
  reading: ({ namespace }) => ({ own: ownList(resource, namespace) }),
  explainer: () => async object => explanationOf(object),
})
